import ArgumentParser
import Foundation
import TambourNet

/// Measures messenger servers: Tambour, its limits, and its peers.
@main
struct TambourBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour-bench",
        abstract: "Loads a server and says what it did.",
        subcommands: [
            LoadCommand.self, SuiteCommand.self, CompareCommand.self, GrowthCommand.self,
            PeersCommand.self, CostsCommand.self, FairnessCommand.self, TLSCommand.self,
            HandshakesCommand.self,
        ],
        defaultSubcommand: LoadCommand.self
    )
}

/// Loads a server that is already running.
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract:
            "Loads a running server; ends with 1 if messages were lost or not even sent, or the server failed.",
        discussion: """
            The accounts come from `tambourd admin users create --tokens-out FILE`. They write to each \
            other: real messages, which stay. A run is bounded by --seconds and --messages, \
            or by --seconds and --rate.
            """
    )

    @Argument(help: "HOST:PORT, without TLS.")
    var address: String

    @Option(help: "A file of lines PHONE USER_ID TOKEN.")
    var tokens: String

    @Option(help: "The number of senders, each with a receiver: needs twice as many accounts.")
    var pairs = 50

    @Option(help: "Instead of pairs: one sender, and a new group with this many members.")
    var group: Int?

    @Option(help: "Messages that each sender keeps on their way.")
    var window = 1

    @Option(help: "Instead of a window: messages a second in all, late or not.")
    var rate: Double?

    @Option(help: "How long to measure, at most 600, after one second of warming up.")
    var seconds = 10

    @Option(
        help: "Ends the measurement after this many messages; 5000000 by default."
    )
    var messages: Int?

    @Option(help: "The server's process, for its processor time and memory.")
    var pid: Int32?

    @Flag(help: "Print JSON.")
    var json = false

    private static let mostMessages = 5_000_000

    func validate() throws {
        guard (1...600).contains(seconds) else { throw ValidationError("--seconds takes 1 to 600") }
        guard (1...100_000).contains(window) else { throw ValidationError("--window is too large") }
        guard (1...10_000).contains(pairs), group ?? 2 >= 2 else {
            throw ValidationError("--pairs takes 1 to 10000, --group at least 2")
        }
        if let rate, !(rate > 0 && rate <= 1_000_000) {
            throw ValidationError("--rate takes more than 0 and at most 1000000")
        }
        guard (1...Self.mostMessages).contains(messages ?? 1) else {
            throw ValidationError("--messages takes 1 to \(Self.mostMessages)")
        }
        guard rate == nil || messages == nil else {
            throw ValidationError("--rate and --seconds say how many --messages there are")
        }
        guard (rate ?? 0) * Double(seconds) <= Double(Self.mostMessages) else {
            throw ValidationError("--rate times --seconds is above \(Self.mostMessages) messages")
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
            maxMessages: messages ?? Self.mostMessages
        )
        guard accounts.count >= plan.clients else {
            throw ValidationError(
                "\(plan.clients) accounts are needed, \(tokens) has \(accounts.count)"
            )
        }
        let meter = pid.map { ProcessMeter(processIDs: [$0]) }
        try meter?.requireRunning()
        let corpus = Corpus()
        let isGroup = group != nil
        let run = LoadRun(
            plan,
            corpus: corpus,
            meter: meter
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: accounts[index],
                corpus: corpus,
                chat: isGroup ? nil : accounts[index].dialog(with: accounts[index ^ 1]),
                creates: isGroup && index == 0
                    ? Array(accounts[1..<plan.clients]) : []
            )
        }
        let result = try await run.perform()
        if json {
            print(String(decoding: try encoded(result), as: UTF8.self))
        } else {
            var figures: Figures = [:]
            figures.add(result, as: "load")
            var table = Table(["", ""])
            for (name, value) in figures.sorted(by: { $0.key < $1.key }) {
                table.add([String(name.dropFirst("load, ".count)), Table.number(value)])
            }
            print(table.markdown, terminator: "")
        }
        if result.lost > 0 || result.unsent > 0 || result.messages == 0 { throw ExitCode.failure }
    }
}

