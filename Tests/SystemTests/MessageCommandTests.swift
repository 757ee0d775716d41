import Foundation
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// The message commands of `tambour` as a person or a script uses them.
@Suite("The command line of messages")
struct MessageCommandTests {
    private func withWorld(_ body: (MessageWorld) async throws -> Void) async throws {
        let world = try await MessageWorld()
        defer { world.close() }
        try await body(world)
    }

    private struct Line: Decodable {
        let text: String
    }

    private func texts(_ lines: [String]) throws -> [String] {
        try lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)).text }
    }

    @Test("who was signed out by the server signs in again, and finds everything")
    func signedOut() async throws {
        try await withWorld { world in
            let (device, chat) = (world.device, "\(world.chat)")
            try world.hear(1...1)
            #expect(try await device.run(["chats", "--sync"]).status == 0)
            #expect(try await device.run(["send", chat, "first"]).status == 0)
            try world.alice.call(SessionsCloseRequest())
            let waiting = try await device.run(["send", chat, "second"])
            #expect(waiting.status == 2 && waiting.errors.contains("tambour login"))

            let token = try world.token(of: world.bob)
            let arguments = ["login", world.server.address, "--token"]
            let other = try await device.run(arguments, saying: "\(token)\n")
            #expect(other.status == 1 && other.errors.contains("tambour logout"), "\(other.errors)")
            try await world.logIn(world.alice)
            #expect(try await device.run(["queue", "--flush"]).status == 0)
            let held = try await device.run(["export", chat])
            #expect(try texts(held.lines) == ["b1", "first", "second"])
        }
    }

    @Test("whoever is signed in for the first time finds chats that began before, by their names")
    func firstNames() async throws {
        try await withWorld { world in
            try world.hear(1...1)
            let offline = try await world.device.run(["history", "Bob", "--offline"])
            #expect(offline.status == 1 && offline.errors.contains("no chat"), "\(offline.errors)")
            let history = try await world.device.run(["history", "Bob", "--json"])
            #expect(history.status == 0, "\(history.errors)")
            #expect(try texts(history.lines) == ["b1"])
        }
    }

    @Test("what is no text is refused and named, and the other lines are sent")
    func noText() async throws {
        try await withWorld { world in
            let (device, chat) = (world.device, "Bob")
            try world.hear(1...1)
            let lines = Data("one\r\n".utf8) + [0xFF, 0x0A] + Data("\ntwo".utf8)
            let sent = try await device.run(["send", chat, "--lines"], saying: lines)
            #expect(sent.errors.contains("line 2: it is not UTF-8"), "\(sent.errors)")
            let held = try await device.run(["export", chat])
            #expect(try texts(held.lines) == ["b1", "one", "two"])
            // The first line is longer than the program's line buffer.
            let long = Data(repeating: 0x61, count: 2_000_000) + Data("\nthree\n".utf8)
            let last = try await device.run(["send", chat, "--lines"], saying: long)
            #expect(last.errors.contains("line 1: ") && !last.errors.contains("line 2: "))
            let after = try await device.run(["export", chat])
            #expect(try texts(after.lines).suffix(2) == ["two", "three"])
        }
    }

    @Test("a sign-in that fails says why")
    func failedLogIn() async throws {
        try await withWorld { world in
            let other = TambourAccount(directory: world.directory, name: "other")
            let phone = world.server.freshPhone()
            let address = world.server.address
            let attempts = [
                (address, "", 1, "no code"),
                (address, "wrong\n", 1, "Error: "),
                ("127.0.0.1:70000", "", 64, "from 1 to 65535"),
            ]
            for (address, input, status, words) in attempts {
                let result = try await other.run(["login", address, "+\(phone)"], saying: input)
                #expect(result.status == status, "\(result.errors)")
                #expect(result.errors.contains(words), "\(result.errors)")
                #expect(!result.errors.contains("Fatal"))
            }
        }
    }

    @Test("tail shows all that came while nobody was connected, in order")
    func tailFills() async throws {
        try await withWorld { world in
            try world.hear(1...1)
            #expect(try await world.device.run(["chats", "--sync"]).status == 0)
            try world.hear(2...260)
            let tail = try await world.device.run(["tail", "--json", "-n", "259"])
            #expect(tail.status == 0, "\(tail.errors)")
            #expect(try texts(tail.lines) == (2...260).map { "b\($0)" })
        }
    }

    @Test("a hook gets the messages it was asked for, and its failure costs none")
    func hook() async throws {
        try await withWorld { world in
            let device = world.device
            try world.hear(1...1)
            #expect(try await device.run(["chats", "--sync"]).status == 0)
            let own = try world.alice.send("mine; touch /hook", to: world.chat, cid: 2)
            try world.hear(2...2)
            try world.answer("$(false) `false` \"", to: own.message.id, cid: 3)
            let others = try await device.run(
                ["tail", "--exec", "cat; exit 3", "--others", "-n", "2"]
            )
            #expect(others.status == 0, "\(others.errors)")
            #expect(try texts(others.lines) == ["b2", "$(false) `false` \""])
            #expect(others.errors.split(separator: "\n").count { $0.hasSuffix("with 3") } == 2)
            try world.hear(4...4)
            try world.answer("again", to: own.message.id, cid: 5)
            // This command does not read its standard input.
            let forMe = try await device.run(
                ["tail", "--exec", "exec echo heard", "--for-me", "-n", "1"]
            )
            #expect(forMe.status == 0, "\(forMe.errors)")
            #expect(forMe.lines == ["heard"])
        }
    }

    @Test("tail ends with 1 when the server signs the device out")
    func tailEnds() async throws {
        try await withWorld { world in
            let tail = try world.device.start(["tail", "--json"])
            try world.hear(1...1)
            for await _ in tail.lines { break }
            try world.alice.call(SessionsCloseRequest())
            #expect(try await tail.exitStatus(within: .seconds(60)) == 1)
            #expect(tail.errors.contains("signed this device out"), "\(tail.errors)")
        }
    }

    @Test("a line that is too long costs neither those before nor those behind it")
    func longLine() async throws {
        try await withWorld { world in
            try world.hear(1...1)
            #expect(try await world.device.run(["chats", "--sync"]).status == 0)
            let long = String(repeating: "x", count: 5_000)
            let sent = try await world.device.run(
                ["send", "\(world.chat)", "--lines"],
                saying: "one\n\(long)\nthree\n"
            )
            #expect(sent.status == 1)
            #expect(sent.errors.contains("line 2"), "\(sent.errors)")
            let page = try world.alice.call(ChatHistoryRequest(chatID: world.chat, backward: 50))
            #expect(page.messages?.map { "\($0.text)" } == ["b1", "one", "three"])
        }
    }

    @Test("output that cannot be written is said, and is no success")
    func fullDisk() async throws {
        try await withWorld { world in
            try world.hear(1...1)
            #expect(try await world.device.run(["chats", "--sync"]).status == 0)
            let export = try await world.device.run(
                ["export", "\(world.chat)"],
                into: "/dev/full"
            )
            #expect(export.status == 1)
            #expect(export.errors.contains("No space left"), "\(export.errors)")
        }
    }

    @Test("what is missing is fetched by the process that is connected")
    func second() async throws {
        try await withWorld { world in
            let (device, chat) = (world.device, "\(world.chat)")
            let carol = try world.server.signUp("Carol")
            let dave = try world.server.signUp("Dave")
            let phone = try #require(
                try dave.call(ContactInfoRequest(contactIDs: [dave.userID])).contacts[0].phone
            )
            let other = world.alice.dialog(with: carol)
            try carol.send("c1", to: other, cid: 1)
            #expect(try await device.run(["chats", "--sync"]).status == 0)
            try world.hear(1...120)
            // `tail` receives only the newest message of Bob's chat.
            let tail = try device.start(["tail", "--json", "--chat", "\(other)"])
            defer { tail.signal(SIGKILL) }
            try carol.send("c2", to: other, cid: 2)
            for await _ in tail.lines { break }

            let history = try await device.run(["history", chat, "-n", "70", "--json"])
            #expect(history.status == 0, "\(history.errors)")
            #expect(try texts(history.lines) == (51...120).map { "b\($0)" })
            // The time limit of `run` ends a command long before this wait does.
            let patient = ["--wait", "600"]
            let again = try await device.run(["history", chat, "-n", "70"] + patient)
            #expect(again.status == 0 && again.lines.count == 70)
            let whole = try await device.run(["export", chat, "--whole"])
            #expect(whole.status == 0, "\(whole.errors)")
            #expect(try texts(whole.lines) == (1...120).map { "b\($0)" })

            let sent = try await device.run(["send", "+\(phone)", "hello"])
            #expect(sent.status == 0, "\(sent.errors)")
            let account = ["account", "name=Home"]
            let added = try await device.run(["entities", "add"] + account + patient)
            #expect(added.status == 0 && added.lines.count == 1, "\(added.errors)")
            let listed = try await device.run(["entities", "list"] + patient)
            #expect(listed.lines.map { $0.hasSuffix("name=Home") } == [true])
        }
    }

    @Test("what came meanwhile comes in one page")
    func onePage() async throws {
        try await withWorld { world in
            func history(_ count: Int) async throws -> (texts: [String], pages: Int) {
                let metrics = world.server.server.metrics
                let before = metrics.requestCounts[Opcode.chatHistory.rawValue] ?? 0
                let arguments = ["history", "\(world.chat)", "-n", "\(count)", "--json"]
                let history = try await world.device.run(arguments)
                #expect(history.status == 0, "\(history.errors)")
                let after = metrics.requestCounts[Opcode.chatHistory.rawValue] ?? 0
                return (try texts(history.lines), after - before)
            }
            try world.hear(1...10)
            #expect(try await world.device.run(["chats", "--sync"]).status == 0)
            #expect(try await history(10).pages == 1)
            try world.hear(11...110)
            let missed = try await history(100)
            #expect(missed.texts == (11...110).map { "b\($0)" })
            #expect(missed.pages == 1)
            #expect(try await history(100).pages == 0)
        }
    }

    @Test("history says when messages are missing, and ends with 2")
    func missing() async throws {
        try await withWorld { world in
            try world.hear(1...60)
            #expect(try await world.device.run(["chats", "--sync"]).status == 0)
            world.stopServer()
            let arguments = ["history", "\(world.chat)", "--wait", "1"]
            let history = try await world.device.run(arguments)
            #expect(history.status == 2)
            #expect(history.errors.contains("missing"), "\(history.errors)")
            let offline = try await world.device.run(arguments + ["--offline"])
            #expect(offline.status == 0)
        }
    }
}
