import ArgumentParser
import TambourProtocol
import TambourTesting

/// Runs each request at its largest size in a suitable store, and prints the most expensive
/// requests.
struct CostsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "costs",
        abstract: "Plays the worst case of each request and prints those that take longest.",
        discussion: """
            The server runs in this process. A step is one transaction of the engine or of a reader: \
            what others on the same queue wait for. The median of the rounds counts. It is \
            compared with the class of processor time that the specification declares (`cpu`), \
            whose bounds are those of a release build on a quiet machine.
            """
    )

    @Argument(help: "Only these requests, by name: LOGIN, MSG_GET; all without any.")
    var requests: [String] = []

    @Option(help: "Rounds; each makes a store of its own.")
    var rounds = 3

    @Option(help: "How many requests to print; 0 prints all.")
    var count = 10

    @Flag(help: "A store thirty times as large as that of the tests.")
    var large = false

    @Flag(help: "End with 1 when a median is above its bound.")
    var strict = false

    private struct Row {
        var milliseconds: [Double] = []
        var rowsRead = 0
        var rowsWritten = 0
        var steps = 0
    }

    func validate() throws {
        guard (1...99).contains(rounds) else { throw ValidationError("--rounds takes 1 to 99") }
        guard count >= 0 else { throw ValidationError("--count is negative") }
        let names = OpInfo.table.compactMap { $0.map { "\($0.opcode)" } }
        if let unknown = requests.first(where: { !names.contains($0) }) {
            throw ValidationError("there is no request \(unknown)")
        }
    }

    func run() async throws {
        var rows: [Opcode: Row] = [:]
        let infos = OpInfo.table.compactMap(\.self).filter {
            $0.cost != nil && (requests.isEmpty || requests.contains("\($0.opcode)"))
        }
        let ordered = infos.filter { $0.kind != .command } + infos.filter { $0.kind == .command }
        for round in 1...rounds {
            Progress.note("round \(round) of \(rounds)")
            let world = try WorstCaseWorld(large ? .large : .small)
            defer { world.remove() }
            for info in ordered {
                let costs = try WorstCases.cases(of: info.opcode).map {
                    try world.measure($0(world)).store
                }
                // Only the slowest form of the request counts.
                guard let longest = costs.map(\.longest).max() else { continue }
                var row = rows[info.opcode, default: Row()]
                row.milliseconds.append(longest / .milliseconds(1))
                for store in costs {
                    row.rowsRead = max(row.rowsRead, store.rowsRead)
                    row.rowsWritten = max(row.rowsWritten, store.rowsWritten)
                    row.steps = max(row.steps, store.steps)
                }
                rows[info.opcode] = row
            }
        }
        let medians = rows.compactMap { Entry(opcode: $0.key, row: $0.value) }
            .sorted { $0.ms > $1.ms }
        var table = Table([
            "request", "on", "ms", "class", "bound ms", "verdict", "rows read", "rows written",
            "SQLite steps",
        ])
        for entry in medians.prefix(count == 0 ? medians.count : count) {
            table.add([
                "\(entry.opcode)", entry.isCommand ? "engine" : "reader", Table.number(entry.ms),
                "\(entry.cost.processor)", Table.number(entry.boundMs),
                entry.isAbove ? "above" : "ok", "\(entry.row.rowsRead)", "\(entry.row.rowsWritten)",
                "\(entry.row.steps)",
            ])
        }
        print(table.markdown, terminator: "")
        let above = medians.filter(\.isAbove).map { "\($0.opcode)" }
        if !above.isEmpty { Progress.note("above their bound: \(above.joined(separator: ", "))") }
        if strict, !above.isEmpty { throw ExitCode.failure }
    }

    private struct Entry {
        let opcode: Opcode
        let cost: RequestCost
        let row: Row
        /// The median of the rounds.
        let ms: Double

        /// The bound on the longest step of the engine or of a reader, in milliseconds. Heavier
        /// work runs on a separate queue and is not part of a step.
        var boundMs: Double {
            switch cost.processor {
            // The commit of a command flushes the disk.
            case .light: isCommand ? 2 : 1
            case .medium, .heavy: 10
            }
        }

        var isCommand: Bool { opcode.info?.kind == .command }
        var isAbove: Bool { ms > boundMs }

        init?(opcode: Opcode, row: Row) {
            guard let cost = opcode.info?.cost, !row.milliseconds.isEmpty else { return nil }
            self.opcode = opcode
            self.cost = cost
            self.row = row
            ms = row.milliseconds.sorted()[row.milliseconds.count / 2]
        }
    }
}
