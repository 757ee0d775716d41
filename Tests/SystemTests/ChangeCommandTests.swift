import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// The commands of `tambour` that change messages and groups, and the queue of these changes.
@Suite("The command line of changes")
struct ChangeCommandTests {
    private func withWorld(_ body: (MessageWorld) async throws -> Void) async throws {
        let world = try await MessageWorld()
        defer { world.close() }
        try world.hear(1...3)
        let synced = try await world.device.run(["chats", "--sync"])
        #expect(synced.status == 0, "\(synced.errors)")
        try await body(world)
    }

    private struct MessageJSON: Decodable {
        let id: String?
        let queueId: String?
        let text: String
        let state: String
        let reactions: [String: Int]
    }

    private struct ChatJSON: Decodable {
        let id: String
        let title: String
        let unread: Int
    }

    private struct ActionJSON: Decodable {
        let id: String
        let kind: String
        let text: String?
        let chatTitle: String?
        let state: String
        let reason: String?
    }

    private struct MemberJSON: Decodable {
        let name: String
        let role: String
    }

    private func values<Value: Decodable>(
        _: Value.Type,
        _ device: TambourAccount,
        _ words: [String],
        status: Int32 = 0
    ) async throws -> [Value] {
        let result = try await device.run(words + ["--json"])
        #expect(result.status == status, "\(words): \(result.errors)")
        return try result.lines.map { try JSONDecoder().decode(Value.self, from: Data($0.utf8)) }
    }

    /// Runs a command that must succeed.
    private func run(_ device: TambourAccount, _ words: [String]) async throws {
        let result = try await device.run(words)
        #expect(result.status == 0, "\(words): \(result.errors)")
    }

    @Test("a chat is marked as read, and from a message on as unread")
    func marks() async throws {
        try await withWorld { world in
            func unread() async throws -> [Int] {
                try await values(ChatJSON.self, world.device, ["chats", "--sync"]).map(\.unread)
            }
            #expect(try await unread() == [3])
            try await run(world.device, ["mark", "Bob"])
            #expect(try await unread() == [0])
            let held = try await values(MessageJSON.self, world.device, ["history", "Bob"])
            let second = try #require(held.first { $0.text == "b2" }?.id)
            try await run(world.device, ["mark", "Bob", second, "--unread"])
            #expect(try await unread() == [2])
            let incomplete = try await world.device.run(["mark", "Bob", "--unread"])
            #expect(incomplete.status == 64)
        }
    }

    @Test("messages are edited, reacted to and deleted on the server")
    func messages() async throws {
        try await withWorld { world in
            let device = world.device
            func page() throws -> [Message] {
                let request = ChatHistoryRequest(chatID: world.chat, backward: 50)
                return try world.alice.call(request).messages ?? []
            }
            try await run(device, ["send", "Bob", "first"])
            let own = try #require(try page().last?.id)
            try await run(device, ["edit", "Bob", "\(own)", "two", "words"])
            #expect(try page().map { "\($0.text)" } == ["b1", "b2", "b3", "two words"])
            let fromInput = try await device.run(["edit", "Bob", "\(own)"], saying: "a\nb\n")
            #expect(fromInput.status == 0)
            #expect(try page().last.map { "\($0.text)" } == "a\nb")

            let first = try #require(try page().first?.id)
            try await run(device, ["react", "Bob", "\(first)", "👍"])
            func reactions() async throws -> [String: Int]? {
                try await values(MessageJSON.self, device, ["history", "Bob"]).first?.reactions
            }
            #expect(try await reactions() == ["👍": 1])
            try await run(device, ["react", "Bob", "\(first)", "--remove"])
            #expect(try await reactions() == [:])

            try await run(device, ["delete", "Bob", "\(first)", "--for-me"])
            try await run(device, ["delete", "Bob", "\(own)"])
            #expect(try page().map { "\($0.text)" } == ["b2", "b3"])
        }
    }

    @Test("a change that the server refuses ends with 1 and says why")
    func refusals() async throws {
        try await withWorld { world in
            let request = ChatHistoryRequest(chatID: world.chat, backward: 50)
            let first = try #require(try world.alice.call(request).messages?.first?.id)
            for words in [["edit", "Bob", "\(first)", "mine"], ["delete", "Bob", "\(first)"]] {
                let result = try await world.device.run(words)
                #expect(result.status == 1, "\(words): \(result.errors)")
                #expect(result.errors.contains("The server refused the change: "))
            }
            #expect(try await world.device.run(["queue", "--count"]).lines == ["0"])
        }
    }

