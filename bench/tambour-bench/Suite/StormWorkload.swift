import Foundation
import Histogram
import TambourProtocol

/// W6: the power comes back in a city. 10,000 phones connect at once, each with ten messages missed.
///
/// One that is refused, cut off or left without an answer ends the benchmark: none gets a second try.
struct StormWorkload: Workload {
    private static let clients = 10_000
    private static let missed = 10

    let name = "W6"
    let title = "10,000 clients reconnect at once, 10 missed messages each"

    let claims: [Claim] = [
        .ratio(
            "server CPU at once, of one after another",
            "at once, tambour, server CPU s",
            to: "one by one, tambour, server CPU s",
            .atMost(1.5)
        ),
        .ratio(
            "peak RSS, of the steady state afterwards",
            "at once, tambour, peak RSS MiB",
            to: "at once, tambour, steady RSS MiB",
            .atMost(1.5)
        ),
    ]

    func round(in bench: Bench) async throws -> Figures {
        let seed = try Self.seed(bench)
        let folder = try bench.folder("storm").appendingPathComponent("data")
        try Seeder.copy(seed, to: folder)
        let accounts = try Account.read(folder.appendingPathComponent("accounts").path)
        let text = try String(contentsOf: folder.appendingPathComponent("mark"), encoding: .utf8)
        let mark = Int64(text) ?? 0

        var figures: Figures = [:]
        // One by one first: it also warms the caches for both alike.
        for (label, logins) in [("warming", 1), ("one by one", 1), ("at once", Self.clients)] {
            let server = try TambourServer(program: bench.tambourd, directory: folder)
            defer { server.process.stop() }
            let count = label == "warming" ? 500 : Self.clients
            let run = StormRun(server.process, count: count, logins: logins) { index, sink in
                StormClient(index: index, sink: sink, account: accounts[index], mark: mark)
            }
            let result = try await run.perform()
            if label == "warming" { continue }
            let prefix = "\(label), tambour"
            figures["\(prefix), server CPU s"] = result.cpuSeconds
            figures["\(prefix), seconds"] = result.seconds
            figures["\(prefix), p50 ms"] = result.latency.p50
            figures["\(prefix), p99 ms"] = result.latency.p99
            figures["\(prefix), bytes/login"] = result.bytesPerLogin
            figures["\(prefix), peak RSS MiB"] = result.peakMiB
            figures["\(prefix), steady RSS MiB"] = result.steadyMiB
        }
        return figures
    }

    /// Pairs with ten messages each way; the mark is what a login before them returned.
    private static func seed(_ bench: Bench) throws -> URL {
        try Seeder.cached("storm-1", in: bench.cache) { folder in
            bench.say("W6: seeding \(clients) users")
            let accounts = try TambourServer.makeUsers(
                clients,
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let lines = accounts.map { "\($0.phone) \($0.userID.rawValue) \($0.token)\n" }.joined()
            try Data(lines.utf8).write(to: folder.appendingPathComponent("accounts"))
            let seeder = try Seeder(folder, corpus: bench.corpus, batches: 2 * clients / 100)
            func write(_ messages: Int) throws {
                for first in stride(from: 0, to: clients, by: 100) {
                    try seeder.batch { tx in
                        for index in stride(from: first, to: first + 100, by: 2) {
                            try seeder.dialog(
                                accounts[index].userID,
                                accounts[index + 1].userID,
                                messages: messages,
                                in: tx
                            )
                        }
                    }
                }
            }
            try write(20)
            try Data("\(seeder.clock)".utf8).write(to: folder.appendingPathComponent("mark"))
            // Both of a pair write in turn: twenty are ten that each has missed.
            try write(2 * missed)
        }
    }
}

/// What a storm of logins came to.
struct StormFigures: Sendable {
    var seconds: Double
    var cpuSeconds: Double
    var latency: Latency
    var bytesPerLogin: Double
    var peakMiB: Double
    var steadyMiB: Double
}

/// Says hello, logs in with a mark, and is done when the answer is there.
final class StormClient: LoadClient {
    private let account: Account
    private let mark: Int64
    private var decoder = FrameDecoder(limits: .standard)
    private var isLoggedIn = false
    private(set) var finishedAt: UInt64 = 0

    init(index: Int, sink: any LoadSink, account: Account, mark: Int64) {
        self.account = account
        self.mark = mark
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
                finishedAt = monotonicNow()
                sink.ready(self)
            }
        }
        return offset
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

/// Logs everybody in, as many at a time as it is told.
final class StormRun: Fleet<StormFigures>, @unchecked Sendable {
    private let meter: ProcessMeter
    private var startedAt: UInt64 = 0
    private var cpu = 0.0

    init(
        _ server: ServerProcess,
        count: Int,
        logins: Int,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        meter = server.meter
        super.init(
            count: count,
            address: server.address,
            sources: (1...8).map { "127.0.0.\($0)" },
            logins: logins,
            makeClient: makeClient
        )
    }

    override func begin() {
        cpu = meter.cpuSeconds
        startedAt = monotonicNow()
        super.begin()
    }

    override func allReady() {
        let seconds = Double(monotonicNow() - startedAt) / 1e9
        let used = meter.cpuSeconds - cpu
        let peak = Double(meter.peakResidentBytes) / 1_048_576
        var latency = Latency.histogram()
        var bytes = 0
        for case let client as StormClient in clients {
            _ = latency.record(max(1, (client.finishedAt - startedAt) / 1_000))
            bytes += client.bytesIn
        }
        let count = clients.count
        after(.seconds(1)) { [self] in
            end(
                .success(
                    StormFigures(
                        seconds: seconds,
                        cpuSeconds: used,
                        latency: Latency(latency),
                        bytesPerLogin: Double(bytes) / Double(count),
                        peakMiB: peak,
                        steadyMiB: Double(meter.residentBytes) / 1_048_576
                    )
                )
            )
        }
    }
}
