import TambourProtocol

/// W7: two channels with four posts per second. One has 10,000 members, half of them online; the
/// other has 100,000 members, with the same number online.
struct ChannelWorkload: Workload {
    private static let members = ["tambour": 10_000, "tambour, 100,000 members": 100_000]
    private static let online = 5_000
    private static let postsPerSecond = 4.0

    let name = "W7"
    let title = "a channel of 10,000 and one of 100,000, 5,000 online, 4 posts/s"

    func claims(isFull: Bool) -> [Claim] {
        // A few posts give no meaningful 99th percentile, so the short form uses the slowest post.
        let last = isFull ? "p99" : "slowest"
        return [
            .ratio(
                "last delivery, \(last), of relay (a)",
                "tambour, last \(last) ms",
                to: "relay (a), last \(last) ms",
                .atMost(3)
            ),
            .ratio(
                "server CPU a delivery, of relay (a)",
                "tambour, server CPU µs/delivery",
                to: "relay (a), server CPU µs/delivery",
                .atMost(1.5)
            ),
            .ratio(
                "server CPU a delivery, of 100,000 members to 10,000",
                "tambour, 100,000 members, server CPU µs/delivery",
                to: "tambour, server CPU µs/delivery",
                .atMost(1.05)
            ),
        ]
    }

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        for name in bench.rotated(["relay (a)"] + Self.members.keys.sorted()) {
            if let members = Self.members[name] {
                try await tambour(members, name, bench, into: &figures)
            } else {
                try await relay(bench, into: &figures)
            }
            figures["\(name), server CPU µs/delivery"] =
                (figures["\(name), server CPU µs/message"] ?? .nan) / Double(Self.online - 1)
        }
        return figures
    }

    private func relay(_ bench: Bench, into figures: inout Figures) async throws {
        let relay = try Relay(rows: "message", in: bench)
        try await bench.load(
            relay,
            plan(bench, "relay (a)", relay.process),
            as: "relay (a)",
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

    private func tambour(
        _ members: Int,
        _ name: String,
        _ bench: Bench,
        into figures: inout Figures
    ) async throws {
        let folder = try bench.folder("tambour")
        let accounts = try TambourServer.makeUsers(
            members,
            firstPhone: 79_990_000_000,
            program: bench.tambourd,
            directory: folder
        )
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let corpus = bench.corpus
        try await bench.load(
            server,
            plan(bench, name, server.process),
            as: name,
            into: &figures
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                creates: index == 0 ? Array(accounts.dropFirst()) : [],
                asChannel: true
            )
        }
    }

    private func plan(_ bench: Bench, _ label: String, _ server: ServerProcess) -> LoadPlan {
        LoadPlan(
            name: "W7 \(label)",
            address: server.address,
            shape: .group(receivers: Self.online - 1),
            pace: .open(perSecond: Self.postsPerSecond),
            warmUp: .seconds(2),
            // A hundred posts and one spare post, or as many as the time permits.
            measured: bench.isFull ? .milliseconds(25_500) : max(bench.measured, .seconds(5))
        )
    }
}
