import TambourProtocol

/// W7: a channel-sized group of 10,000 members, half of them online, four posts a second.
struct ChannelWorkload: Workload {
    private static let members = 10_000
    private static let online = 5_000
    private static let postsPerSecond = 4.0

    let name = "W7"
    let title = "a group of 10,000, 5,000 online, 4 posts/s"

    let claims: [Claim] = [
        .ratio(
            "last delivery p99, of relay (a)",
            "tambour, last p99 ms",
            to: "relay (a), last p99 ms",
            .atMost(3)
        ),
        .ratio(
            "server CPU a delivery, of relay (a)",
            "tambour, server CPU µs/delivery",
            to: "relay (a), server CPU µs/delivery",
            .atMost(1.5)
        ),
    ]

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        let relay = try bench.relay(rows: "message")
        defer { relay.stop() }
        let relayRun = LoadRun(
            plan(bench, "relay (a)", relay),
            corpus: bench.corpus,
            meter: relay.meter
        ) { index, sink in
            RelayClient(
                index: index,
                sink: sink,
                target: index == 0 ? .group(1) : .nobody,
                group: 1
            )
        }
        figures.add(try await relayRun.perform(), as: "relay (a)")

        let folder = try bench.folder("tambour")
        let accounts = try TambourServer.makeUsers(
            Self.members,
            firstPhone: 79_990_000_000,
            program: bench.tambourd,
            directory: folder
        )
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let corpus = bench.corpus
        let run = LoadRun(
            plan(bench, "tambour", server.process),
            corpus: corpus,
            meter: server.process.meter
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                creates: index == 0 ? accounts.dropFirst().map(\.userID) : []
            )
        }
        figures.add(try await run.perform(), as: "tambour")
        for label in ["relay (a)", "tambour"] {
            figures["\(label), server CPU µs/delivery"] =
                (figures["\(label), server CPU µs/message"] ?? 0) / Double(Self.online - 1)
        }
        return figures
    }

    private func plan(_ bench: Bench, _ label: String, _ server: ServerProcess) -> LoadPlan {
        LoadPlan(
            name: "W7 \(label)",
            address: server.address,
            shape: .group(receivers: Self.online - 1),
            pace: .open(perSecond: Self.postsPerSecond),
            warmUp: .seconds(2),
            measured: bench.isFull ? .seconds(20) : max(bench.measured, .seconds(5))
        )
    }
}
