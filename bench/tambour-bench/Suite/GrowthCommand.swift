import ArgumentParser
import Foundation
import TambourNet
import TambourProtocol

/// Runs W1, W2, W4 and W5 over a range of sizes, to show that certain costs do not grow with the
/// size.
struct GrowthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "growth",
        abstract: "Measures sends, logins and pages over growing histories, users and chats.",
        discussion: "bench/plot.py draws what --json-out writes."
    )

    @Option(help: "How long each run is measured, seconds.")
    var seconds = 3

    @Option(help: "Rounds; the median counts.")
    var rounds = 3

    @OptionGroup var places: Places

    @Option(help: "Write the series here, as JSON.")
    var jsonOut: String?

    @Option(help: "Write the tables here, as Markdown.")
    var markdownOut: String?

    private static let members = [10, 32, 100, 1_000, 5_000]

    func validate() throws {
        guard rounds >= 1 else { throw ValidationError("--rounds takes at least 1") }
        guard (1...60).contains(seconds) else { throw ValidationError("--seconds takes 1 to 60") }
    }

    /// A line of the plot: the measured quantity, the variable, and the points.
    struct Series: Codable {
        var title: String
        var over: String
        var unit: String
        var points: [Point]
    }

    struct Point: Codable {
        var size: Int
        var values: [Double]
    }

    func run() async throws {
        var bench = try places.bench(measured: .seconds(seconds), isFull: false)
        let clock = ContinuousClock()
        let start = clock.now
        var birthplace = Birthplace(scratch: bench.scratch, corpus: bench.corpus)
        var series = [
            Series(
                title: "W1: messages/s, window 16",
                over: "messages in each of 50 dialogs before",
                unit: "messages/s",
                points: [0, 200, 2_000, 20_000].map { Point(size: $0, values: []) }
            ),
            Series(
                title: "W1: messages/s, window 16",
                over: "registered users",
                unit: "messages/s",
                points: [100, 1_000, 10_000].map { Point(size: $0, values: []) }
            ),
            Series(
                title: "W4: server CPU of a login, 5 chats changed",
                over: "chats",
                unit: "µs",
                points: CatchUpWorkload.sizes.map { Point(size: $0, values: []) }
            ),
            Series(
                title: "W5: server CPU of a page of 50",
                over: "messages in the chat",
                unit: "µs",
                points: HistorySeed.lengths.map { Point(size: $0, values: []) }
            ),
            Series(
                title: "W2: server CPU of a delivery",
                over: "members of the group",
                unit: "µs",
                points: Self.members.map { Point(size: $0, values: []) }
            ),
        ]
        for round in 0..<rounds {
            bench.round = round
            Progress.note("round \(round + 1) of \(rounds)")
            for (index, point) in series[0].points.enumerated() {
                let rate = try await pairs(bench, users: 100, history: point.size)
                series[0].points[index].values.append(rate)
            }
            for (index, point) in series[1].points.enumerated() {
                let rate = try await pairs(bench, users: point.size, history: 0)
                series[1].points[index].values.append(rate)
            }
            let catchUp = try await CatchUpWorkload().round(in: bench)
            for (index, point) in series[2].points.enumerated() {
                let name = "\(point.size) chats, tambour, LOGIN, server CPU µs"
                series[2].points[index].values.append(catchUp[name] ?? .nan)
            }
            let history = try await HistoryWorkload().round(in: bench)
            for (index, point) in series[3].points.enumerated() {
                let name = "\(point.size) messages, tambour, server CPU µs/page"
                series[3].points[index].values.append(history[name] ?? .nan)
            }
            for (index, point) in series[4].points.enumerated() {
                var group: Figures = [:]
                try await GroupWorkload().tambour(bench, point.size, into: &group)
                let name = "\(point.size) members, tambour, server CPU µs/delivery"
                series[4].points[index].values.append(group[name] ?? .nan)
            }
        }
        birthplace.seconds = (clock.now - start) / .seconds(1)
        var text = birthplace.markdown
        for line in series {
            var table = Table([line.over, "median \(line.unit)", "least", "most"])
            for point in line.points {
                let sorted = point.values.sorted()
                table.add([
                    "\(point.size)", Table.number(sorted.median ?? .nan),
                    Table.number(sorted.first ?? .nan), Table.number(sorted.last ?? .nan),
                ])
            }
            text += "\n## \(line.title)\n\n\(table.markdown)"
        }
        print(text, terminator: "")
        if let jsonOut { try encoded(series).write(to: URL(fileURLWithPath: jsonOut)) }
        if let markdownOut {
            try Data(text.utf8).write(to: URL(fileURLWithPath: markdownOut))
        }
    }

    /// Returns the messages per second of fifty pairs together; in each pair one user sends to the
    /// other. Each dialog already holds `history` messages. The store has `users` users.
    private func pairs(_ bench: Bench, users: Int, history: Int) async throws -> Double {
        let folder = try bench.folder("growth")
        let accounts = try TambourServer.makeUsers(
            users,
            firstPhone: 79_990_000_000,
            program: bench.tambourd,
            directory: folder
        )
        // The writers are spread evenly over all users.
        let step = users / 100
        let writers = (0..<100).map { accounts[$0 * step] }
        if history > 0 {
            let seeder = try Seeder(
                folder,
                corpus: bench.corpus,
                batches: 50 * (history / 1_000 + 1)
            )
            for first in stride(from: 0, to: history, by: 1_000) {
                for pair in stride(from: 0, to: 100, by: 2) {
                    try seeder.dialog(
                        writers[pair].userID,
                        writers[pair + 1].userID,
                        messages: min(1_000, history - first)
                    )
                }
            }
        }
        let server = try TambourServer(program: bench.tambourd, directory: folder)
        defer { server.process.stop() }
        let corpus = bench.corpus
        let run = LoadRun(
            LoadPlan(
                name: "W1 with \(users) users, \(history) messages before",
                address: server.process.address,
                shape: .pairs(50),
                pace: .closed(window: 16),
                measured: bench.measured
            ),
            corpus: corpus
        ) { index, sink in
            TambourClient(
                index: index,
                sink: sink,
                account: writers[index],
                corpus: corpus,
                chat: writers[index].dialog(with: writers[index ^ 1])
            )
        }
        return try await run.perform().messagesPerSecond
    }
}
