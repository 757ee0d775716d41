import ArgumentParser
import Foundation

/// Runs the same work on Tambour and on servers that others wrote; see `bench/peers/README.md`.
struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers",
        abstract: "Compares Tambour with prosody, ejabberd and mosquitto on this machine.",
        discussion: """
            Starts each server on loopback with its data in a scratch folder. A peer that is not \
            installed is left out. Ends with 1 if a claim was missed and --strict is given.
            """
    )

    @Argument(help: "Which peers, as in prosody ejabberd; all of them unless given.")
    var names: [String] = []

    @Option(help: "Rounds; each does everything on every server, and the median counts.")
    var rounds = 3

    @Option(help: "How long each run is measured, seconds.")
    var seconds = 3

    @Option(help: "The server's program.")
    var tambourd = ".build/release/tambourd"

    @Option(help: "Write all figures of all rounds here, as JSON.")
    var jsonOut: String?

    @Option(help: "Write the tables here, as Markdown.")
    var markdownOut: String?

    @Flag(help: "End with 1 when a claim was missed.")
    var strict = false

    func validate() throws {
        guard rounds >= 1 else { throw ValidationError("--rounds takes at least 1") }
        guard (1...60).contains(seconds) else { throw ValidationError("--seconds takes 1 to 60") }
    }

    func run() async throws {
        let cast = Cast(corpus: Corpus())
        let peers: [any Contestant] = [
            Prosody(corpus: cast.corpus), Ejabberd(corpus: cast.corpus), Mosquitto(),
        ]
        let chosen = peers.filter { names.isEmpty || names.contains($0.name) }
        guard !chosen.isEmpty else {
            throw ValidationError("there are \(peers.map(\.name).joined(separator: ", "))")
        }
        let contestants =
            [TambourContestant(program: tambourd, corpus: cast.corpus)]
            + chosen.filter(\.isInstalled)
        let scratch = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-peers-\(ProcessInfo.processInfo.processIdentifier)")
        defer {
            for contestant in contestants { contestant.stop() }
            try? FileManager.default.removeItem(at: scratch)
        }
        for contestant in contestants {
            say("\(contestant.name) \(contestant.version): making users and a past")
            let folder = scratch.appendingPathComponent(contestant.name)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try contestant.prepare(cast, in: folder)
        }

        // Rounds outside, servers inside: what disturbs the machine for a while disturbs one round.
        var figures: [Figures] = []
        for round in 1...rounds {
            var all: Figures = [:]
            for contestant in contestants {
                say("round \(round) of \(rounds), \(contestant.name)")
                try contestant.start()
                defer { contestant.stop() }
                let one = try await Comparison(
                    contestant: contestant,
                    cast: cast,
                    measured: .seconds(seconds)
                ).round(round)
                for (name, value) in one { all["\(contestant.name), \(name)"] = value }
            }
            figures.append(all)
        }

        let report = PeersReport(
            date: Date.now.formatted(.iso8601),
            machine: Report.thisMachine,
            command: CommandLine.arguments.dropFirst().reduce("tambour-bench") { "\($0) \($1)" },
            corpus: cast.corpus.source,
            servers: contestants.map {
                PeersReport.Server(
                    name: $0.name,
                    version: $0.version,
                    durability: $0.durability,
                    unfair: $0.unfair
                )
            },
            absent: chosen.filter { !$0.isInstalled }.map(\.name),
            rounds: figures
        )
        print(report.markdown, terminator: "")
        if let jsonOut { try report.json.write(to: URL(fileURLWithPath: jsonOut)) }
        if let markdownOut {
            try Data(report.markdown.utf8).write(to: URL(fileURLWithPath: markdownOut))
        }
        if strict, report.claims.contains(where: { $0.verdict == "MISSED" }) {
            throw ExitCode.failure
        }
    }

    private func say(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}

/// One server's share of a round: W1, W2, W4 and W5, in that order.
private struct Comparison {
    /// What a user returning, or a page, may be asked for in one run.
    private static let maxExchanges = 100_000

    let contestant: any Contestant
    let cast: Cast
    let measured: Duration

    func round(_ round: Int) async throws -> Figures {
        var figures: Figures = [:]
        for window in [1, 16] {
            let name = "W1 window \(window)"
            let run = "pairs-\(round)-\(window)"
            let result = try await load(name, .pairs(Cast.people / 2), window: window) {
                index,
                sink in
                contestant.person(
                    index,
                    writesTo: index % 2 == 0 ? index + 1 : nil,
                    run: run,
                    sink
                )
            }
            figures.add(result, as: name)
        }
        let group = "group-\(round)"
        let result = try await load("W2", .group(receivers: Cast.people - 1), window: 1) {
            index,
            sink in
            contestant.member(index, of: Cast.people, run: group, sink)
        }
        figures.add(result, as: "W2")
        if let catchUp = try contestant.catchUp(cast) {
            figures.merge(try repeated("W4", catchUp)) { $1 }
        }
        if let page = try contestant.pages(cast) {
            figures.merge(try repeated("W5", page)) { $1 }
        }
        return figures
    }

    private func load(
        _ name: String,
        _ shape: LoadPlan.Shape,
        window: Int,
        _ makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) async throws -> LoadFigures {
        let plan = LoadPlan(
            name: "\(name), \(contestant.name)",
            address: try contestant.address,
            shape: shape,
            pace: .closed(window: window),
            measured: measured
        )
        let meter = try contestant.meter
        return try await LoadRun(plan, corpus: cast.corpus, meter: meter, makeClient: makeClient)
            .perform()
    }

    /// Does `exchange` again and again for the time of a run, the first few times unmeasured.
    private func repeated(_ name: String, _ exchange: () throws -> Exchange) throws -> Figures {
        for _ in 0..<3 { _ = try exchange() }
        let meter = try contestant.meter
        let cpu = meter.cpuSeconds
        var done: [Exchange] = []
        let clock = ContinuousClock()
        let start = clock.now
        while done.count < Self.maxExchanges, done.isEmpty || clock.now - start < measured {
            done.append(try exchange())
        }
        let used = meter.cpuSeconds - cpu
        let times = done.map { $0.seconds }.sorted()
        let count = Double(done.count)
        return [
            "\(name), per second": count / times.reduce(0, +),
            "\(name), p50 ms": (times.median ?? 0) * 1_000,
            "\(name), p99 ms": times[Int(count * 0.99)] * 1_000,
            "\(name), bytes in": Double(done.reduce(0) { $0 + $1.bytesIn }) / count,
            "\(name), bytes out": Double(done.reduce(0) { $0 + $1.bytesOut }) / count,
            "\(name), server CPU ms": used * 1_000 / count,
        ]
    }
}
