import Foundation
import TambourNet
import TambourProtocol
import TambourTesting

/// W10: a user searches for single words in a million messages.
///
/// The cost of a first page is compared with the C reader's time for a history page of the same
/// length.
struct SearchWorkload: Workload {
    private static let page = 50
    /// Prefixes of words. The most frequent prefix starts a word in about every second text, the
    /// rarest in one of forty.
    private static let common = ["th", "in", "a", "не", "и", "на"]

    let name = "W10"
    let title = "a first page of 50 results out of 1 M messages"

    private static let kinds = [
        "common word, everywhere", "common word, in the chat", "rare word, everywhere",
        "rare word, in the chat", "no word, everywhere",
    ]

    func claims(isFull: Bool) -> [Claim] {
        Self.kinds.map { kind in
            .ratio(
                "\(kind): server CPU of a page, of the C reader's page of history",
                "\(kind), server CPU µs/page",
                to: "C reader, CPU µs/page",
                .atMost(20)
            )
        }
    }

    func round(in bench: Bench) async throws -> Figures {
        let seed = try SearchSeed(bench)
        let rare = try seed.rareWords(500)
        // Words that occur in no message.
        let none = (0..<500).map { "e\(String(0xf00_0000 + $0 * 7_919, radix: 16))" }
        let server = try TambourServer(program: bench.tambourd, directory: seed.folder)
        defer { server.process.stop() }
        let client = try WireClient(address: server.process.address.description)
        _ = try client.call(SessionInitRequest(deviceID: "bench"))
        _ = try client.call(seed.searcher.loginRequest(since: 1 << 52))
        let chat = seed.searcher.dialog(with: seed.partner)
        var figures: Figures = [:]
        for kind in Self.kinds {
            Progress.show("W10: \(kind)")
            let words =
                kind.hasPrefix("common") ? Self.common : kind.hasPrefix("rare") ? rare : none
            let expected = kind.hasPrefix("common") ? Self.page : kind.hasPrefix("rare") ? 1 : 0
            let isEverywhere = kind.hasSuffix("everywhere")
            func search(for duration: Duration) throws -> [Double] {
                let end = monotonicNow() + UInt64(duration / .nanoseconds(1))
                var latencies: [Double] = []
                while monotonicNow() < end {
                    let query = Text(words[latencies.count % words.count])
                    let started = monotonicNow()
                    let found =
                        isEverywhere
                        ? try client.call(
                            ChatSearchRequest(query: query, count: Int64(Self.page))
                        ).result
                        : try client.call(
                            MsgSearchRequest(
                                chatID: chat,
                                query: query,
                                count: Int64(Self.page)
                            )
                        ).result
                    latencies.append(Double(monotonicNow() - started) / 1e6)
                    guard found.count == expected else {
                        throw BenchError("\(query) found \(found.count), not \(expected)")
                    }
                }
                return latencies.sorted()
            }
            _ = try search(for: .milliseconds(300))
            let stretch = try Stretch(server.process.meter)
            let latencies = try search(for: bench.measured / 2)
            figures["\(kind), server CPU µs/page"] =
                stretch.cpuSeconds * 1e6 / Double(latencies.count)
            figures["\(kind), p50 ms"] = latencies.median
            figures["\(kind), p99 ms"] = latencies.percentile(99)
        }
        let reader = try Tool.run(
            "\(bench.limits)/page",
            [
                "--db", seed.folder.appendingPathComponent("tambour.db").path,
                "--chat", "\(try seed.chatKey())", "--pivots", seed.pivots.path,
                "--count", "\(Self.page)", "--repeat", bench.isFull ? "50000" : "20000",
            ]
        )
        figures["C reader, pages/s"] = reader["pages_per_s"]
        figures["C reader, CPU µs/page"] = reader["cpu_us"]
        return figures
    }
}
