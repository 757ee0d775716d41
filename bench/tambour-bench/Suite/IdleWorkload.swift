import Foundation
import TambourNet
import TambourProtocol
import TambourTesting

/// W3: phones in pockets. Logged-in connections that say nothing, and what they cost.
///
/// At the end all of them close at once, while one more connection pings every 10 ms: what it waits
/// is what a mass departure costs those who stay.
struct IdleWorkload: Workload {
    static let steps = [1_000, 10_000, most]
    private static let most = 18_000

    let name = "W3"
    let title = "idle logged-in connections"

    let claims: [Claim] = [
        .figure(
            "10,000: KiB a connection",
            "10000 connections, tambour, KiB/connection",
            .atMost(4),
            stretch: .atMost(2)
        ),
        .figure(
            "18,000: KiB a connection",
            "18000 connections, tambour, KiB/connection",
            .atMost(4),
            stretch: .atMost(2)
        ),
        .figure(
            "18,000: idle processor time, cores",
            "18000 connections, tambour, idle cores",
            .atMost(0.01)
        ),
        .figure(
            "all close at once: another's slowest PING, ms",
            "closing, tambour, slowest PING ms",
            .atMost(100)
        ),
    ]

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        let relay = try bench.relay(rows: "none")
        defer { relay.stop() }
        let relayRun = IdleRun(Self.steps, relay, "W3 relay") { index, sink in
            RelayClient(index: index, sink: sink, target: .nobody)
        }
        figures.add(try await relayRun.perform(), as: "relay")

        let folder = try bench.folder("tambour")
        let accounts = try TambourServer.makeUsers(
            Self.most + 1,
            firstPhone: 79_990_000_000,
            program: bench.tambourd,
            directory: folder
        )
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let corpus = bench.corpus
        let probe = try Probe(server.process.address.description, accounts[Self.most])
        let run = IdleRun(Self.steps, server.process, "W3 tambour") { index, sink in
            TambourClient(index: index, sink: sink, account: accounts[index], corpus: corpus)
        }
        run.whenClosing = { probe.start() }
        figures.add(try await run.perform(), as: "tambour")
        figures["closing, tambour, slowest PING ms"] = try await probe.slowestMs()
        return figures
    }
}

/// What the connections of one step cost.
struct IdleFigures: Sendable {
    var connections: Int
    var kibPerConnection: Double
    var idleCores: Double
    var loginsPerSecond: Double
    var cpuMicrosecondsPerLogin: Double
}

extension Figures {
    fileprivate mutating func add(_ steps: [IdleFigures], as label: String) {
        for step in steps {
            let prefix = "\(step.connections) connections, \(label)"
            self["\(prefix), KiB/connection"] = step.kibPerConnection
            self["\(prefix), idle cores"] = step.idleCores
            self["\(prefix), logins/s"] = step.loginsPerSecond
            self["\(prefix), CPU µs/login"] = step.cpuMicrosecondsPerLogin
        }
    }
}

/// Logs clients in step by step and looks at the server after each.
final class IdleRun: Fleet<[IdleFigures]>, @unchecked Sendable {
    private let steps: [Int]
    private let meter: ProcessMeter
    private let label: String
    /// Called right before all of them close.
    var whenClosing: () -> Void = {}

    private var figures: [IdleFigures] = []
    private var baseline = 0

    init(
        _ steps: [Int],
        _ server: ServerProcess,
        _ label: String,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        self.steps = steps
        self.label = label
        meter = server.meter
        super.init(
            count: steps.max() ?? 0,
            address: server.address,
            sources: (1...8).map { "127.0.0.\($0)" },
            makeClient: makeClient
        )
    }

    override func begin() {
        baseline = meter.residentBytes
        next()
    }

    private func next() {
        guard figures.count < steps.count else {
            whenClosing()
            return end(.success(figures))
        }
        let step = steps[figures.count]
        let (before, cpu, startedAt) = (readyCount, meter.cpuSeconds, monotonicNow())
        logIn(step) { [self] in
            let seconds = Double(monotonicNow() - startedAt) / 1e9
            let used = meter.cpuSeconds - cpu
            // What logging in left behind has a moment to go.
            after(.seconds(1)) { [self] in
                let idle = meter.cpuSeconds
                after(.seconds(2)) { [self] in
                    let new = Double(step - before)
                    figures.append(
                        IdleFigures(
                            connections: step,
                            kibPerConnection: Double(meter.residentBytes - baseline) / 1_024
                                / Double(step),
                            idleCores: (meter.cpuSeconds - idle) / 2,
                            loginsPerSecond: new / seconds,
                            cpuMicrosecondsPerLogin: used * 1e6 / new
                        )
                    )
                    next()
                }
            }
        }
    }
}

/// A connection that pings every 10 ms for three seconds and remembers the slowest answer.
///
/// `@unchecked Sendable`: the client is the thread's from `start` on.
private final class Probe: @unchecked Sendable {
    private let client: WireClient
    private var finished: AsyncStream<Double>.Continuation?
    private let results: AsyncStream<Double>

    init(_ address: String, _ account: Account) throws {
        client = try WireClient(address: address)
        _ = try client.call(SessionInitRequest(deviceID: "probe"))
        _ = try client.call(account.loginRequest())
        (results, finished) = AsyncStream.makeStream(of: Double.self)
    }

    func start() {
        Thread.detachNewThread { [self] in
            var slowest = 0.0
            let end = monotonicNow() + 3_000_000_000
            var due = monotonicNow()
            while monotonicNow() < end {
                guard (try? client.call(PingRequest())) != nil else {
                    slowest = .infinity
                    break
                }
                // From when it was due: a late one is not excused by the one before it.
                slowest = max(slowest, Double(monotonicNow() - due) / 1e6)
                due += 10_000_000
                let now = monotonicNow()
                if due > now { usleep(UInt32((due - now) / 1_000)) }
            }
            finished?.yield(slowest)
            finished?.finish()
        }
    }

    func slowestMs() async throws -> Double {
        for await slowest in results { return slowest }
        throw BenchError("the probe did not run")
    }
}