    @Test("a refusal is noticed also when another process is connected")
    func refusalElsewhere() async throws {
        try await withWorld { world in
            let tail = try world.device.start(["tail", "--json"])
            defer { tail.signal(SIGKILL) }
            let theirs = try world.bob.send("b4", to: world.chat, cid: 4).message.id
            for await _ in tail.lines { break }
            let own = try world.alice.send("a1", to: world.chat, cid: 5).message.id
            for words in [["edit", "Bob", "\(theirs)", "x"], ["delete", "Bob", "\(theirs)"]] {
                let result = try await world.device.run(words)
                #expect(result.status == 1, "\(words): \(result.errors)")
                #expect(result.errors.contains("refused"), "\(result.errors)")
            }
            try await run(world.device, ["edit", "Bob", "\(own)", "x"])
            try await run(world.device, ["react", "Bob", "\(theirs)", "👍"])
            try await run(world.device, ["mark", "Bob", "\(theirs)", "--unread"])
            try await run(world.device, ["delete", "Bob", "\(own)"])
        }
    }

    @Test("changes made offline wait, are listed and can be cancelled")
    func offline() async throws {
        try await withWorld { world in
            let device = world.device
            try await run(device, ["send", "Bob", "first"])
            let held = try await values(MessageJSON.self, device, ["history", "Bob"])
            let own = try #require(held.last?.id)
            world.stopServer()
            let changes = [
                ["edit", "Bob", own, "edited"], ["react", "Bob", own, "👍"], ["mark", "Bob"],
                ["delete", "Bob", own], ["groups", "create", "Friends", "Bob"],
            ]
            for words in changes {
                let result = try await device.run(words + ["--wait", "0"])
                #expect(result.status == 2, "\(words): \(result.errors)")
                #expect(result.errors.contains("tambour queue --flush"))
            }
            let list = ["queue", "list"]
            let waiting = try await values(ActionJSON.self, device, list, status: 2)
            #expect(waiting.map(\.kind) == ["edit", "reaction", "read", "deletion", "new-chat"])
            #expect(waiting.map(\.text) == ["edited", nil, nil, nil, "Friends"])
            #expect(waiting.map(\.chatTitle) == ["Bob", "Bob", "Bob", "Bob", nil])
            #expect(waiting.allSatisfy { $0.state == "waiting" && $0.reason == nil })
            #expect(try await device.run(["queue", "--count"]).lines == ["5"])

            let retried = try await device.run(["queue", "retry", waiting[0].id])
            #expect(retried.status == 1 && retried.errors.contains("has not refused"))
            let unknown = try await device.run(["queue", "cancel", "7"])
            #expect(unknown.status == 1 && unknown.errors.contains("No action 7 waits"))
            try await run(device, ["queue", "cancel", waiting[0].id, waiting[3].id])
            let left = try await values(ActionJSON.self, device, list, status: 2)
            #expect(left.map(\.kind) == ["reaction", "read", "new-chat"])
            let shown = ["history", "Bob", "--offline"]
            let texts = try await values(MessageJSON.self, device, shown).map(\.text)
            #expect(texts == ["b1", "b2", "b3", "first"])
            try await run(device, ["queue", "cancel", "--all"])
            #expect(try await device.run(["queue"]).lines.isEmpty)
        }
    }

    @Test("history prints as many messages as asked for, and what is not sent apart")
    func unsent() async throws {
        try await withWorld { world in
            let device = world.device
            let refused = try await device.run(["send", "Bob", "--reply-to", "1", "lost"])
            #expect(refused.status == 1)
            #expect(refused.errors.contains("`tambour queue` lists it"), "\(refused.errors)")
            let newest = try await device.run(["history", "Bob", "-n", "2"])
            #expect(newest.status == 0 && newest.lines.count == 2)
            #expect(newest.errors.contains("1 message is not sent (1 refused)"))
            let words = ["history", "Bob", "-n", "2", "--queued"]
            let all = try await values(MessageJSON.self, device, words)
            #expect(all.map(\.text) == ["b2", "b3", "lost"])
            #expect(all.map(\.state) == ["received", "received", "failed"])
            let last = try #require(all.last)
            #expect(last.id == nil)

            let again = try await device.run(["queue", "retry", "--all"])
            #expect(again.status == 1, "\(again.errors)")
            let action = try #require(try await values(ActionJSON.self, device, ["queue"]).first)
            #expect(action.id == last.queueId && action.state == "refused")
            #expect(action.reason?.isEmpty == false)
            try await run(device, ["queue", "cancel", action.id])
            let clean = try await device.run(["history", "Bob"])
            #expect(!clean.errors.contains("not sent"), "\(clean.errors)")
        }
    }

