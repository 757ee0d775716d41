import Dispatch
import TambourNet
import TambourQueues

/// The parameters of a load run.
struct LoadPlan: Sendable {
    enum Shape: Sendable {
        /// A number of senders, each with one receiver of its own.
        case pairs(Int)
        /// One sender and a number of receivers.
        case group(receivers: Int)
    }

    enum Pace: Sendable {
        /// Each sender keeps a number of messages in flight, so the server sets the pace.
        case closed(window: Int)
        /// A number of messages per second, regardless of the server's speed. Latency counts from
        /// the time when a message was due. All messages that are due in the measured time count,
        /// even if they arrive late.
        case open(perSecond: Double)
    }

    var name: String
    var address: ListenAddress
    var shape: Shape
    var pace: Pace
    var warmUp: Duration = .seconds(1)
    var measured: Duration = .seconds(5)
    /// The number of sent messages at which the measurement ends, not counting the warm-up.
    var maxMessages = Int.max
    /// Source addresses of the connections, used in turn.
    var sources: [String] = []

    var clients: Int {
        switch shape {
        case .pairs(let count): 2 * count
        case .group(let receivers): receivers + 1
        }
    }
}

/// Drives clients against a server and measures the results.
///
/// Clients with even numbers send to the next client; in a group, client 0 sends to all other
/// clients. A message is complete when all receivers have it and the server has acknowledged it.
final class LoadRun: Fleet<LoadFigures>, @unchecked Sendable {
    /// The number of slots. A message in flight uses the slot with the index `number % slots`.
    private static let slots = 1 << 20

    private struct Slot {
        var dueAt: UInt64 = 0
        var missing: Int32 = 0
        var sender: Int32 = 0
        var number: UInt32 = 0
        var isAcknowledged = true

        var isFree: Bool { missing == 0 && isAcknowledged }
    }

    private enum Phase { case connecting, warming, measuring, draining }

    private let plan: LoadPlan
    private let meter: ProcessMeter?
    private let commits: CounterRate?
    private let corpus: Corpus

    private var phase = Phase.connecting
    private var slots = [Slot](repeating: Slot(), count: LoadRun.slots)
    /// The unacknowledged message numbers of each sender, oldest first.
    private var waiting: [FIFO]
    private var nextNumber: UInt32 = 0
    private var onTheirWay = 0
    private var nextSender = 0
    private var startedAt: UInt64 = 0

    private var measuredFrom = UInt64.max
    private var measuredUntil = UInt64.max
    private var sentInWindow = 0
    private var messages = 0
    private var deliveries = 0
    private var latency = LatencySamples()
    private var lastLatency = LatencySamples()
    private var baseline = (cpu: 0.0, own: 0.0, bytes: 0)
    private var figures: LoadFigures?

    /// - Parameters:
    /// - meter: The meter of the server's processes; nil if they run on another machine.
    /// - commits: Returns the server's number of transactions so far.
    init(
        _ plan: LoadPlan,
        corpus: Corpus,
        meter: ProcessMeter? = nil,
        commits: (@Sendable () throws -> Double)? = nil,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        self.plan = plan
        self.corpus = corpus
        self.meter = meter
        self.commits = commits.map { CounterRate($0) }
        waiting = Array(repeating: FIFO(), count: plan.clients)
        super.init(
            count: plan.clients,
            address: plan.address,
            sources: plan.sources,
            makeClient: makeClient
        )
    }

    override var name: String { plan.name }

    override func allReady() { start() }

    // MARK: - Sending