/// The locations of the benchmark's programs and databases.
struct Places: ParsableArguments {
    @Option(help: "The server's program.")
    var tambourd = ".build/release/tambourd"

    @Option(help: "The folder of the programs made from bench/limits.")
    var limits = ".build/bench"

    @Option(help: "The folder of databases that are kept between runs.")
    var cache = ".build/bench/cache"

    @Option(help: "Where databases are written that go at the end; the system's unless given.")
    var scratch: String?

    @Flag(help: "Measure also where a flush costs nothing.")
    var allowTmpfs = false

    /// - Returns: a bench with its own scratch folder, which is removed when the benchmark ends.
    func bench(measured: Duration, isFull: Bool) throws -> Bench {
        let parent =
            scratch.map { URL(fileURLWithPath: $0) } ?? FileManager.default.temporaryDirectory
        guard allowTmpfs || Birthplace.fileSystem(of: parent) != Birthplace.memoryFileSystem else {
            throw ValidationError(
                "\(parent.path) is in memory; give --scratch FOLDER on a disk, or --allow-tmpfs"
            )
        }
        let folder = parent.appendingPathComponent(
            "tambour-bench-\(ProcessInfo.processInfo.processIdentifier)"
        )
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        Cleanup.shared.removeAtEnd(folder)
        return Bench(
            tambourd: tambourd,
            limits: limits,
            cache: URL(fileURLWithPath: cache),
            scratch: folder,
            corpus: Corpus(),
            measured: measured,
            isFull: isFull
        )
    }
}

/// Runs the workloads of `bench/README.md` against servers that it starts.
struct SuiteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suite",
        abstract:
            "Runs workloads against servers it starts, beside their limits, and prints ratios.",
        discussion: """
            Ends with 1 if a workload failed, or if a claim was missed or not measured and --strict \
            is given.
            """
    )

    static let workloads: [any Workload] = [
        PairsWorkload(), GroupWorkload(), IdleWorkload(), CatchUpWorkload(), HistoryWorkload(),
        StormWorkload(), ChannelWorkload(), CodecWorkload(), LogWorkload(),
        SearchWorkload(),
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

    func validate() throws {
        guard rounds >= 1 else { throw ValidationError("--rounds takes at least 1") }
        guard (1...60).contains(seconds) else { throw ValidationError("--seconds takes 1 to 60") }
        let all = Self.workloads.map(\.name)
        if let unknown = names.first(where: { !all.contains($0) }) {
            let known = all.joined(separator: ", ")
            throw ValidationError("there is no \(unknown), there are \(known)")
        }
    }

    func run() async throws {
        let chosen = Self.workloads.filter { names.isEmpty || names.contains($0.name) }
        var bench = try places.bench(measured: .seconds(seconds), isFull: full)
        let clock = ContinuousClock()
        let start = clock.now
        var report = Report(birthplace: Birthplace(scratch: bench.scratch, corpus: bench.corpus))
        // Rounds are the outer loop and workloads the inner loop, so a disturbance affects only one
        // round.
        var figures = chosen.map { _ in [Figures]() }
        var failures = chosen.map { _ in [String]() }
        for round in 0..<rounds {
            bench.round = round
            for (index, workload) in chosen.enumerated() where round == 0 || !workload.isOnce {
                let now = "round \(round + 1) of \(rounds), \(workload.name)"
                Progress.note("\(now): \(workload.title)")
                do {
                    figures[index].append(try await workload.round(in: bench))
                } catch {
                    // The other workloads continue.
                    Progress.note("\(now) failed: \(error)")
                    failures[index].append("round \(round + 1): \(error)")
                }
            }
        }
        for (index, workload) in chosen.enumerated() {
            report.add(
                workload,
                rounds: figures[index],
                failures: failures[index],
                isFull: full
            )
        }
        report.birthplace.seconds = (clock.now - start) / .seconds(1)
        print(report.markdown, terminator: "")
        if let jsonOut { try report.json.write(to: URL(fileURLWithPath: jsonOut)) }
        if let markdownOut {
            try Data(report.markdown.utf8).write(to: URL(fileURLWithPath: markdownOut))
        }
        if report.hasFailed || strict && report.hasMissed { throw ExitCode.failure }
    }
}
