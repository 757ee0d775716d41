import ArgumentParser
import TambourProtocol
import TambourTesting

/// Plays each request at its largest, in a store made for it, and prints the dearest.
struct CostsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "costs",
        abstract: "Plays the worst case of each request and prints those that take longest.",
        discussion: """
            The server runs in this process. A step is one transaction of the engine or of a reader: \
            what others on the same queue wait for. The median of the rounds counts.
            """
    )

    @Option(help: "Rounds; each makes a store of its own.")
    var rounds = 3

    @Option(help: "How many requests to print; 0 prints all.")
    var count = 10

    @Flag(help: "A store thirty times as large as that of the tests.")
    var large = false

    private struct Row {
        var milliseconds: [Double] = []
        var rowsRead = 0
        var rowsWritten = 0
        var steps = 0
    }

    func validate() throws {
        guard (1...99).contains(rounds) else { throw ValidationError("--rounds takes 1 to 99") }
        guard count >= 0 else { throw ValidationError("--count is negative") }
    }

    func run() async throws {
        var rows: [Opcode: Row] = [:]
        let infos = OpInfo.table.compactMap(\.self).filter { $0.cost != nil }
        let ordered = infos.filter { $0.kind != .command } + infos.filter { $0.kind == .command }
        for round in 1...rounds {
            Progress.note("round \(round) of \(rounds)")
            let world = try WorstCaseWorld(large ? .large : .small)
            defer { world.remove() }
            for info in ordered {
                guard let make = WorstCases.all[info.opcode] else { continue }
                let store = try world.measure(make(world)).store
                var row = rows[info.opcode, default: Row()]
                row.milliseconds.append(store.longest / .milliseconds(1))
                row.rowsRead = max(row.rowsRead, store.rowsRead)
                row.rowsWritten = max(row.rowsWritten, store.rowsWritten)
                row.steps = max(row.steps, store.steps)
                rows[info.opcode] = row
            }
        }
        let medians = rows.map { (opcode: $0.key, row: $0.value, ms: Self.median($0.value)) }
            .sorted { $0.ms > $1.ms }
        var table = Table(["request", "on", "ms", "rows read", "rows written", "SQLite steps"])
        for entry in medians.prefix(count == 0 ? medians.count : count) {
            let isCommand = entry.opcode.info?.kind == .command
            table.add([
                "\(entry.opcode)", isCommand ? "engine" : "reader", Table.number(entry.ms),
                "\(entry.row.rowsRead)", "\(entry.row.rowsWritten)", "\(entry.row.steps)",
            ])
        }
        print(table.markdown, terminator: "")
    }

    private static func median(_ row: Row) -> Double {
        let sorted = row.milliseconds.sorted()
        return sorted[sorted.count / 2]
    }
}
