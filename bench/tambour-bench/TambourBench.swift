import ArgumentParser
import Foundation
import TambourNet

/// Measures messenger servers: Tambour, the limits beside it, its peers.
@main
struct TambourBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour-bench",
        abstract: "Loads a server and says what it did.",
        subcommands: [LoadCommand.self, SuiteCommand.self, GrowthCommand.self, PeersCommand.self],
        defaultSubcommand: LoadCommand.self
    )
}

/// Loads a server that somebody else runs.
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Loads a running server; ends with 1 if messages were lost or the server failed.",
        discussion: """
            The accounts come from `tambourd admin users create --tokens-out FILE`. They write to each \
            other: real messages, which stay. A run is bounded by --seconds and --messages.
            """
    )

    @Argument(help: "HOST:PORT, without TLS.")
    var address: String

    @Option(help: "A file of lines PHONE USER_ID TOKEN.")
    var tokens: String

    @Option(help: "So many senders, each with a receiver: needs twice as many accounts.")
    var pairs = 50

    @Option(help: "Instead of pairs: one sender, a new group of so many members.")
    var group: Int?

    @Option(help: "Messages that each sender keeps on their way.")
    var window = 1

    @Option(help: "Instead of a window: so many messages a second in all, late or not.")
    var rate: Double?

    @Option(help: "How long to measure, at most 600, after one second of warming up.")
    var seconds = 10

    @Option(help: "Stop sending after so many messages.")
    var messages = 5_000_000

    @Option(help: "The server's process, for its processor time and memory.")
    var pid: Int32?

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard (1...600).contains(seconds) else { throw ValidationError("--seconds takes 1 to 600") }
        guard (1...100_000).contains(window) else { throw ValidationError("--window is too large") }
        guard (1...10_000).contains(pairs), group ?? 2 >= 2 else {
            throw ValidationError("--pairs takes 1 to 10000, --group at least 2")
        }
        if let rate, !(rate > 0 && rate <= 1_000_000) {
            throw ValidationError("--rate takes more than 0 and at most 1000000")
        }
    }

    func run() async throws {
        let accounts = try Account.read(tokens)
        let plan = LoadPlan(
            name: "load",
            address: try ListenAddress(address),
            shape: group.map { .group(receivers: $0 - 1) } ?? .pairs(pairs),
            pace: rate.map { .open(perSecond: $0) } ?? .closed(window: window),
            measured: .seconds(seconds),
            maxMessages: messages
        )
        guard accounts.count >= plan.clients else {
            throw ValidationError(
                "\(plan.clients) accounts are needed, \(tokens) has \(accounts.count)"
            )
        }
        let corpus = Corpus()
        let isGroup = group != nil
        let run = LoadRun(
            plan,
            corpus: corpus,
            meter: pid.map { ProcessMeter(processIDs: [$0]) }
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                chat: isGroup ? nil : accounts[index].dialog(with: accounts[index ^ 1]),
                creates: isGroup && index == 0
                    ? accounts[1..<plan.clients].map(\.userID) : []
            )
        }
        let result = try await run.perform()
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            print(String(decoding: try encoder.encode(result), as: UTF8.self))
        } else {
            var figures: Figures = [:]
            figures.add(result, as: "load")
            var table = Table(["", ""])
            for (name, value) in figures.sorted(by: { $0.key < $1.key }) {
                table.add([String(name.dropFirst("load, ".count)), Table.number(value)])
            }
            print(table.markdown, terminator: "")
        }
        if result.lost > 0 || result.messages == 0 { throw ExitCode.failure }
    }
}

/// Where the programs and databases of the benchmark are.
struct Places: ParsableArguments {
    @Option(help: "The server's program.")
    var tambourd = ".build/release/tambourd"

    @Option(help: "The folder of the programs made from bench/limits.")
    var limits = ".build/bench"

    @Option(help: "The folder of databases that are kept between runs.")
    var cache = ".build/bench/cache"

    /// - Returns: with a scratch folder of its own, which goes with the benchmark.
    func bench(measured: Duration, isFull: Bool) -> Bench {
        let processID = ProcessInfo.processInfo.processIdentifier
        let scratch = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-bench-\(processID)")
        Cleanup.shared.removeAtEnd(scratch)
        return Bench(
            tambourd: tambourd,
            limits: limits,
            cache: URL(fileURLWithPath: cache),
            scratch: scratch,
            corpus: Corpus(),
            measured: measured,
            isFull: isFull
        )
    }
}

/// Runs the workloads of `bench/README.md` against servers it starts.
struct SuiteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suite",
        abstract:
            "Runs workloads against servers it starts, beside their limits, and prints ratios.",
        discussion: "Ends with 1 if a claim was missed and --strict is given."
    )

    static let workloads: [any Workload] = [
        PairsWorkload(), GroupWorkload(), IdleWorkload(), CatchUpWorkload(), HistoryWorkload(),
        StormWorkload(), ChannelWorkload(), CodecWorkload(), LogWorkload(),
    ]

    @Argument(help: "Which workloads, as in W1 W4; all of them unless given.")
    var names: [String] = []

    @Option(help: "Rounds; each does everything once, and the median counts.")
    var rounds = 3

    @Option(help: "How long each run is measured, seconds.")
    var seconds = 3

    @OptionGroup var places: Places

    @Option(help: "Write all figures of all rounds here, as JSON.")
    var jsonOut: String?

    @Option(help: "Write the tables here, as Markdown.")
    var markdownOut: String?

    @Flag(help: "Everything the claims ask for, not the short form.")
    var full = false

    @Flag(help: "End with 1 when a claim was missed.")
    var strict = false

    func run() async throws {
        let chosen = Self.workloads.filter { names.isEmpty || names.contains($0.name) }
        guard !chosen.isEmpty else {
            let all = Self.workloads.map(\.name).joined(separator: ", ")
            throw ValidationError("there are \(all)")
        }
        let bench = places.bench(measured: .seconds(seconds), isFull: full)
        defer { try? FileManager.default.removeItem(at: bench.scratch) }
        var report = Report(
            date: Date.now.formatted(.iso8601),
            machine: Report.thisMachine,
            command: CommandLine.arguments.dropFirst().reduce("tambour-bench") { "\($0) \($1)" },
            corpus: bench.corpus.source
        )
        // Rounds outside, workloads inside: what disturbs the machine for a while disturbs one round.
        var figures = chosen.map { _ in [Figures]() }
        for round in 1...rounds {
            for (index, workload) in chosen.enumerated() {
                bench.say("round \(round) of \(rounds), \(workload.name): \(workload.title)")
                figures[index].append(try await workload.round(in: bench))
            }
        }
        for (workload, rounds) in zip(chosen, figures) { report.add(workload, rounds: rounds) }
        print(report.markdown, terminator: "")
        if let jsonOut { try report.json.write(to: URL(fileURLWithPath: jsonOut)) }
        if let markdownOut {
            try Data(report.markdown.utf8).write(to: URL(fileURLWithPath: markdownOut))
        }
        if strict, report.hasMissed { throw ExitCode.failure }
    }
}
