import ArgumentParser
import Foundation

/// Runs the same work on Tambour and on other servers; see `bench/peers/README.md`.
struct PeersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peers",
        abstract: "Compares Tambour with prosody, ejabberd and mosquitto on this machine.",
        discussion: """
            Starts each server on loopback with its data in a scratch folder. A peer that is not \
            installed is left out. Ends with 1 if a server failed, or if a claim was missed and \
            --strict is given.
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
        let tambour = TambourContestant(program: tambourd, corpus: cast.corpus)
        let entries = ([tambour] + chosen.filter(\.isInstalled)).map(Entry.init)
        let scratch = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-peers-\(ProcessInfo.processInfo.processIdentifier)")
        Cleanup.shared.removeAtEnd(scratch)
        for entry in entries {
            say("\(entry.contestant.name) \(entry.contestant.version): making users and a past")
            entry.attempt("before the first round") {
                let folder = scratch.appendingPathComponent(entry.contestant.name)
                try FileManager.default.createDirectory(
                    at: folder,
                    withIntermediateDirectories: true
                )
                try entry.contestant.prepare(cast, in: folder)
            }
        }

        // Rounds are the outer loop and servers the inner loop, so a disturbance affects only one
        // round. Each round starts with a different server.
        let entrants = entries.filter(\.failures.isEmpty)
        var figures: [Figures] = []
        var bystanders: Set<String> = []
        for round in 1...rounds {
            var all: Figures = [:]
            for place in entrants.indices {
                let found = Bystanders.found()
                if !found.isEmpty { say("runs beside: \(found.joined(separator: ", "))") }
                bystanders.formUnion(found)
                let entry = entrants[(place + round - 1) % entrants.count]
                say("round \(round) of \(rounds), \(entry.contestant.name)")
                let comparison = Comparison(
                    contestant: entry.contestant,
                    cast: cast,
                    measured: .seconds(seconds)
                )
                await entry.attempt("round \(round)") {
                    try entry.contestant.start()
                    try await comparison.round(round, into: &all)
                    entry.verified = try entry.contestant.verifiedDurability()
                }
            }
            figures.append(all)
        }

        let report = PeersReport(
            date: Date.now.formatted(.iso8601),
            machine: Report.thisMachine,
            command: CommandLine.arguments.dropFirst().reduce("tambour-bench") { "\($0) \($1)" },
            corpus: cast.corpus.source,
            servers: entries.map { entry in
                PeersReport.Server(
                    name: entry.contestant.name,
                    version: entry.contestant.version,
                    durability: entry.contestant.durability,
                    verified: entry.verified,
                    unfair: entry.contestant.unfair,
                    failures: entry.failures
                )
            },
            absent: chosen.filter { !$0.isInstalled }.map(\.name),
            bystanders: bystanders.sorted(),
            rounds: figures
        )
        print(report.markdown, terminator: "")
        if let jsonOut { try report.json.write(to: URL(fileURLWithPath: jsonOut)) }
        if let markdownOut {
            try Data(report.markdown.utf8).write(to: URL(fileURLWithPath: markdownOut))
        }
        if entries.contains(where: { !$0.failures.isEmpty }) { throw ExitCode.failure }
        if strict, report.claims.contains(where: { $0.verdict == "MISSED" }) {
            throw ExitCode.failure
        }
    }

    private func say(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}

/// A server's part in the comparison: verified facts and failures.
private final class Entry {
    let contestant: any Contestant
    var verified: String?
    private(set) var failures: [String] = []

    init(_ contestant: any Contestant) { self.contestant = contestant }

    /// Runs `body` and stops the server. An error counts as a failure of this server only.
    func attempt(_ when: String, _ body: () throws -> Void) {
        defer { contestant.stop() }
        do { try body() } catch { failed(when, error) }
    }

    func attempt(_ when: String, _ body: () async throws -> Void) async {
        defer { contestant.stop() }
        do { try await body() } catch { failed(when, error) }
    }

    private func failed(_ when: String, _ error: any Error) {
        let failure = "\(when): \(error)"
        failures.append(failure)
        FileHandle.standardError.write(Data("\(contestant.name) failed, \(failure)\n".utf8))
    }
}

/// The part of one server in a round: W1, W2, W4 and W5, in that order.
private struct Comparison {
    /// The maximum number of returns or pages in one run.
    private static let maxExchanges = 100_000
    /// Long enough to fill caches and to let logs reach their final size. In this time, a server
    /// with 1,000 messages/s completes at least four windows of 16 for each of fifty senders.
    private static let warmUp = Duration.seconds(4)

    let contestant: any Contestant
    let cast: Cast
    let measured: Duration

    /// Adds each measurement to `figures` immediately, so that measurements from before a failure
    /// count.
    func round(_ round: Int, into figures: inout Figures) async throws {
        for window in [1, 16] {
            let run = "pairs-\(round)-\(window)"
            let result = try await load("W1 window \(window)", .pairs(Cast.people / 2), window) {
                index,
                sink in
                contestant.person(
                    index,
                    writesTo: index % 2 == 0 ? index + 1 : nil,
                    run: run,
                    sink
                )
            }
            figures.add(result, as: "\(contestant.name), W1 window \(window)")
        }
        let group = "group-\(round)"
        let result = try await load("W2", .group(receivers: Cast.people - 1), 1) { index, sink in
            contestant.member(index, of: Cast.people, run: group, sink)
        }
        figures.add(result, as: "\(contestant.name), W2")
        if let catchUp = try contestant.catchUp(cast) {
            try add(catchUp, as: "\(contestant.name), W4", to: &figures)
        }
        if let page = try contestant.pages(cast) {
            try add(page, as: "\(contestant.name), W5", to: &figures)
        }
    }

    private func load(
        _ name: String,
        _ shape: LoadPlan.Shape,
        _ window: Int,
        _ makeClient: @escaping (Int, any LoadSink) -> LoadClient
    ) async throws -> LoadFigures {
        let plan = LoadPlan(
            name: "\(name), \(contestant.name)",
            address: try contestant.address,
            shape: shape,
            pace: .closed(window: window),
            warmUp: Self.warmUp,
            measured: measured
        )
        let meter = try contestant.meter
        return try await LoadRun(plan, corpus: cast.corpus, meter: meter, makeClient: makeClient)
            .perform()
    }

    /// Repeats `exchange` for the duration of a run; the first second is not measured.
    private func add(
        _ exchange: () throws -> Exchange,
        as name: String,
        to figures: inout Figures
    ) throws {
        _ = try repeated(exchange, for: .seconds(1))
        let done = try repeated(exchange, for: measured)
        let times = done.map(\.seconds).sorted()
        let count = Double(done.count)
        func mean(_ value: (Exchange) -> Double) -> Double {
            done.reduce(0) { $0 + value($1) } / count
        }
        figures["\(name), per second"] = 1 / mean(\.seconds)
        figures["\(name), p50 ms"] = (times.median ?? 0) * 1_000
        figures["\(name), p99 ms"] = times[Int(count * 0.99)] * 1_000
        figures["\(name), bytes in"] = mean { Double($0.bytesIn) }
        figures["\(name), bytes out"] = mean { Double($0.bytesOut) }
        figures["\(name), server CPU ms"] = mean { $0.serverSeconds * 1_000 }
        figures["\(name), driver CPU ms"] = mean { $0.driverSeconds * 1_000 }
    }

    private func repeated(
        _ exchange: () throws -> Exchange,
        for time: Duration
    ) throws -> [Exchange] {
        let clock = ContinuousClock()
        let start = clock.now
        var done: [Exchange] = []
        while done.count < Self.maxExchanges, done.isEmpty || clock.now - start < time {
            done.append(try exchange())
        }
        return done
    }
}
