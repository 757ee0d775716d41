import Foundation
import TambourProtocol

/// W6: power returns in a city. 10,000 phones connect at once, each with ten missed messages.
///
/// All runs use one server process. In the first run all clients log in slowly, which fills the
/// caches and gives the steady state. In the second run they log in one after another, which shows
/// the cost of a single login. A single login pays for its own commit, while simultaneous logins
/// share commits. In the third run all log in at once.
struct StormWorkload: Workload {
    private static let clients = 10_000
    private static let missed = 10

    let name = "W6"
    let title = "10,000 clients reconnect at once, 10 missed messages each"

    func claims(isFull: Bool) -> [Claim] {
        [
            .ratio(
                "server CPU at once, of one after another",
                "at once, tambour, server CPU s",
                to: "one by one, tambour, server CPU s",
                .atMost(1.5)
            ),
            .figure(
                "clients that needed a second try",
                "at once, tambour, failed",
                .atMost(0),
                isStrict: true
            ),
            .ratio(
                "peak RSS of the storm, of the steady state before it",
                "at once, tambour, peak RSS MiB",
                to: "slowly, tambour, RSS MiB",
                .atMost(1.5)
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        let seed = try Self.seed(bench)
        let folder = try bench.folder("storm").appendingPathComponent("data")
        try Seeder.copy(seed, to: folder)
        let accounts = try Account.read(folder.appendingPathComponent("accounts").path)
        let text = try String(contentsOf: folder.appendingPathComponent("mark"), encoding: .utf8)
        guard let mark = Int64(text) else { throw BenchError("the seed's mark is \(text)") }

        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let counters = ServerCounters(dataDirectory: folder.path)
        var figures: Figures = [:]
        for (label, logins) in [("slowly", 16), ("one by one", 1), ("at once", Self.clients)] {
            let prefix = "\(label), tambour"
            try await Self.everybodyGone(counters)
            if label == "at once", !server.process.meter.resetPeak() {
                Progress.note("W6: the kernel keeps the peak of the server's whole life")
            }
            let commits = try counters.commits()
            let run = StormRun(server.process, label, count: Self.clients, logins: logins) {
                index,
                sink in
                StormClient(
                    index: index,
                    sink: sink,
                    account: accounts[index],
                    mark: mark,
                    missed: Self.missed
                )
            }
            let result = try await run.perform()
            figures["\(prefix), commits"] = try counters.commits() - commits
            figures["\(prefix), server CPU s"] = result.cpuSeconds
            figures["\(prefix), driver cores"] = result.driverCores
            figures["\(prefix), seconds"] = result.seconds
            figures["\(prefix), p50 ms"] = result.latency.p50
            figures["\(prefix), p99 ms"] = result.latency.p99
            figures["\(prefix), slowest ms"] = result.latency.max
            figures["\(prefix), bytes/login"] = result.bytesPerLogin
            figures["\(prefix), failed"] = Double(result.failed)
            figures["\(prefix), RSS MiB"] = result.residentMiB
            if label == "at once" { figures["\(prefix), peak RSS MiB"] = result.peakMiB }
        }
        return figures
    }

    /// Waits until the server has noticed that all clients have disconnected.
    private static func everybodyGone(_ counters: ServerCounters) async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < deadline {
            let all = try counters.all()
            if all["tambour_connections_opened_total"] == all["tambour_connections_closed_total"] {
                return
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw BenchError("the server still has connections half a minute after everybody left")
    }

    /// Seeds a dialog between each client and one of the writers, who has written ten messages
    /// since the login mark. The seeded clients do not reply, because a reply would mark these
    /// messages as read.
    private static func seed(_ bench: Bench) throws -> URL {
        try Seeder.cached("storm-2", in: bench.cache) { folder in
            Progress.note("W6: seeding \(clients) users")
            let perWriter = 100
            let accounts = try TambourServer.makeUsers(
                clients + clients / perWriter,
                firstPhone: 79_990_000_000,
                program: bench.tambourd,
                directory: folder
            )
            let batches = 2 * clients / perWriter
            let seeder = try Seeder(folder, corpus: bench.corpus, batches: batches)
            func write(_ messages: Int, onlyWriters: Bool) throws {
                for first in stride(from: 0, to: clients, by: perWriter) {
                    let writer = accounts[clients + first / perWriter].userID
                    try seeder.batch { tx in
                        for client in accounts[first..<(first + perWriter)] {
                            try seeder.dialog(
                                client.userID,
                                writer,
                                messages: messages,
                                from: onlyWriters ? writer : nil,
                                in: tx
                            )
                        }
                    }
                }
            }
            try write(20, onlyWriters: false)
            try Data("\(seeder.clock)".utf8).write(to: folder.appendingPathComponent("mark"))
            try write(missed, onlyWriters: true)
        }
    }
}
