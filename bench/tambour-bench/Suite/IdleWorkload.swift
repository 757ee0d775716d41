import Foundation
import TambourNet
import TambourProtocol
import TambourTesting

/// W3: measures the cost of logged-in connections that send nothing, such as idle phones.
///
/// At the end all of these connections close at once. Meanwhile the server posts a block to every
/// lane every 10 ms; the delay of a block shows how much a mass disconnect slows the remaining
/// users. One more connection sends pings during this time.
struct IdleWorkload: Workload {
    static let steps = [1_000, 10_000, most]
    private static let most = 18_000

    let name = "W3"
    let title = "idle logged-in connections"

    func claims(isFull: Bool) -> [Claim] {
        [
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
                "all close at once: longest wait of a block on a lane, ms",
                "closing, tambour, longest lane delay ms",
                .atMost(100)
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        for name in bench.rotated(["relay", "tambour"]) {
            if name == "tambour" {
                try await tambour(bench, into: &figures)
            } else {
                let relay = try Relay(rows: "none", in: bench)
                let run = IdleRun(Self.steps, relay.process, "W3 relay", watched: .seconds(2)) {
                    index,
                    sink in
                    RelayClient(index: index, sink: sink, target: .nobody)
                }
                figures.add(try await run.perform(), as: "relay")
                _ = try relay.stop()
            }
        }
        return figures
    }

    private func tambour(_ bench: Bench, into figures: inout Figures) async throws {
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
        let lanes = LaneProbe(ServerCounters(dataDirectory: folder.path))
        let run = IdleRun(
            Self.steps,
            server.process,
            "W3 tambour",
            watched: .seconds(bench.isFull ? 10 : 2)
        ) { index, sink in
            TambourClient(index: index, sink: sink, account: accounts[index], corpus: corpus)
        }
        run.whenClosing = {
            lanes.start()
            probe.start()
        }
        figures.add(try await run.perform(), as: "tambour")
        figures["closing, tambour, slowest PING ms"] = try await probe.slowest()
        if let longest = try await lanes.slowest() {
            figures["closing, tambour, longest lane delay ms"] = longest
        }
    }
}

/// The cost of the connections of one step.
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

/// Logs clients in step by step and measures the server after each step.
final class IdleRun: Fleet<[IdleFigures]>, @unchecked Sendable {
    private let steps: [Int]
    private let meter: ProcessMeter
    private let label: String
    /// The observation time of the last and largest step; each other step takes two seconds.
    private let watched: Duration
    /// Called immediately before all clients close.
    var whenClosing: () -> Void = {}

    private var figures: [IdleFigures] = []
    private var baseline = 0

    init(
        _ steps: [Int],
        _ server: ServerProcess,
        _ label: String,
        watched: Duration,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) {
        self.steps = steps
        self.label = label
        self.watched = watched
        meter = server.meter
        super.init(
            count: steps.max() ?? 0,
            address: server.address,
            sources: (1...8).map { "127.0.0.\($0)" },
            makeClient: makeClient
        )
    }

    override var name: String { label }

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
            // Waits until the work that follows the logins is done.
            after(.seconds(1)) { [self] in
                let (idle, idleSince) = (meter.cpuSeconds, monotonicNow())
                after(step == steps.last ? watched : .seconds(2)) { [self] in
                    let idleSeconds = Double(monotonicNow() - idleSince) / 1e9
                    let new = Double(step - before)
                    figures.append(
                        IdleFigures(
                            connections: step,
                            kibPerConnection: Double(meter.residentBytes - baseline) / 1_024
                                / Double(step),
                            idleCores: (meter.cpuSeconds - idle) / idleSeconds,
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

/// Repeats an action every 10 ms for three seconds on a thread, and records the longest time.
///
/// `@unchecked Sendable`: the thread owns `slowestMs` until the stream `ends` finishes.
private class Watch: @unchecked Sendable {
    private let (ends, end) = AsyncStream.makeStream(of: Void.self)
    private var slowestMs: Double?

    /// Performs the action and returns its time in milliseconds; nil if there is no result.
    ///
    /// - Parameter due: The scheduled start; the time includes a delay that the previous call
    ///   caused.
    func look(due: UInt64) throws -> Double? { nil }

    final func start() {
        Thread.detachNewThread { [self] in
            let last = monotonicNow() + 3_000_000_000
            var due = monotonicNow()
            while monotonicNow() < last {
                do {
                    guard let milliseconds = try look(due: due) else { break }
                    slowestMs = max(slowestMs ?? 0, milliseconds)
                } catch {
                    slowestMs = .infinity
                    break
                }
                due += 10_000_000
                let now = monotonicNow()
                if due > now { usleep(UInt32((due - now) / 1_000)) }
            }
            end.finish()
        }
    }

    /// Waits until the watch ends, and returns the longest time in milliseconds.
    final func slowest() async throws -> Double? {
        for await _ in ends {}
        return slowestMs
    }
}

/// A connection that sends pings, to show the delay for a remaining user.
private final class Probe: Watch, @unchecked Sendable {
    private let client: WireClient

    init(_ address: String, _ account: Account) throws {
        client = try WireClient(address: address)
        _ = try client.call(SessionInitRequest(deviceID: "probe"))
        _ = try client.call(account.loginRequest())
    }

    override func look(due: UInt64) throws -> Double? {
        _ = try client.call(PingRequest())
        return Double(monotonicNow() - due) / 1e6
    }
}

/// Requests the longest lane delay from the server, which posts a block to every lane.
private final class LaneProbe: Watch, @unchecked Sendable {
    private let counters: ServerCounters

    init(_ counters: ServerCounters) { self.counters = counters }

    override func look(due: UInt64) throws -> Double? {
        let metric = "tambour_lane_delay_seconds{"
        return try counters.all().filter { $0.key.hasPrefix(metric) }.values.max().map {
            $0 * 1_000
        }
    }
}
