import TambourProtocol

/// W1: fifty people write to fifty others, as fast as the answers come.
///
/// Window 1 is a conversation: nobody writes on before the last message has arrived. Window 16 is a
/// server under load, whose commits have enough to share.
struct PairsWorkload: Workload {
    static let pairs = 50

    let name = "W1"
    let title = "1:1, 50 pairs, texts of about 100 bytes, stored and delivered"

    let claims: [Claim] = [
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

    func round(in bench: Bench) async throws -> Figures {
        var figures: Figures = [:]
        for window in [1, 16] {
            for (label, rows) in [("relay (a)", "message"), ("relay (b)", "full")] {
                let relay = try bench.relay(rows: rows)
                defer { relay.stop() }
                let plan = plan(bench, window, label, relay)
                let run = LoadRun(plan, corpus: bench.corpus, meter: relay.meter) { index, sink in
                    RelayClient(
                        index: index,
                        sink: sink,
                        target: index % 2 == 0 ? .user(UInt32(index + 1)) : .nobody
                    )
                }
                figures.add(try await run.perform(), as: "window \(window), \(label)")
            }
            let server = try TambourServer(
                program: bench.tambourd,
                directory: bench.folder("tambour")
            )
            defer { server.process.stop() }
            let accounts = try server.makeUsers(2 * Self.pairs, firstPhone: 79_990_000_000)
            let plan = plan(bench, window, "tambour", server.process)
            let before = try server.commits()
            let corpus = bench.corpus
            let run = LoadRun(plan, corpus: corpus, meter: server.process.meter) { index, sink in
                TambourClient(
                    index: index,
                    sink: sink,
                    account: accounts[index],
                    corpus: corpus,
                    chat: accounts[index].dialog(with: accounts[index ^ 1])
                )
            }
            let result = try await run.perform()
            figures.add(result, as: "window \(window), tambour")
            figures["window \(window), tambour, messages/commit"] =
                Double(result.sent) / Double(max(1, try server.commits() - before))
        }
        return figures
    }

    private func plan(
        _ bench: Bench,
        _ window: Int,
        _ label: String,
        _ server: ServerProcess
    ) -> LoadPlan {
        LoadPlan(
            name: "W1 window \(window), \(label)",
            address: server.address,
            shape: .pairs(Self.pairs),
            pace: .closed(window: window),
            measured: bench.measured
        )
    }
}

extension Figures {
    /// Adds what a load run came to, each name behind `prefix`.
    mutating func add(_ load: LoadFigures, as prefix: String) {
        self["\(prefix), messages/s"] = load.messagesPerSecond
        self["\(prefix), deliveries/s"] = load.deliveriesPerSecond
        self["\(prefix), p50 ms"] = load.delivery.p50
        self["\(prefix), p99 ms"] = load.delivery.p99
        self["\(prefix), bytes/message"] = load.bytesPerMessage
        self["\(prefix), driver cores"] = load.driverCores
        self["\(prefix), lost"] = Double(load.lost)
        if let last = load.lastDelivery {
            self["\(prefix), last p50 ms"] = last.p50
            self["\(prefix), last p99 ms"] = last.p99
        }
        if let server = load.server {
            self["\(prefix), server cores"] = server.cores
            self["\(prefix), server CPU µs/message"] = server.cpuMicrosecondsPerMessage
            self["\(prefix), RSS MiB"] = server.rssMiB
        }
    }
}