    private func start() {
        phase = .warming
        startedAt = monotonicNow()
        switch plan.pace {
        case .closed(let window):
            for sender in senders {
                for _ in 0..<window { _ = send(from: sender, dueAt: monotonicNow()) }
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

    /// Sends all messages due by now, and checks again after one timer tick.
    private func keepPace() {
        guard case .open(let perSecond) = plan.pace, phase == .warming || phase == .measuring
        else { return }
        sendDue(by: monotonicNow(), perSecond)
        if hasSentAll { return stopMeasuring() }
        after(.milliseconds(1)) { [self] in keepPace() }
    }

    private func sendDue(by now: UInt64, _ perSecond: Double) {
        while !hasSentAll {
            let dueAt = dueTime(of: UInt64(nextNumber), perSecond)
            guard dueAt <= now, send(from: nextSender, dueAt: dueAt) else { return }
            if case .pairs(let count) = plan.shape { nextSender = (nextSender + 2) % (2 * count) }
        }
    }

    private func dueTime(of number: UInt64, _ perSecond: Double) -> UInt64 {
        startedAt + UInt64(Double(number) / perSecond * 1e9)
    }

    private var hasSentAll: Bool { sentInWindow >= plan.maxMessages }

    private var receivers: Int32 {
        switch plan.shape {
        case .pairs: 1
        case .group(let receivers): Int32(receivers)
        }
    }

    /// - Returns: false if too many messages are in flight: the slot of the message is still in
    ///   use, and the message is not sent.
    private func send(from sender: Int, dueAt: UInt64) -> Bool {
        guard slots[Int(nextNumber) % Self.slots].isFree else { return false }
        let number = nextNumber
        nextNumber += 1
        onTheirWay += 1
        if phase == .measuring { sentInWindow += 1 }
        slots[Int(number) % Self.slots] = Slot(
            dueAt: dueAt,
            missing: receivers,
            sender: Int32(sender),
            number: number,
            isAcknowledged: false
        )
        waiting[sender].append(number)
        clients[sender].send(corpus.message(number), number: number)
        return true
    }

    // MARK: - Receiving

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
        guard slots[slot].number == number, slots[slot].missing > 0 else {
            return failed(client, "message \(number) was delivered once too often")
        }
        slots[slot].missing -= 1
        if phase == .measuring { deliveries += 1 }
        record(slots[slot], reached: 1, isLast: slots[slot].missing == 0, at: monotonicNow())
        if slots[slot].isFree { done(number) }
    }

    /// Records the latency of deliveries of a message, if the message belongs to the measured
    /// window.
    private func record(_ slot: Slot, reached: Int32, isLast: Bool, at now: UInt64) {
        if case .open = plan.pace {
            guard slot.dueAt >= measuredFrom, slot.dueAt < measuredUntil else { return }
        } else if phase != .measuring {
            return
        }
        latency.record(nanoseconds: now - slot.dueAt, count: UInt64(reached))
        if isLast { lastLatency.record(nanoseconds: now - slot.dueAt) }
    }

    private func done(_ number: UInt32) {
        onTheirWay -= 1
        if phase == .measuring { messages += 1 }
        guard phase == .warming || phase == .measuring else {
            if phase == .draining, onTheirWay == 0 { complete() }
            return
        }
        guard case .closed = plan.pace else { return }
        _ = send(from: Int(slots[Int(number) % Self.slots].sender), dueAt: monotonicNow())
        if hasSentAll { stopMeasuring() }
    }

    // MARK: - Measuring

    private var bytes: Int { clients.reduce(0) { $0 + $1.bytesIn + $1.bytesOut } }

    private func measure() {
        guard phase == .warming else { return }
        do {
            try meter?.requireRunning()
        } catch {
            return end(.failure(error))
        }
        phase = .measuring
        commits?.mark()
        baseline = (meter?.cpuSeconds ?? 0, ProcessMeter.own.cpuSeconds, bytes)
        measuredFrom = monotonicNow()
        after(plan.measured) { [self] in stopMeasuring() }
        after(Self.keepAliveEvery) { [self] in keepAlive() }
        report()
    }

    private static let keepAliveEvery = Duration.seconds(60)

    private func keepAlive() {
        guard phase == .measuring else { return }
        for client in clients { client.keepAlive() }
        after(Self.keepAliveEvery) { [self] in keepAlive() }
    }

    private func report() {
        guard phase == .measuring else { return }
        let seconds = Double(monotonicNow() - measuredFrom) / 1e9
        if seconds > 0.5 {
            let rate = Int(Double(messages) / seconds)
            Progress.show("\(plan.name): \(rate) messages/s after \(Int(seconds.rounded())) s")
        }
        after(.seconds(1)) { [self] in report() }
    }

    private func stopMeasuring() {
        guard phase == .measuring else { return }
        do {
            try meter?.requireRunning()
        } catch {
            return end(.failure(error))
        }
        let now = monotonicNow()
        if case .open(let perSecond) = plan.pace { sendDue(by: now, perSecond) }
        measuredUntil = now
        phase = .draining
        commits?.mark()
        let seconds = Double(now - measuredFrom) / 1e9
        let count = max(1, Double(messages))
        let cpu = (meter?.cpuSeconds ?? 0) - baseline.cpu
        figures = LoadFigures(
            seconds: seconds,
            endedAtCap: hasSentAll,
            messages: messages,
            messagesPerSecond: Double(messages) / seconds,
            deliveriesPerSecond: Double(deliveries) / seconds,
            delivery: Latency(latency),
            bytesPerMessage: Double(bytes - baseline.bytes) / count,
            driverCores: (ProcessMeter.own.cpuSeconds - baseline.own) / seconds,
            server: meter.map {
                ServerFigures(
                    cores: cpu / seconds,
                    cpuMicrosecondsPerMessage: cpu * 1e6 / count,
                    rssMiB: Double($0.residentBytes) / 1_048_576
                )
            }
        )
        if onTheirWay == 0 { return complete() }
        after(.seconds(10)) { [self] in complete() }
    }

    private func complete() {
        guard phase == .draining, var figures else { return }
        figures.unsent = enterWhatNeverCame()
        figures.delivery = Latency(latency)
        if case .group = plan.shape { figures.lastDelivery = Latency(lastLatency) }
        figures.server?.commitsPerSecond = commits?.perSecond
        figures.lost = onTheirWay
        figures.sent = Int(nextNumber)
        end(.success(figures))
    }

    /// In an open loop, records the current age of each message of the measured window that was
    /// sent but has not arrived, or that was due but not sent.
    ///
    /// - Returns: the number of messages that were due in the measured window but not sent.
    private func enterWhatNeverCame() -> Int {
        guard case .open(let perSecond) = plan.pace else { return 0 }
        let now = monotonicNow()
        for slot in slots where slot.missing > 0 {
            record(slot, reached: slot.missing, isLast: true, at: now)
        }
        guard !hasSentAll else { return 0 }
        var unsent = 0
        var number = UInt64(nextNumber)
        var dueAt = dueTime(of: number, perSecond)
        while dueAt < measuredUntil {
            if dueAt >= measuredFrom { unsent += 1 }
            record(Slot(dueAt: dueAt), reached: receivers, isLast: true, at: now)
            number += 1
            dueAt = dueTime(of: number, perSecond)
        }
        return unsent
    }
}

/// A first-in, first-out queue of numbers.
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
