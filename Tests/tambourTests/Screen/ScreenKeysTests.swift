import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

@Suite("A key at the screen", .serialized)
struct ScreenKeysTests {
    private static func hello(_ world: Desk.World) throws {
        try world.bob.send("hello", to: world.chat, cid: 1)
    }

    @Test("that closes the help is written, too, when it is a letter")
    func letterInHelp() async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            desk.press(KeyPress(.function(1)))
            desk.type("find")
            #expect(desk.look(\.help) == nil)
            #expect(desk.look(\.input).text == "find")
        }
    }

    @Test("that is no command for the chosen message is written", arguments: ["привет", "Ask me"])
    func letterForMessage(text: String) async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "hello")
            desk.press(KeyPress(.escape))
            #expect(desk.look(\.focus) == .messages)
            desk.type(text)
            #expect(desk.look(\.focus) == .input)
            #expect(desk.look(\.input).text == text)
        }
    }

    @Test(
        "sends no command that is refused: it stays in the line",
        arguments: ["/nonsense", "/find"]
    )
    func refusedCommand(line: String) async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            desk.type("\(line)\n")
            #expect(desk.look(\.notice)?.isError == true)
            #expect(desk.look(\.input).text == line)
        }
    }

    @Test(
        "that the server refuses returns into the line, over a draft, too",
        arguments: ["/find +79990009999", "/add Nobody"],
        ["", "a draft"]
    )
    func commandRefusedLater(line: String, draft: String) async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            desk.type(draft)
            desk.passTime()
            desk.type("\(line)\n")
            try await desk.display.wait(for: "the reason") { _ in
                desk.look { $0.notice?.isError == true && $0.input.text == line }
            }
            desk.press(KeyPress(.escape))
            #expect(desk.look(\.input).text == (draft.isEmpty ? line : draft))
        }
    }

    @Test("names somebody from a shared group, who is no contact")
    func strangerByName() async throws {
        let before = Before { world in
            let carol = try world.server.signUp("Carol")
            let group = try world.bob.createGroup("Friends", with: [world.alice, carol], cid: 77)
            _ = try carol.send("good morning", to: group, cid: 78)
        }
        try await atDesk(after: before) { desk in
            try await desk.open("Friends")
            try await desk.display.waits(for: "Carol")
            desk.type("/find car\n")
            try await desk.display.waits(for: "Carol: your first message begins the chat")
            #expect(desk.look(\.openTitle) == "Carol")
        }
    }

    @Test("deletes nothing of others for everybody, and the screen says so")
    func deletingOthers() async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "hello")
            desk.press(KeyPress(.escape), KeyPress(.character("d")), KeyPress(.character("y")))
            try await desk.display.waits(for: "can be deleted only for yourself")
            // The row returns when the client has stored the server's answer. This may happen after
            // the notice appears.
            try await desk.display.wait(for: "the message again") { _ in
                desk.look { $0.rows.map(\.text) == ["hello"] }
            }
        }
    }

    @Test("that deletes a message selects the next one, or the line after the last")
    func neighbour() async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "hello")
            desk.type("mine\n")
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last?.message != nil && $0.rows.count == 2 }
            }
            for left in ["hello", nil] {
                desk.press(KeyPress(.escape))
                desk.press(KeyPress(.character("D")), KeyPress(.character("y")))
                #expect(desk.look(\.selectedRow)?.text == left)
                try await desk.display.wait(for: "deleted") { _ in
                    desk.look { $0.rows.count == (left == nil ? 0 : 1) }
                }
                if left != nil { desk.press(KeyPress(.escape)) }
            }
            #expect(desk.look(\.focus) == .input)
        }
    }

    @Test("of somebody else is told of until their message is here")
    func typing() async throws {
        try await atDesk(after: Before { try Self.hello($0) }) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "hello")
            try desk.bob.call(MsgTypingRequest(chatID: desk.chat))
            try await desk.display.waits(for: "typing…")
            try desk.bob.send("written", to: desk.chat, cid: 2)
            try await desk.display.wait(for: "the message") { _ in
                desk.look { $0.rows.last?.text == "written" }
            }
            #expect(desk.look(\.typing) == nil)
        }
    }
}
