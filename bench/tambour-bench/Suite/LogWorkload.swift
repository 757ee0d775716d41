import Foundation
import TambourNet
import TambourProtocol

/// W9: the write-ahead log under W1 at full speed while others page through history: a reader's
/// snapshot keeps a checkpoint from finishing, and a log that is never reset grows for ever.
struct LogWorkload: Workload {
    private static let pairs = 50

    let name = "W9"
    let title = "the write-ahead log under W1 with W5 beside it"

    let claims: [Claim] = [
        .figure("largest log, MiB", "tambour, largest log MiB", .atMost(256))
    ]

    func round(in bench: Bench) async throws -> Figures {
        let folder = try bench.folder("tambour")
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let accounts = try server.makeUsers(2 * Self.pairs, firstPhone: 79_990_000_000)
        let corpus = bench.corpus
        let measured: Duration = bench.isFull ? .seconds(300) : max(bench.measured, .seconds(10))
        let run = LoadRun(
            LoadPlan(
                name: "W9 tambour",
                address: server.process.address,
                shape: .pairs(Self.pairs),
                pace: .closed(window: 16),
                warmUp: .seconds(3),
                measured: measured,
                maxMessages: 100_000_000
            ),
            corpus: corpus,
            meter: server.process.meter
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                chat: accounts[index].dialog(with: accounts[index ^ 1])
            )
        }
        let log = LogSize(folder.appendingPathComponent("tambour.db-wal").path)
        async let load = run.perform()
        // There has to be something to page through.
        try await Task.sleep(for: .seconds(2))
        let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
        let history = try HistoryRun(
            address: server.process.address.description,
            accounts: [accounts[0], accounts[1], accounts[0], accounts[1]],
            chat: accounts[0].dialog(with: accounts[1]),
            times: [now - 200, now - 100, now],
            page: 50
        )
        log.start()
        let pages = try await history.perform(measured)
        let result = try await load
        var figures: Figures = [:]
        figures.add(result, as: "tambour")
        figures["tambour, pages/s beside it"] = pages.pagesPerSecond
        figures["tambour, largest log MiB"] = Double(log.largest()) / 1_048_576
        return figures
    }
}

/// Looks at a file's size ten times a second.
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
