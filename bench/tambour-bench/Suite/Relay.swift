import Foundation

/// A running `limits/relay` with its own file.
final class Relay {
    let process: ServerProcess
    /// The file in which the relay reports its work.
    private let summary: URL

    /// - Parameter rows: `none`, `message` or `full`.
    init(rows: String, in bench: Bench) throws {
        let folder = try bench.folder("relay")
        summary = folder.appendingPathComponent("summary")
        let file = folder.appendingPathComponent("relay.db").path
        // `exec` replaces the shell, so this process becomes the relay.
        process = try ServerProcess(
            "/bin/sh",
            [
                "-c", "exec \"$@\" 2>\"$0\"", summary.path, "\(bench.limits)/relay",
                "--listen", "127.0.0.1:0", "--rows", rows, "--db", file,
            ]
        )
    }

    /// Stops the relay, so that it does not disturb the next measurement.
    ///
    /// - Returns: the number of messages per commit; nil if there were no commits.
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
    /// Loads a relay, stops the relay and adds the results to `figures`.
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
        // These figures cover the relay's whole life, including the warm-up.
        if let shared = try relay.stop() {
            figures["\(prefix), messages/commit"] = shared
            figures["\(prefix), commits/s"] = result.messagesPerSecond / shared
        }
    }

    /// Loads a running Tambour server and adds the results to `figures`.
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
