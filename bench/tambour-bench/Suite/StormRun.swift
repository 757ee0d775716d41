import TambourFraming
import TambourProtocol

/// The results of a storm of logins.
struct StormFigures: Sendable {
    var seconds: Double
    var cpuSeconds: Double
    var driverCores: Double
    /// The latency of each login, from the moment it started to connect.
    var latency: Latency
    var bytesPerLogin: Double
    /// Logins that were rejected, cut off, or not answered in time.
    var failed: Int
    var peakMiB: Double
    /// Measured one second after the last login, with all clients connected.
    var residentMiB: Double
}

/// Performs the handshake, logs in with a login mark, and finishes when the reply arrives.
final class StormClient: LoadClient {
    /// The client checks one in this number of replies. A driver that decodes all replies would
    /// measure its own speed.
    private static let checkedEvery = 64

    private let account: Account
    private let mark: Int64
    private var decoder = FrameDecoder(limits: .standard)
    private let missed: Int
    /// 0 until the reply arrives.
    private(set) var finishedAt: UInt64 = 0

    init(index: Int, sink: any LoadSink, account: Account, mark: Int64, missed: Int) {
        self.account = account
        self.mark = mark
        self.missed = missed
        super.init(index: index, sink: sink)
        decoder.authenticated = true
    }

    override func opened() {
        send(
            .sessionInit,
            SessionInitRequest(deviceID: "bench-\(account.userID.rawValue)").encoded(),
            sequence: 0
        )
    }

    override func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        var offset = 0
        while let frame = try decoder.next(in: bytes, from: &offset) {
            guard frame.header.command != PacketCommand.request.rawValue else { continue }
            guard frame.header.command == PacketCommand.ok.rawValue else {
                throw BenchError("opcode \(frame.header.opcode) was refused")
            }
            if frame.header.sequence == 0 {
                send(.login, account.loginRequest(since: mark).encoded(), sequence: 1)
            } else {
                if index % Self.checkedEvery == 0 { try check(frame) }
                finishedAt = monotonicNow()
                sink.ready(self)
            }
        }
        return offset
    }

    /// Checks that the reply contains only the chat with the missed messages.
    private func check(_ frame: Frame) throws {
        let payload = try frame.payload(limits: .standard)
        let chats = try LoginReply.decode(payload, limits: .standard).chats
        guard chats.count == 1, chats[0].newMessages == Int64(missed) else {
            let unread = chats.map { $0.newMessages ?? 0 }
            throw BenchError(
                "the login brought chats with \(unread) unread, not one with \(missed)"
            )
        }
    }

    private func send(_ opcode: Opcode, _ payload: [UInt8], sequence: UInt16) {
        var packet: [UInt8] = []
        encodePacket(
            command: .request,
            sequence: sequence,
            opcode: opcode.rawValue,
            payload: payload,
            into: &packet
        )
        write(packet)
    }
}

/// Logs all clients in, a given number at a time. A failed login is counted and not retried.
final class StormRun: Fleet<StormFigures>, @unchecked Sendable {
    private let label: String
    private let meter: ProcessMeter
    private var startedAt: UInt64 = 0
    private var cpu = 0.0
    private var own = 0.0
    private var failed: Set<Int> = []

    init(
        _ server: ServerProcess,
        _ label: String,
        count: Int,
        logins: Int,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        self.label = label
        meter = server.meter
        super.init(
            count: count,
            address: server.address,
            sources: (1...8).map { "127.0.0.\($0)" },
            logins: logins,
            makeClient: makeClient
        )
    }

    override var name: String { "W6 \(label)" }

    override func begin() {
        cpu = meter.cpuSeconds
        own = ProcessMeter.own.cpuSeconds
        startedAt = monotonicNow()
        super.begin()
    }

    override func failed(_ client: LoadClient, _ reason: String) {
        guard !isOver, failed.insert(client.index).inserted else { return }
        if failed.count == 1 { Progress.note("\(name): client \(client.index): \(reason)") }
        if (client as? StormClient)?.finishedAt == 0 { ready(client) }
    }

    override func late(_ target: Int) {
        for case let client as StormClient in clients where client.finishedAt == 0 {
            failed(client, "no answer in time")
        }
    }

    override func allReady() {
        let seconds = Double(monotonicNow() - startedAt) / 1e9
        let used = meter.cpuSeconds - cpu
        let driver = (ProcessMeter.own.cpuSeconds - own) / seconds
        let peak = Double(meter.peakResidentBytes) / 1_048_576
        var latency = LatencySamples()
        var bytes = 0
        for case let client as StormClient in clients {
            if client.finishedAt > 0 {
                latency.record(nanoseconds: client.finishedAt - client.dialedAt)
            }
            bytes += client.bytesIn
        }
        let latencies = Latency(latency)
        let perLogin = Double(bytes) / Double(clients.count)
        after(.seconds(1)) { [self] in
            end(
                .success(
                    StormFigures(
                        seconds: seconds,
                        cpuSeconds: used,
                        driverCores: driver,
                        latency: latencies,
                        bytesPerLogin: perLogin,
                        failed: failed.count,
                        peakMiB: peak,
                        residentMiB: Double(meter.residentBytes) / 1_048_576
                    )
                )
            )
        }
    }
}