    @Test("groups are created, changed and left")
    func groups() async throws {
        try await withWorld { world in
            let device = world.device
            let carol = try world.server.signUp("Carol")
            let described = try carol.call(ContactInfoRequest(contactIDs: [carol.userID]))
            let phone = "+\(try #require(described.contacts[0].phone))"
            let created = try await device.run(["groups", "create", "Friends", "Bob"])
            #expect(created.status == 0, "\(created.errors)")
            let id = try #require(created.lines.first)
            func members() async throws -> [String] {
                let list = ["groups", "members", id]
                return try await values(MemberJSON.self, device, list)
                    .map { "\($0.name) \($0.role)" }.sorted()
            }
            #expect(try await members() == ["Alice owner", "Bob member"])
            try await run(device, ["groups", "add", "Friends", phone])
            #expect(try await members() == ["Alice owner", "Bob member", "Carol member"])
            try await run(device, ["groups", "remove", id, phone])
            #expect(try await members() == ["Alice owner", "Bob member"])
            try await run(device, ["groups", "title", "Friends", "Best", "friends"])
            func titles() async throws -> [String] {
                try await values(ChatJSON.self, device, ["chats"]).map(\.title).sorted()
            }
            #expect(try await titles() == ["Best friends", "Bob"])
            let person = try await device.run(["groups", "title", "Bob", "Robert"])
            #expect(person.status == 1 && person.errors.contains("“Bob” is a person"))
            let nobody = try await device.run(["groups", "add", id, "Zoe"])
            #expect(nobody.status == 1 && nobody.errors.contains("no contact “Zoe”"))
            let owner = try await device.run(["groups", "leave", id])
            #expect(owner.status == 1 && owner.errors.contains("The server refused the change"))
            _ = try world.bob.createGroup("Climbers", with: [carol, world.alice], cid: 90)
            try await run(device, ["chats", "--sync"])
            try await run(device, ["groups", "leave", "Climbers"])
            #expect(try await titles() == ["Best friends", "Bob"])
        }
    }

    @Test("lists have colours on a terminal, unless the user refuses them")
    func colours() async throws {
        try await withWorld { world in
            func chats(_ environment: [String: String]) throws -> String {
                let program = try TambourAccount.program().path
                let place = "--home '\(world.directory.path)' --account alice"
                // This program runs a command in a pseudo-terminal.
                let outcome = try ChildProcess.run(
                    URL(filePath: "/usr/bin/script"),
                    ["-qec", "'\(program)' chats \(place)", "/dev/null"],
                    environment: environment
                )
                #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
                #expect(outcome.output.contains("Bob"))
                return outcome.output
            }
            #expect(try chats(["TERM": "xterm", "NO_COLOR": ""]).contains("\u{1B}[33m3 unread"))
            #expect(try !chats(["TERM": "xterm", "NO_COLOR": "1"]).contains("\u{1B}"))
            #expect(try !chats(["TERM": "dumb", "NO_COLOR": ""]).contains("\u{1B}"))
            let piped = try await world.device.run(["chats"])
            #expect(piped.lines.count == 1 && !piped.lines[0].contains("\u{1B}"))
        }
    }

    @Test("a command that waits for the server says so, and for how long")
    func waiting() async throws {
        try await withWorld { world in
            world.stopServer()
            let sent = try await world.device.run(["send", "Bob", "hello", "--wait", "6"])
            #expect(sent.status == 2)
            let words = "Waiting for a connection to tcp://\(world.server.address), up to 4 s more."
            #expect(sent.errors.contains(words), "\(sent.errors)")
            #expect(sent.errors.contains("One action waits for the server."), "\(sent.errors)")
        }
    }

    @Test("a query for a phone number ends when --wait does")
    func waitingForPhone() async throws {
        try await withWorld { world in
            let port = try #require(world.server.address.split(separator: ":").last)
            world.stopServer()
            let silent = try RawListener(.ignores, port: try #require(UInt16(port)))
            defer { silent.stop() }
            for words in [
                ["send", "+79990000777", "hello"], ["groups", "create", "G", "+79990000777"],
            ] {
                let outcome = try await world.device.run(words + ["--wait", "1"])
                #expect(outcome.status == 1)
                let reason = "The server did not say within 1 s who has the number"
                #expect(outcome.errors.contains(reason), "\(outcome.errors)")
            }
        }
    }
}
