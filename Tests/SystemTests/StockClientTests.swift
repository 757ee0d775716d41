import Foundation
import Synchronization
import TambourTesting
import Testing

/// Plays the scenarios of `scenarios.py`, each with the unmodified public client and a server of
/// its own.
@Suite(
    "A stock client",
    .enabled(if: StockClient.python != nil, "needs the Python environment `make test` makes")
)
struct StockClientTests {
    @Test("registers with a new phone")
    func registration() async throws { try await StockClient.play("registration") }

    @Test("logs in by code on another device")
    func loginByCode() async throws { try await StockClient.play("login_by_code") }

    @Test("is refused with a wrong code")
    func wrongCode() async throws { try await StockClient.play("wrong_code") }

    @Test("signs in again when its token is dead")
    func deadToken() async throws { try await StockClient.play("dead_token") }

    @Test("logs out")
    func logout() async throws { try await StockClient.play("logout") }

    @Test("lists its devices and closes the others")
    func sessions() async throws { try await StockClient.play("sessions") }

    @Test("sets a password, answers for it, changes and removes it")
    func secondFactor() async throws {
        try await StockClient.play("second_factor", limits: ["passwordHashLogRounds": 8])
    }

    @Test("logs in by a QR code")
    func qrLogin() async throws {
        let limits = ["passwordHashLogRounds": 8, "qrPollingIntervalMs": 50]
        try await StockClient.play("qr_login", limits: limits)
    }

    @Test("chats in a dialog")
    func dialog() async throws { try await StockClient.play("dialog") }

    @Test("keeps notes for itself")
    func savedMessages() async throws { try await StockClient.play("saved_messages") }

    @Test("makes a group of three")
    func groupOfThree() async throws { try await StockClient.play("group_of_three") }

    @Test("joins, reads and administers a channel")
    func channel() async throws { try await StockClient.play("channel") }

    @Test("asks to be let in, and decides about others who do")
    func joinRequests() async throws { try await StockClient.play("join_requests") }

    @Test("lives through the life of a group")
    func groupLife() async throws { try await StockClient.play("group_life") }

    @Test("answers a message")
    func reply() async throws { try await StockClient.play("reply") }

    @Test("forwards a message")
    func forward() async throws { try await StockClient.play("forward") }

    @Test("formats a message")
    func formatting() async throws { try await StockClient.play("formatting") }

    @Test("edits a message")
    func edit() async throws { try await StockClient.play("edit") }

    @Test("deletes a message for itself")
    func deleteForMe() async throws { try await StockClient.play("delete_for_me") }

    @Test("deletes a message for all")
    func deleteForAll() async throws { try await StockClient.play("delete_for_all") }

    @Test("moves read marks")
    func readMarks() async throws { try await StockClient.play("read_marks") }

    @Test("pages through a thousand messages")
    func history() async throws {
        try await StockClient.play("history", limits: ["sendBurst": 2_000])
    }

    @Test("shows that somebody types")
    func typing() async throws { try await StockClient.play("typing") }

    @Test("sees others come and go")
    func presence() async throws {
        try await StockClient.play("presence", limits: ["presenceOfflineDelayMs": 50])
    }

    @Test("finds people by id and by phone")
    func contacts() async throws { try await StockClient.play("contacts") }

    @Test("catches up after it was away")
    func relogin() async throws {
        try await StockClient.play("relogin", limits: ["createBurst": 200])
    }

    @Test("chooses between all chats and what changed")
    func chatList() async throws {
        try await StockClient.play("chat_list", limits: ["createBurst": 200])
    }

    @Test("finds its way back after the server restarts")
    func reconnect() async throws { try await StockClient.play("reconnect") }

    @Test("reacts to messages")
    func reactions() async throws { try await StockClient.play("reactions") }

    @Test("asks, votes and closes a poll")
    func poll() async throws { try await StockClient.play("poll") }

    @Test("keeps chats in folders")
    func folders() async throws { try await StockClient.play("folders") }

    @Test("comments on a post")
    func comments() async throws { try await StockClient.play("comments") }

    @Test("goes on with a draft on another device")
    func drafts() async throws { try await StockClient.play("drafts") }

    @Test("sends a message at a time of its choice")
    func scheduled() async throws { try await StockClient.play("scheduled") }

    @Test("meets what other clients of the family send")
    func withoutMethods() async throws { try await StockClient.play("without_methods") }

    @Test("has a test for every scenario")
    func everyScenario() async throws {
        let python = try #require(StockClient.python)
        let list = try ChildProcess(python, [StockClient.script.path, "--list"])
        let source = try String(contentsOf: URL(fileURLWithPath: #filePath), encoding: .utf8)
        var count = 0
        for await name in list.lines {
            count += 1
            #expect(source.contains("StockClient.play(\"\(name)\""), "\(name) is never played")
        }
        #expect(count > 0, "\(list.errors)")
    }
}

/// The public client library and the script that holds the scenarios.
enum StockClient {
    static let script = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().appendingPathComponent("StockClient/scenarios.py")

    /// A Python with the library: `TAMBOUR_STOCK_PYTHON`, or the interpreter in the build folder.
    static let python: URL? = {
        if let named = ProcessInfo.processInfo.environment["TAMBOUR_STOCK_PYTHON"] {
            return URL(fileURLWithPath: named)
        }
        let package = script.pathComponents.dropLast(4).joined(separator: "/").dropFirst()
        let python = URL(fileURLWithPath: "\(package)/.build/venv/bin/python")
        return FileManager.default.isExecutableFile(atPath: python.path) ? python : nil
    }()

    /// Limits the number of scenarios that run at once: each needs a Python process and a server,
    /// and its waits have deadlines.
    private static let seats = Seats(4)

    /// Plays one scenario with a separate server. A failure reports the output of the script.
    static func play(_ scenario: String, limits: [String: Int] = [:]) async throws {
        try await seats.taking { try await playSeated(scenario, limits) }
    }

    private static func playSeated(_ scenario: String, _ limits: [String: Int]) async throws {
        let python = try #require(python)
        // Use the highest rates that the specification permits, because a scenario acts faster than
        // a person.
        let limits = Unhurried.specifiedRates.merging(limits) { $1 }
        try await TambourdProcess.run(limits: limits) { server in
            let client = try ChildProcess(
                python,
                [script.path, server.address, server.codesFile.path, scenario],
                environment: ["PYTHONDONTWRITEBYTECODE": "1"]
            )
            var printed: [String] = []
            for await line in client.lines {
                printed.append(line)
                if line == "@restart" { try await server.restart() }
                if line == "@kill" { try await server.killAndRestart() }
            }
            let status = await client.exitStatus()
            let facts = printed.count { $0.hasPrefix("  ok  ") }
            if status != 0 || facts == 0 {
                let story = printed.joined(separator: "\n")
                Issue.record(
                    """
                    \(scenario) ended with \(status):
                    \(story)
                    \(client.errors)
                    The server's log:
                    \(server.errors.suffix(4000))
                    """
                )
            }
            expectNoPhones(of: server)
        }
    }

    /// Checks that the server's log contains no phone number.
    private static func expectNoPhones(of server: TambourdProcess) {
        let codes = (try? String(contentsOf: server.codesFile, encoding: .utf8)) ?? ""
        let log = server.errors
        for line in codes.split(separator: "\n") {
            let phone = String(line.prefix { $0 != " " }).filter(\.isNumber)
            #expect(!log.contains(phone), "the log holds a phone")
        }
    }
}
