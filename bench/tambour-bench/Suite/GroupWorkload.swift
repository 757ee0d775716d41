import TambourProtocol

/// W2: one user writes to a group with all members online, one message at a time.
struct GroupWorkload: Workload {
    static let sizes = [32, 100, 1_000]

    let name = "W2"
    let title = "one group, everybody online, one sender"

    func claims(isFull: Bool) -> [Claim] {
        [
            .ratio(
                "1,000 members: deliveries/s, of relay (a)",
                "1000 members, tambour, deliveries/s",
                to: "1000 members, relay (a), deliveries/s",
                .atLeast(0.6)
            ),
            .figure(
                "1,000 members: rows of messages a message",
                "1000 members, tambour, message rows/message",
                .atMost(1),
                isStrict: true
            ),
            .figure(
                "32 members: rows of members that a message changes",
                "32 members, tambour, member rows/message",
                .atMost(32),
                isStrict: true
            ),
            .figure(
                "1,000 members: rows of members that a message changes",
                "1000 members, tambour, member rows/message",
                .atMost(1),
                isStrict: true
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        for size in Self.sizes {
            for name in bench.rotated(["relay (a)", "tambour"]) {
                if name == "tambour" {
                    try await tambour(bench, size, into: &figures)
                } else {
                    try await relay(bench, size, into: &figures)
                }
            }
        }
        return figures
    }

    private func relay(_ bench: Bench, _ size: Int, into figures: inout Figures) async throws {
        let prefix = "\(size) members, relay (a)"
        let relay = try Relay(rows: "message", in: bench)
        try await bench.load(
            relay,
            plan(bench, size, prefix, relay.process),
            as: prefix,
            into: &figures
        ) { index, sink in
            RelayClient(
                index: index,
                sink: sink,
                target: index == 0 ? .group(1) : .nobody,
                group: 1
            )
        }
    }

    /// Measures Tambour for one size; the growth sweep uses it for more sizes.
    func tambour(_ bench: Bench, _ size: Int, into figures: inout Figures) async throws {
        let prefix = "\(size) members, tambour"
        let server = try TambourServer(
            program: bench.tambourd,
            directory: bench.folder("tambour")
        )
        defer { server.process.stop() }
        let accounts = try server.makeUsers(size, firstPhone: 79_990_000_000)
        let corpus = bench.corpus
        try await bench.load(
            server,
            plan(bench, size, prefix, server.process),
            as: prefix,
            into: &figures
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                creates: index == 0 ? Array(accounts.dropFirst()) : []
            )
        }
        if let cpu = figures["\(prefix), server CPU µs/message"] {
            figures["\(prefix), server CPU µs/delivery"] = cpu / Double(size - 1)
        }
        let rows = try RowCount.ofOneMessage(server, from: accounts[0])
        figures["\(prefix), message rows/message"] = Double(rows.messages)
        figures["\(prefix), member rows/message"] = Double(rows.members)
    }

    private func plan(
        _ bench: Bench,
        _ size: Int,
        _ prefix: String,
        _ server: ServerProcess
    ) -> LoadPlan {
        LoadPlan(
            name: "W2 \(prefix)",
            address: server.address,
            shape: .group(receivers: size - 1),
            pace: .closed(window: 1),
            measured: bench.measured
        )
    }
}
