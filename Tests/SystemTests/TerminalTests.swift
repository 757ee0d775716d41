import Foundation
import TambourTesting
import Testing

/// Plays the scenarios of `Terminal/scenarios.py`: users of `tambour` in pseudo-terminals.
@Suite(
    "What a person sees",
    .enabled(if: StockClient.python != nil, "needs the Python environment `make test` makes")
)
struct TerminalTests {
    static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Terminal/scenarios.py")

    /// Limits the number of scenarios that run at once: each needs a server and several clients,
    /// and its waits have deadlines.
    private static let seats = Seats(3)

    @Test(
        "in a terminal",
        arguments: [
            "typed", "typed_in_sign_in", "typed_while_resized", "acts", "acts_are_complete",
            "removed_from_a_group",
            "kept", "kept_over_paste", "first_minutes",
        ]
    )
    func scenario(name: String) async throws {
        let programs = try TambourdProcess.program().deletingLastPathComponent()
        let python = try #require(StockClient.python)
        let (status, printed, errors) = try await Self.seats.taking {
            let player = try ChildProcess(
                python,
                [Self.script.path, programs.path, name],
                environment: ["PYTHONDONTWRITEBYTECODE": "1"]
            )
            var printed: [String] = []
            for await line in player.lines { printed.append(line) }
            return (await player.exitStatus(), printed, player.errors)
        }
        let facts = printed.count { $0.hasPrefix("  ok  ") }
        let story = printed.joined(separator: "\n")
        #expect(
            status == 0 && facts > 0,
            "\(name) ended with \(status):\n\(story)\n\(errors)"
        )
    }

    @Test("every scenario is played")
    func everyScenario() async throws {
        let list = try ChildProcess(
            try #require(StockClient.python),
            [Self.script.path, "--list"],
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )
        let source = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
        var count = 0
        for await name in list.lines {
            count += 1
            #expect(source.contains("\"\(name)\""), "\(name) is never played")
        }
        #expect(count > 0, "\(list.errors)")
    }
}
