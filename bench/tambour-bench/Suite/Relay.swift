import Foundation

/// A running `limits/relay` on a file of its own.
final class Relay {
    let process: ServerProcess
    /// Where it says what it did.
    private let summary: URL

    /// - Parameter rows: `none`, `message` or `full`.
    init(rows: String, in bench: Bench) throws {
        let folder = try bench.folder("relay")
        summary = folder.appendingPathComponent("summary")
        let file = folder.appendingPathComponent("relay.db").path
        // The shell makes way for the relay: its process is the relay's.
        process = try ServerProcess(
            "/bin/sh",
            [
                "-c", "exec \"$@\" 2>\"$0\"", summary.path, "\(bench.limits)/relay",
                "--listen", "127.0.0.1:0", "--rows", rows, "--db", file,
            ]
        )
    }

    /// Stops it, which takes it off the machine before the next one runs.
    ///
    /// - Returns: how many messages shared a commit; nil when it committed none.
    func stop() throws -> Double? {
        process.stop()
        let line = try Data(contentsOf: summary)
        guard let said = try? JSONSerialization.jsonObject(with: line) as? [String: Any],
            let messages = said["messages"] as? Double, let rounds = said["rounds"] as? Double
        else { throw BenchError("the relay said \(String(decoding: line, as: UTF8.self))") }
        return rounds > 0 ? messages / rounds : nil
    }
}

extension Bench {
    /// Loads a relay, stops it and adds what came of it to `figures`.
    func load(
        _ relay: Relay,
        _ plan: LoadPlan,
        as prefix: String,
        into figures: inout Figures,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) async throws {
        let run = LoadRun(
            plan,
            corpus: corpus,
            meter: relay.process.meter,
            makeClient: makeClient
        )
        let result = try await run.perform()
        figures.add(result, as: prefix)
        // Over its whole life, the warm-up included.
        if let shared = try relay.stop() {
            figures["\(prefix), messages/commit"] = shared
            figures["\(prefix), commits/s"] = result.messagesPerSecond / shared
        }
    }

    /// Loads a Tambour that runs already and adds what came of it to `figures`.
    func load(
        _ server: TambourServer,
        _ plan: LoadPlan,
        as prefix: String,
        into figures: inout Figures,
        makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) async throws {
        let counters = ServerCounters(dataDirectory: server.directory.path)
        let run = LoadRun(
            plan,
            corpus: corpus,
            meter: server.process.meter,
            commits: { try counters.commits() },
            makeClient: makeClient
        )
        figures.add(try await run.perform(), as: prefix)
    }
}
