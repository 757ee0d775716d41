import Foundation
import TambourNet
import TambourProtocol

/// W9: the size of the write-ahead log under W1 at full speed, while other connections page through
/// history. A reader's snapshot prevents a checkpoint from finishing, and without a finished
/// checkpoint the log grows without bound.
struct LogWorkload: Workload {
    private static let pairs = 50

    let name = "W9"
    let title = "the write-ahead log under W1 with W5 beside it"

    let isOnce = true

    func claims(isFull: Bool) -> [Claim] {
        [
            .figure(
                "largest log, MiB",
                "tambour, largest log MiB",
                .atMost(256),
                unjudged: isFull ? nil : "not judged (10 s)"
            )
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        let seed = try HistorySeed(bench)
        let folder = try bench.folder("log").appendingPathComponent("data")
        Progress.note("W9: copying the messages of W5")
        try Seeder.copy(seed.folder, to: folder)
        // Removes the seed's accounts, because the writers' accounts go into a file of the same
        // name.
        try FileManager.default.removeItem(at: folder.appendingPathComponent("accounts"))
        defer { try? FileManager.default.removeItem(at: folder) }
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let log = LogSize(folder.appendingPathComponent("tambour.db-wal").path)
        log.start()
        let accounts = try server.makeUsers(2 * Self.pairs, firstPhone: 79_980_000_000)
        let corpus = bench.corpus
        let readers = seed.readers(of: HistorySeed.longest)
        let history = try HistoryRun(
            address: server.process.address.description,
            accounts: readers + readers,
            chat: readers[0].dialog(with: readers[1]),
            times: seed.times(of: HistorySeed.longest),
            page: 50
        )
        let warmUp = Duration.seconds(3)
        let measured: Duration = bench.isFull ? .seconds(300) : max(bench.measured, .seconds(10))
        async let pages = history.perform(warmUp + measured)
        var figures: Figures = [:]
        try await bench.load(
            server,
            LoadPlan(
                name: "W9 tambour",
                address: server.process.address,
                shape: .pairs(Self.pairs),
                pace: .closed(window: 16),
                warmUp: warmUp,
                measured: measured
            ),
            as: "tambour",
            into: &figures
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                chat: accounts[index].dialog(with: accounts[index ^ 1])
            )
        }
        let beside = try await pages
        figures["tambour, pages/s beside it"] = beside.pagesPerSecond
        figures["tambour, largest log MiB"] = Double(log.largest()) / 1_048_576
        return figures
    }
}

/// Checks a file's size ten times a second.
///
/// `@unchecked Sendable`: the timer's queue owns `most`.
private final class LogSize: @unchecked Sendable {
    private let path: String
    private let queue = DispatchQueue(label: "bench.log")
    private var timer: (any DispatchSourceTimer)?
    private var most = 0

    init(_ path: String) { self.path = path }

    func start() {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { [self] in
            let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
            most = max(most, size ?? 0)
        }
        timer.schedule(deadline: .now(), repeating: .milliseconds(100))
        timer.activate()
        self.timer = timer
    }

    func largest() -> Int {
        queue.sync {
            timer?.cancel()
            return most
        }
    }
}
