import Dispatch
import Foundation
import Histogram
import TambourNet

/// What a load run does.
struct LoadPlan: Sendable {
    enum Shape: Sendable {
        /// So many senders, each with a receiver of its own.
        case pairs(Int)
        /// One sender and so many receivers.
        case group(receivers: Int)
    }

    enum Pace: Sendable {
        /// Each sender keeps so many messages on their way: the server sets the pace.
        case closed(window: Int)
        /// So many messages a second, whatever the server does: a late one counts from when it was due.
        case open(perSecond: Double)
    }

    var name: String
    var address: ListenAddress
    var shape: Shape
    var pace: Pace
    var warmUp: Duration = .seconds(1)
    var measured: Duration = .seconds(5)
    var maxMessages = 20_000_000
    /// Source addresses of the connections, taken in turn.
    var sources: [String] = []

    var clients: Int {
        switch shape {
        case .pairs(let count): 2 * count
        case .group(let receivers): receivers + 1
        }
    }
}

/// Drives clients against a server and measures what comes back.
///
/// Clients with even numbers send to the one after them; in a group client 0 sends to all others. A
/// message is done when everybody has it and the server has acknowledged it.
final class LoadRun: Fleet<LoadFigures>, @unchecked Sendable {
    /// Messages on their way are found by their number modulo this.
    private static let slots = 1 << 20

    private struct Slot {
        var dueAt: UInt64 = 0
        var missing: Int32 = 0
        var isAcknowledged = true
        var sender: Int32 = 0
    }

    private enum Phase { case connecting, warming, measuring, draining }

    private let plan: LoadPlan
    private let meter: ProcessMeter?
    private let corpus: Corpus

    private var phase = Phase.connecting
    private var slots = [Slot](repeating: Slot(), count: LoadRun.slots)
    /// Numbers of each sender that wait for their acknowledgement, oldest first.
    private var waiting: [FIFO]
    private var nextNumber: UInt32 = 0
    private var onTheirWay = 0
    private var nextSender = 0
    private var startedAt: UInt64 = 0

    private var measuredFrom: UInt64 = 0
    private var messages = 0
    private var deliveries = 0
    private var latency = Latency.histogram()
    private var lastLatency = Latency.histogram()
    private var baseline = (cpu: 0.0, own: 0.0, bytes: 0)
    private var figures: LoadFigures?

    /// - Parameter meter: The server's processes, where they run on this machine.
    init(
        _ plan: LoadPlan,
        corpus: Corpus,
        meter: ProcessMeter? = nil,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        self.plan = plan
        self.corpus = corpus
        self.meter = meter
        waiting = Array(repeating: FIFO(), count: plan.clients)
        super.init(
            count: plan.clients,
            address: plan.address,
            sources: plan.sources,
            makeClient: makeClient
        )
    }

    override func allReady() { start() }

    // MARK: - Sending

    private func start() {
        phase = .warming
        startedAt = monotonicNow()
        switch plan.pace {
        case .closed(let window):
            for sender in senders {
                for _ in 0..<window { send(from: sender, dueAt: monotonicNow()) }
            }
        case .open: keepPace()
        }
        after(plan.warmUp) { [self] in measure() }
    }

    private var senders: StrideTo<Int> {
        switch plan.shape {
        case .pairs(let count): stride(from: 0, to: 2 * count, by: 2)
        case .group: stride(from: 0, to: 1, by: 1)
        }
    }

    /// Sends everything that is due by now; the next look is a timer tick away.
    private func keepPace() {
        guard case .open(let perSecond) = plan.pace, phase == .warming || phase == .measuring
        else { return }
        let now = monotonicNow()
        let due = UInt64(Double(now - startedAt) / 1e9 * perSecond)
        while UInt64(nextNumber) < due {
            let dueAt = startedAt + UInt64(Double(nextNumber) / perSecond * 1e9)
            send(from: nextSender, dueAt: dueAt)
            if case .pairs(let count) = plan.shape { nextSender = (nextSender + 2) % (2 * count) }
        }
        after(.milliseconds(1)) { [self] in keepPace() }
    }

    private func send(from sender: Int, dueAt: UInt64) {
        guard Int(nextNumber) < plan.maxMessages, onTheirWay < Self.slots - 1 else { return }
        let number = nextNumber
        nextNumber += 1
        onTheirWay += 1
        let receivers: Int32 =
            switch plan.shape {
            case .pairs: 1
            case .group(let receivers): Int32(receivers)
            }
        slots[Int(number) % Self.slots] = Slot(
            dueAt: dueAt,
            missing: receivers,
            isAcknowledged: false,
            sender: Int32(sender)
        )
        waiting[sender].append(number)
        clients[sender].send(corpus.message(number), number: number)
    }

