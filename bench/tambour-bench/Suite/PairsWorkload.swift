import TambourProtocol

/// W1: fifty users each write to one of fifty other users, as fast as the replies arrive.
///
/// Window 1 is a conversation: each sender waits until the previous message has arrived. Window 16
/// is a server under load, where many messages share a commit.
struct PairsWorkload: Workload {
    static let pairs = 50

    let name = "W1"
    let title = "1:1, 50 pairs, texts of about 100 bytes, stored and delivered"

    func claims(isFull: Bool) -> [Claim] {
        [
            .ratio(
                "window 16: messages/s, of relay (a)",
                "window 16, tambour, messages/s",
                to: "window 16, relay (a), messages/s",
                .atLeast(1.0 / 3),
                stretch: .atLeast(0.5)
            ),
            .ratio(
                "window 16: messages/s, of relay (b)",
                "window 16, tambour, messages/s",
                to: "window 16, relay (b), messages/s",
                .atLeast(0.7)
            ),
            .ratio(
                "window 1: median latency, of relay (a)",
                "window 1, tambour, p50 ms",
                to: "window 1, relay (a), p50 ms",
                .atMost(1.6)
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        for window in [1, 16] {
            for name in bench.rotated(["relay (a)", "relay (b)", "tambour"]) {
                let prefix = "window \(window), \(name)"
                switch name {
                case "relay (a)":
                    try await relay("message", bench, window, prefix, into: &figures)
                case "relay (b)":
                    try await relay("full", bench, window, prefix, into: &figures)
                default: try await tambour(bench, window, prefix, into: &figures)
                }
            }
        }
        return figures
    }

    private func relay(
        _ rows: String,
        _ bench: Bench,
        _ window: Int,
        _ prefix: String,
        into figures: inout Figures
    ) async throws {
        let relay = try Relay(rows: rows, in: bench)
        try await bench.load(
            relay,
            plan(bench, window, prefix, relay.process),
            as: prefix,
            into: &figures
        ) { index, sink in
            RelayClient(
                index: index,
                sink: sink,
                target: index % 2 == 0 ? .user(UInt32(index + 1)) : .nobody
            )
        }
    }

    private func tambour(
        _ bench: Bench,
        _ window: Int,
        _ prefix: String,
        into figures: inout Figures
    ) async throws {
        let server = try TambourServer(
            program: bench.tambourd,
            directory: bench.folder("tambour")
        )
        defer { server.process.stop() }
        let accounts = try server.makeUsers(2 * Self.pairs, firstPhone: 79_990_000_000)
        let corpus = bench.corpus
        try await bench.load(
            server,
            plan(bench, window, prefix, server.process),
            as: prefix,
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
    }

    private func plan(
        _ bench: Bench,
        _ window: Int,
        _ prefix: String,
        _ server: ServerProcess
    ) -> LoadPlan {
        LoadPlan(
            name: "W1 \(prefix)",
            address: server.address,
            shape: .pairs(Self.pairs),
            pace: .closed(window: window),
            measured: bench.measured
        )
    }
}
