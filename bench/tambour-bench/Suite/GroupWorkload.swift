import Synchronization
import TambourProtocol

/// W2: one person writes to a group whose members are all online, one message at a time.
struct GroupWorkload: Workload {
    static let sizes = [32, 100, 1_000]

    let name = "W2"
    let title = "one group, everybody online, one sender"

    let claims: [Claim] = [
        .ratio(
            "1,000 members: deliveries/s, of relay (a)",
            "1000 members, tambour, deliveries/s",
            to: "1000 members, relay (a), deliveries/s",
            .atLeast(0.6)
        )
    ]

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        for size in Self.sizes {
            let relay = try bench.relay(rows: "message")
            defer { relay.stop() }
            let relayRun = LoadRun(
                plan(bench, size, "relay (a)", relay),
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
            figures.add(try await relayRun.perform(), as: "\(size) members, relay (a)")

            let server = try TambourServer(
                program: bench.tambourd,
                directory: bench.folder("tambour")
            )
            defer { server.process.stop() }
            let accounts = try server.makeUsers(size, firstPhone: 79_990_000_000)
            let corpus = bench.corpus
            let run = LoadRun(
                plan(bench, size, "tambour", server.process),
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
            figures.add(try await run.perform(), as: "\(size) members, tambour")
        }
        return figures
    }

    private func plan(
        _ bench: Bench,
        _ size: Int,
        _ label: String,
        _ server: ServerProcess
    ) -> LoadPlan {
        LoadPlan(
            name: "W2 \(size) members, \(label)",
            address: server.address,
            shape: .group(receivers: size - 1),
            pace: .closed(window: 1),
            measured: bench.measured
        )
    }
}