    // MARK: - What comes back

    override func acknowledged(_ client: LoadClient) {
        guard let number = waiting[client.index].removeFirst() else {
            return failed(client, "acknowledged more than was sent")
        }
        let slot = Int(number) % Self.slots
        slots[slot].isAcknowledged = true
        if slots[slot].missing == 0 { done(number) }
    }

    override func delivered(_ number: UInt32, to client: LoadClient) {
        let slot = Int(number) % Self.slots
        guard number < nextNumber, slots[slot].missing > 0 else {
            return failed(client, "message \(number) was delivered once too often")
        }
        slots[slot].missing -= 1
        let microseconds = (monotonicNow() - slots[slot].dueAt) / 1_000
        if phase == .measuring {
            deliveries += 1
            _ = latency.record(max(1, microseconds))
        }
        guard slots[slot].missing == 0 else { return }
        if phase == .measuring { _ = lastLatency.record(max(1, microseconds)) }
        if slots[slot].isAcknowledged { done(number) }
    }

    private func done(_ number: UInt32) {
        onTheirWay -= 1
        if phase == .measuring { messages += 1 }
        guard phase == .warming || phase == .measuring else {
            if phase == .draining, onTheirWay == 0 { complete() }
            return
        }
        if case .closed = plan.pace {
            send(from: Int(slots[Int(number) % Self.slots].sender), dueAt: monotonicNow())
        }
    }

    // MARK: - Measuring

    private var bytes: Int { clients.reduce(0) { $0 + $1.bytesIn + $1.bytesOut } }

    private func measure() {
        guard phase == .warming else { return }
        phase = .measuring
        baseline = (meter?.cpuSeconds ?? 0, ProcessMeter.own.cpuSeconds, bytes)
        measuredFrom = monotonicNow()
        after(plan.measured) { [self] in stopMeasuring() }
        report()
    }

    private func report() {
        guard phase == .measuring else { return }
        let seconds = Double(monotonicNow() - measuredFrom) / 1e9
        if seconds > 0.5 {
            let rate = Int(Double(messages) / seconds)
            FileHandle.standardError.write(
                Data("\r\(plan.name): \(rate) messages/s after \(Int(seconds.rounded())) s   ".utf8)
            )
        }
        after(.seconds(1)) { [self] in report() }
    }

    private func stopMeasuring() {
        guard phase == .measuring else { return }
        let seconds = Double(monotonicNow() - measuredFrom) / 1e9
        let count = max(1, Double(messages))
        let cpu = (meter?.cpuSeconds ?? 0) - baseline.cpu
        var isGroup = false
        if case .group = plan.shape { isGroup = true }
        figures = LoadFigures(
            seconds: seconds,
            messages: messages,
            messagesPerSecond: Double(messages) / seconds,
            deliveriesPerSecond: Double(deliveries) / seconds,
            delivery: Latency(latency),
            lastDelivery: isGroup ? Latency(lastLatency) : nil,
            bytesPerMessage: Double(bytes - baseline.bytes) / count,
            driverCores: (ProcessMeter.own.cpuSeconds - baseline.own) / seconds,
            server: meter.map {
                ServerFigures(
                    cores: cpu / seconds,
                    cpuMicrosecondsPerMessage: cpu * 1e6 / count,
                    rssMiB: Double($0.residentBytes) / 1_048_576
                )
            },
            lost: 0,
            sent: 0
        )
        phase = .draining
        FileHandle.standardError.write(Data("\r".utf8))
        if onTheirWay == 0 { return complete() }
        after(.seconds(10)) { [self] in complete() }
    }

    private func complete() {
        guard phase == .draining, var figures else { return }
        figures.lost = onTheirWay
        figures.sent = Int(nextNumber)
        end(.success(figures))
    }
}

/// Numbers that come in and go out at the other end.
private struct FIFO {
    private var numbers: [UInt32] = []
    private var first = 0

    mutating func append(_ number: UInt32) { numbers.append(number) }

    mutating func removeFirst() -> UInt32? {
        guard first < numbers.count else { return nil }
        let number = numbers[first]
        first += 1
        if first == numbers.count {
            numbers.removeAll(keepingCapacity: true)
            first = 0
        } else if first >= 4_096 {
            numbers.removeFirst(first)
            first = 0
        }
        return number
    }
}
