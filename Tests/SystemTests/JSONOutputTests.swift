import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// Validates the output of every command that prints JSON against the schemas in `docs/schema`.
@Suite(
    "JSON of the command line",
    .enabled(if: StockClient.python != nil, "needs the Python environment `make test` makes")
)
struct JSONOutputTests {
    /// A command that prints JSON, and the schema of its output.
    private struct Command {
        let schema: String
        let arguments: [String]
        var status: Int32 = 0
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    @Test("every command with --json prints what its schema says, and ids as strings")
    func everyCommand() async throws {
        let directory = URL(filePath: try TestServer.temporaryDirectory())
        defer { try? FileManager.default.removeItem(at: directory) }
        // A lower limit makes the server refuse an entity that the device accepts.
        let server = try TestServer(
            overrides: ["maxObjectBytes": 200],
            dataDirectory: directory.appending(path: "server").path
        )
        defer { server.stop() }
        let alice = try server.signUp("Alice")
        let bob = try server.signUp("Bob")
        let device = TambourAccount(directory: directory, name: "alice")
        let session = try server.signIn(phoneOf: alice, device: "tambour")
        defer { session.close() }
        try await device.logIn(to: server.address, token: session.token)

        // Produce every property of a message.
        let chat = alice.dialog(with: bob)
        try bob.send("b1", to: chat, cid: 1)
        let sent = try alice.send("a1", to: chat, cid: 2).message.id
        let link = NewLink(type: .reply, messageID: sent)
        try bob.call(
            MsgSendRequest(chatID: chat, message: NewMessage(cid: 3, text: "b2", link: link))
        )
        try bob.call(
            MsgReactionRequest(chatID: chat, messageID: sent, reaction: NewReaction(id: "👍"))
        )
        try alice.call(MsgEditRequest(chatID: chat, messageID: sent, text: "a1, edited"))
        let own = try alice.call(ContactInfoRequest(contactIDs: [alice.userID])).contacts[0]
        try bob.meet([try #require(own.phone).description])
        let group = try bob.createGroup("Picnic", with: [alice], cid: 4)
        try bob.send("b3", to: group, cid: 5)

        // Produce every property of a chat, a person and an action.
        try alice.call(DraftSaveRequest(chatID: chat, draft: NewDraft(text: "draft")))
        try bob.call(ProfileRequest(description: "about Bob"))
        try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .add))
        let refused = try await device.run(["send", "\(chat)", "--reply-to", "1", "lost"])
        #expect(refused.status == 1, "\(refused.errors)")

        // Produce every property of an entity.
        func add(_ words: String...) async throws -> String {
            let added = try await device.run(["entities", "add"] + words)
            return try #require(added.lines.last, "\(added.errors)")
        }
        let account = try await add("account", "name=Home")
        let profile = try await add("profile", "--below", account, "name=Alice", "born=1")
        let note = try await add("note", "--below", profile, "title=t", "tags=a,b")
        _ = try await add(
            "measurement",
            "--below",
            profile,
            "at=\(Int64.max / 8)",
            "kind=weight",
            "value=1.5"
        )

        // Produce every property of a conflict: two devices change one note, and the server refuses
        // another, longer note.
        let other = TambourAccount(directory: directory, name: "other")
        let second = try server.signIn(phoneOf: alice, device: "other")
        defer { second.close() }
        try await other.logIn(to: server.address, token: second.token)
        struct EntityJSON: Decodable { let id: String, type: String }
        let listed = try await other.run(["entities", "list", "--json"])
        let entities = try listed.lines.map {
            try JSONDecoder().decode(EntityJSON.self, from: Data($0.utf8))
        }
        let shared = try #require(entities.first { $0.type == "note" }?.id, "\(listed.errors)")
        #expect(try await other.run(["entities", "set", shared, "text=theirs"]).status == 0)
        let offline = ["entities", "set", note, "text=mine", "--wait", "0"]
        #expect(try await device.run(offline).status == 0)
        let long = "text=\(String(repeating: "long ", count: 50))"
        _ = try await add("note", "--below", profile, long)

        // Produce every property of a preference.
        try #"{"theme": "dark", "notify": "bell"}"#.write(
            to: directory.appending(path: "preferences.json"),
            atomically: true,
            encoding: .utf8
        )

        let commands: [String: Command] = [
            "tail": Command(schema: "message", arguments: ["-n", "1"]),
            "history": Command(schema: "message", arguments: ["\(chat)", "--queued"]),
            "chats": Command(schema: "chat", arguments: ["--all"]),
            "people": Command(schema: "person", arguments: []),
            "groups members": Command(schema: "person", arguments: ["\(group)"]),
            "sessions list": Command(schema: "session", arguments: []),
            "queue list": Command(schema: "action", arguments: []),
            "entities conflicts": Command(schema: "conflict", arguments: [], status: 1),
            "search": Command(schema: "message", arguments: ["b"]),
            "keys": Command(schema: "preferences", arguments: []),
            "entities list": Command(schema: "entity", arguments: []),
            "entities series": Command(schema: "entity", arguments: [profile]),
        ]
        #expect(try Set(commands.keys) == commandsWithJSON(), "each needs arguments here")
        #expect(try await device.run(["chats", "--sync"]).status == 0)
        var outputs: [String: [String]] = [:]
        func run(_ words: [String], _ schema: String, status: Int32 = 0) async throws {
            let result = try await device.run(words)
            #expect(result.status == status, "\(words): \(result.errors)")
            let file = directory.appending(path: words.joined(separator: " "))
            try result.lines.joined(separator: "\n").write(
                to: file,
                atomically: true,
                encoding: .utf8
            )
            outputs[schema, default: []].append(file.path)
        }
        try await run(["export", "\(group)", "--whole"], "message")
        var cid: Int64 = 6
        for (name, command) in commands {
            // `tail` shows messages that arrived since the device was last connected.
            try bob.send("b\(cid)", to: chat, cid: cid)
            cid += 1
            let words = name.split(separator: " ").map(String.init)
            try await run(
                words + command.arguments + ["--json"],
                command.schema,
                status: command.status
            )
        }

        for (schema, files) in outputs {
            let outcome = try ChildProcess.run(
                try #require(StockClient.python),
                [
                    Self.root.appending(path: "Tests/SystemTests/JSONOutput/validate.py").path,
                    Self.root.appending(path: "docs/schema/\(schema).json").path,
                ] + files
            )
            #expect(outcome.status == 0, "\(schema):\n\(outcome.output)\(outcome.errors)")
        }
    }

    /// Returns the names of the commands that have `--json`, as the parser reports them.
    private func commandsWithJSON() throws -> Set<String> {
        struct Dump: Decodable { let command: Node }
        struct Node: Decodable {
            struct Argument: Decodable {
                struct Name: Decodable { let name: String }
                let names: [Name]?
            }
            let commandName: String
            let subcommands: [Node]?
            let arguments: [Argument]?
        }
        let program = try TambourdProcess.program().deletingLastPathComponent()
            .appending(path: "tambour")
        let help = try ChildProcess.run(program, ["--experimental-dump-help"])
        let dump = try JSONDecoder().decode(Dump.self, from: Data(help.output.utf8))
        func names(_ node: Node, _ path: [String]) -> [String] {
            let hasJSON = (node.arguments ?? []).contains { argument in
                (argument.names ?? []).contains { $0.name == "json" }
            }
            return (hasJSON ? [path.joined(separator: " ")] : [])
                + (node.subcommands ?? []).flatMap { names($0, path + [$0.commandName]) }
        }
        return Set(names(dump.command, []))
    }
}
