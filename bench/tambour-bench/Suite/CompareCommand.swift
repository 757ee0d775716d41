import ArgumentParser
import Foundation

/// Runs workloads on two builds of the server in turns. It shows the cost of a change on any
/// machine.
struct CompareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Runs workloads on two builds of the server in turns, and prints ratios.",
        discussion: """
            A round does a workload on both, the one before the change first in every other round. A \
            figure's ratio is the later build's divided by the earlier one's in the same round. Each has \
            seeded databases of its own. Ends with 1 if a workload failed, or if --strict is given and a \
            median got worse by more than --percent.
            """
    )

    @Argument(help: "The program of the earlier build.")
    var before: String

    @Argument(help: "Which workloads, as in W1 W4; W1, W2, W4 and W7 unless given.")
    var names: [String] = []

    @Option(help: "Rounds; the median counts.")
    var rounds = 5

    @Option(help: "How long each run is measured, seconds.")
    var seconds = 3

    @Option(help: "By how much a rate may fall, or a cost rise.")
    var percent = 5.0

    @OptionGroup var places: Places

    @Option(help: "Write the table here, as Markdown.")
    var markdownOut: String?

    @Flag(help: "End with 1 when something got worse.")
    var strict = false

    /// The compared figures: the suffix of their names, and whether a larger value is better.
    private static let kinds: [(suffix: String, isRate: Bool)] = [
        ("messages/s", true), ("deliveries/s", true), ("pages/s", true), ("logins/s", true),
        ("server CPU µs/message", false), ("server CPU µs/delivery", false),
        ("server CPU µs/page", false), ("server CPU µs", false), ("p50 ms", false),
        ("bytes/message", false), ("bytes in", false), ("RSS MiB", false),
    ]

    func validate() throws {
        guard rounds >= 1 else { throw ValidationError("--rounds takes at least 1") }
        guard (1...60).contains(seconds) else { throw ValidationError("--seconds takes 1 to 60") }
        guard percent > 0 else { throw ValidationError("--percent takes more than 0") }
        let known = SuiteCommand.workloads.map(\.name)
        if let unknown = names.first(where: { !known.contains($0) }) {
            throw ValidationError(
                "there is no \(unknown), there are \(known.joined(separator: ", "))"
            )
        }
    }

    /// The figures of both builds in one round.
    private typealias Pair = (before: Figures, after: Figures)

    func run() async throws {
        let names = names.isEmpty ? ["W1", "W2", "W4", "W7"] : names
        let bench = try places.bench(measured: .seconds(seconds), isFull: false)
        let cache = URL(fileURLWithPath: places.cache)
        let start = ContinuousClock.now
        var birthplace = Birthplace(scratch: bench.scratch, corpus: bench.corpus)
        var hasFailed = false
        var isWorse = false
        var table = Table(["", "", "before", "after", "ratio", "spread", ""])
        for workload in SuiteCommand.workloads where names.contains(workload.name) {
            var pairs: [Pair] = []
            for round in 0..<rounds {
                Progress.note("round \(round + 1) of \(rounds), \(workload.name)")
                var (earlier, later) = (bench, bench)
                earlier.tambourd = before
                earlier.cache = cache.appendingPathComponent("before")
                (earlier.round, later.round) = (round, round)
                do {
                    // Alternating the order prevents a disturbance of the machine from always
                    // affecting the same build.
                    if round % 2 == 0 {
                        let first = try await workload.round(in: earlier)
                        pairs.append((first, try await workload.round(in: later)))
                    } else {
                        let first = try await workload.round(in: later)
                        pairs.append((try await workload.round(in: earlier), first))
                    }
                } catch {
                    Progress.note("\(workload.name) failed: \(error)")
                    hasFailed = true
                }
            }
            for row in rows(pairs) {
                isWorse = isWorse || row.isWorse
                table.add([workload.name] + row.cells)
            }
        }
        birthplace.seconds = (ContinuousClock.now - start) / .seconds(1)
        let text = birthplace.markdown + "\n" + table.markdown
        print(text, terminator: "")
        if let markdownOut { try Data(text.utf8).write(to: URL(fileURLWithPath: markdownOut)) }
        if hasFailed || strict && isWorse { throw ExitCode.failure }
    }

    private func rows(_ pairs: [Pair]) -> [(cells: [String], isWorse: Bool)] {
        let names = Set(pairs.flatMap { $0.after.keys }).sorted {
            $0.localizedStandardCompare($1) == .orderedAscending
        }
        return names.compactMap { name in
            // The relay and the C reader measure only the machine.
            guard !name.contains("relay"), !name.contains("C reader"),
                let kind = Self.kinds.first(where: { name.hasSuffix($0.suffix) })
            else { return nil }
            let both = pairs.compactMap { pair in
                pair.before[name].flatMap { before in pair.after[name].map { (before, $0) } }
            }
            let ratios = both.map { $0.1 / $0.0 }.sorted()
            guard let ratio = ratios.median, let least = ratios.first, let most = ratios.last,
                let before = both.map(\.0).sorted().median,
                let after = both.map(\.1).sorted().median
            else { return nil }
            let share = percent / 100
            let isWorse = kind.isRate ? ratio < 1 - share : ratio > 1 + share
            return (
                [
                    name, Table.number(before), Table.number(after), Table.number(ratio),
                    "\(Table.number(least)) … \(Table.number(most))", isWorse ? "WORSE" : "",
                ],
                isWorse
            )
        }
    }
}
