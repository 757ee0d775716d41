import Foundation
import TambourNet

/// W5: a user scrolls up. The user reads pages of 50 messages from varying places in the middle of
/// a chat. The longest chat has a million messages, in a database of ten million.
struct HistoryWorkload: Workload {
    private static let page = 50

    let name = "W5"
    let title = "a page of 50 messages from the middle of a chat; 10 M messages in all"

    func claims(isFull: Bool) -> [Claim] {
        [
            .ratio(
                "1 M messages, 8 connections: pages/s, of the C reader",
                "1000000 messages, tambour, pages/s",
                to: "1000000 messages, C reader, pages/s",
                .atLeast(1.0 / 3)
            ),
            .ratio(
                "1 M messages, 1 connection: pages/s, of the C reader",
                "1000000 messages, tambour, 1 connection, pages/s",
                to: "1000000 messages, C reader, pages/s",
                .atLeast(1.0 / 3)
            ),
            // The cost of a page must not grow with the length of the chat. The bound exceeds 1
            // because a chat of a thousand messages is compact in the file and therefore cheaper to
            // read.
            .ratio(
                "flat: server CPU a page of 1 M messages, of 1,000 messages",
                "1000000 messages, tambour, server CPU µs/page",
                to: "1000 messages, tambour, server CPU µs/page",
                .atMost(1.5)
            ),
            .ratio(
                "1 M messages: bytes of a page, of its JSON",
                "1000000 messages, tambour, bytes/page",
                to: "1000000 messages, as JSON, bytes/page",
                .atMost(0.45)
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        let seed = try HistorySeed(bench)
        // The workload only reads pages, so it uses the seed itself.
        let server = try TambourServer(program: bench.tambourd, directory: seed.folder)
        defer { server.process.stop() }
        var figures: Figures = [:]
        for length in HistorySeed.lengths {
            let prefix = "\(length) messages"
            let readers = seed.readers(of: length)
            for connections in length == HistorySeed.longest ? [1, 8] : [8] {
                Progress.show("W5: \(prefix), \(connections) connections")
                let run = try HistoryRun(
                    address: server.process.address.description,
                    accounts: (0..<connections).map { readers[$0 % 2] },
                    chat: readers[0].dialog(with: readers[1]),
                    times: seed.times(of: length),
                    page: Self.page
                )
                _ = try await run.perform(.milliseconds(300))
                let stretch = try Stretch(server.process.meter)
                let result = try await run.perform(bench.measured)
                let label =
                    connections == 1 ? "\(prefix), tambour, 1 connection" : "\(prefix), tambour"
                figures["\(label), server CPU µs/page"] =
                    stretch.cpuSeconds * 1e6 / Double(result.pages)
                figures["\(label), pages/s"] = result.pagesPerSecond
                figures["\(label), p50 ms"] = result.p50
                figures["\(label), p99 ms"] = result.p99
                figures["\(label), driver cores"] = result.driverCores
                let sizes = try run.sizes()
                figures["\(label), bytes/page"] = sizes.wire
                figures["\(prefix), as JSON, bytes/page"] = sizes.json
            }
            let reader = try Tool.run(
                "\(bench.limits)/page",
                [
                    "--db", seed.folder.appendingPathComponent("tambour.db").path,
                    "--chat", "\(seed.chatKey(of: length))",
                    "--pivots", seed.pivots(of: length).path, "--count", "\(Self.page)",
                    "--repeat", bench.isFull ? "50000" : "20000",
                ]
            )
            figures["\(prefix), C reader, pages/s"] = reader["pages_per_s"]
            figures["\(prefix), C reader, CPU µs/page"] = reader["cpu_us"]
        }
        return figures
    }
}
