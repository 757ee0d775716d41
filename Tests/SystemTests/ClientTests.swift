import Foundation
import TambourTesting
import Testing

/// Plays the short cells of `Clients/` with every client library; `make clients` plays all cells.
@Suite(
    "Client libraries",
    .enabled(if: StockClient.python != nil, "needs the Python environment `make test` makes")
)
struct ClientTests {
    @Test(
        "log in, write, read, make groups, react and come back after a restart",
        arguments: ["maxapi-python", "maxion", "pyromax"]
    )
    func short(library: String) async throws {
        let python = try #require(StockClient.python)
        let limits = ["passwordHashLogRounds": 8, "presenceOfflineDelayMs": 50]
        try await TambourdProcess.run(limits: limits) { server in
            let player = try ChildProcess(
                python,
                [
                    Clients.folder.appendingPathComponent("play.py").path,
                    server.address, server.codesFile.path, library, "--short",
                ],
                environment: ["PYTHONDONTWRITEBYTECODE": "1"]
            )
            var printed: [String] = []
            for await line in player.lines {
                printed.append(line)
                if line == "@restart" { try await server.restart() }
                if line == "@kill" { try await server.killAndRestart() }
            }
            let status = await player.exitStatus()
            let cells = printed.count { $0.hasPrefix("  ok  W ") }
            if status != 0 || cells == 0 {
                Issue.record(
                    """
                    \(library) ended with \(status):
                    \(printed.joined(separator: "\n"))
                    \(player.errors)
                    The server's log:
                    \(server.errors.suffix(4000))
                    """
                )
            }
        }
    }

    @Test("no mark of the table stays that is not true")
    func marks() async throws {
        let python = try #require(StockClient.python)
        let tests = Clients.folder.appendingPathComponent("test_cells.py").path
        let run = try ChildProcess(python, [tests], environment: ["PYTHONDONTWRITEBYTECODE": "1"])
        #expect(await run.exitStatus() == 0, "\(run.errors)")
    }

    @Test("docs/clients.md has the table that the cells declare")
    func table() async throws {
        let python = try #require(StockClient.python)
        let run = try ChildProcess(
            python,
            [Clients.folder.appendingPathComponent("run.py").path, "--table"],
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )
        var lines: [String] = []
        for await line in run.lines { lines.append(line) }
        #expect(await run.exitStatus() == 0, "\(run.errors)")
        #expect(lines.contains { $0.hasPrefix("| Log in by code |") })
        let page = try String(contentsOf: Clients.page, encoding: .utf8)
        #expect(
            page.contains(lines.joined(separator: "\n")),
            "put what `run.py --table` prints into docs/clients.md"
        )
    }
}

private enum Clients {
    static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().appendingPathComponent("Clients")
    static let page = folder.deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("docs/clients.md")
}
