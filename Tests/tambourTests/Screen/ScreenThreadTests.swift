import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Tests the panel of a thread. The panel shows the answered message and its answers.
@Suite("Threads at the screen", .serialized)
struct ScreenThreadTests {
    /// Makes Bob send a message, which may be an answer to another message.
    @discardableResult
    private static func say(
        _ text: Text,
        answering answered: MessageID? = nil,
        cid: Int64,
        _ bob: WireClient,
        in chat: ChatID
    ) throws -> MessageID {
        let link = answered.map { NewLink(type: .reply, messageID: $0) }
        let message = NewMessage(cid: cid, text: text, link: link)
        return try bob.call(MsgSendRequest(chatID: chat, message: message)).message.id
    }

    /// A question with two answers. One of the answers also has an answer. There is an unrelated
    /// message in between.
    private static var talk: Before {
        Before { world in
            let (bob, chat) = (world.bob, world.chat)
            let question = try say("question", cid: 1, bob, in: chat)
            try say("aside", cid: 2, bob, in: chat)
            let first = try say("first", answering: question, cid: 3, bob, in: chat)
            try say("second", answering: question, cid: 4, bob, in: chat)
            try say("deeper", answering: first, cid: 5, bob, in: chat)
        }
    }

    /// Opens the dialog with Bob and waits for `count` messages.
    private static func open(_ count: Int, at desk: Desk) async throws {
        try await desk.openBob()
        try await desk.display.wait(for: "all of it") { _ in
            desk.look { $0.rows.count == count }
        }
    }

    private static func texts(at desk: Desk) -> [String] {
        desk.look { $0.panel?.items.map { $0.detail ?? $0.title } ?? [] }
    }

    private static func chosen(at desk: Desk) -> String? {
        desk.look { $0.panel?.selectedItem?.detail }
    }

    private static func wait(for texts: [String], at desk: Desk) async throws {
        try await desk.display.wait(for: "\(texts)") { _ in Self.texts(at: desk) == texts }
    }

    @Test("a thread is opened on a message, leads to another one, and back")
    func goesAndComesBack() async throws {
        let filler = Before { world in
            let question = try Self.say("question", cid: 1, world.bob, in: world.chat)
            for cid in 2...60 as ClosedRange<Int64> {
                try Self.say("filler", cid: cid, world.bob, in: world.chat)
            }
            try Self.say("answer", answering: question, cid: 61, world.bob, in: world.chat)
            try Self.say("aside", cid: 62, world.bob, in: world.chat)
        }
        try await atDesk(after: filler) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "answer")
            desk.press(KeyPress(.escape), KeyPress(.up), KeyPress(.character("t")))
            // The answered message may not be on this device yet. It arrives while the panel is
            // open, or when the user goes to the message.
            try await desk.display.wait(for: "both") { _ in Self.texts(at: desk).count == 2 }
            #expect(Self.chosen(at: desk) == "answer")
            try await desk.display.waits(for: "this one, ")
            desk.press(KeyPress(.up), KeyPress(.enter))
            #expect(desk.look { $0.panel == nil })
            try await desk.display.wait(for: "the question") { _ in
                desk.look { $0.selectedRow?.text == "question" }
            }
            desk.press(.alt("o"))
            try await desk.display.wait(for: "back") { _ in
                desk.look { $0.rows.last?.text == "aside" }
            }
        }
    }

    @Test("answers stand to the right of what they answer, and the message is marked")
    func tree() async throws {
        try await atDesk(after: Self.talk) { desk in
            try await Self.open(5, at: desk)
            desk.type("/thread\n")
            try await Self.wait(for: ["question", "first", "deeper", "second"], at: desk)
            #expect(desk.look { $0.panel?.items.map(\.indent) } == [0, 2, 4, 2])
            #expect(Self.chosen(at: desk) == "deeper")
            try await desk.display.waits(for: "4 messages on this device")
            let marked = desk.look { $0.panel?.items.filter { $0.right.hasPrefix("this one") } }
            #expect(marked?.map(\.detail) == ["deeper"])
            desk.press(KeyPress(.escape))
            #expect(desk.look { $0.panel == nil && $0.focus == .input })
        }
    }

    @Test("new answers appear, and what was chosen is chosen still until it is deleted")
    func moves() async throws {
        try await atDesk(after: Self.talk) { desk in
            try await Self.open(5, at: desk)
            let ids = desk.look { $0.rows.compactMap(\.message) }
            desk.type("/thread\n")
            try await Self.wait(for: ["question", "first", "deeper", "second"], at: desk)
            desk.press(KeyPress(.down))
            #expect(Self.chosen(at: desk) == "second")
            try Self.say("above", answering: ids[2], cid: 6, desk.bob, in: desk.chat)
            try await Self.wait(for: ["question", "first", "deeper", "above", "second"], at: desk)
            #expect(Self.chosen(at: desk) == "second")
            try desk.bob.call(MsgDeleteRequest(chatID: desk.chat, messageIDs: [ids[3]]))
            try await Self.wait(for: ["question", "first", "deeper", "above"], at: desk)
            #expect(Self.chosen(at: desk) == nil)
            desk.press(KeyPress(.enter))
            #expect(desk.look { $0.panel != nil })
            // Bob deletes the message from which the panel was opened. The panel still shows the
            // thread.
            try desk.bob.call(MsgDeleteRequest(chatID: desk.chat, messageIDs: [ids[4]]))
            try await Self.wait(for: ["question", "first", "above"], at: desk)
        }
    }

    @Test("offline, what waits to be sent is in it and is gone to")
    func offline() async throws {
        try await atDesk(after: Self.talk) { desk in
            try await Self.open(5, at: desk)
            try await desk.loseServer()
            desk.press(KeyPress(.escape), KeyPress(.character("r")))
            desk.type("mine\n")
            try await desk.display.wait(for: "it waits") { _ in
                desk.look { $0.rows.last?.text == "mine" }
            }
            desk.press(KeyPress(.escape), KeyPress(.character("t")))
            try await Self.wait(
                for: ["question", "first", "deeper", "mine", "second"],
                at: desk
            )
            #expect(Self.chosen(at: desk) == "mine")
            desk.press(KeyPress(.up), KeyPress(.enter))
            try await desk.display.wait(for: "another one") { _ in
                desk.look { $0.selectedRow?.text == "deeper" }
            }
            desk.press(KeyPress(.character("t")))
            try await Self.wait(
                for: ["question", "first", "deeper", "mine", "second"],
                at: desk
            )
            desk.press(KeyPress(.down), KeyPress(.enter))
            try await desk.display.wait(for: "what waits") { _ in
                desk.look { $0.selectedRow?.text == "mine" && $0.focus == .messages }
            }
        }
    }

    @Test("what began it is said to be missing, and is fetched when it is gone to")
    func missing() async throws {
        try await atDesk(
            after: Before { world in
                let question = try Self.say("question", cid: 1, world.bob, in: world.chat)
                for cid in 2...200 as ClosedRange<Int64> {
                    try Self.say("filler", cid: cid, world.bob, in: world.chat)
                }
                try Self.say("answer", answering: question, cid: 201, world.bob, in: world.chat)
            }
        ) { desk in
            try await desk.openBob()
            desk.type("/thread\n")
            let missing = "(a message that is not on this device)"
            try await Self.wait(for: [missing, "answer"], at: desk)
            try await desk.display.waits(for: missing)
            desk.press(KeyPress(.up), KeyPress(.enter))
            try await desk.display.wait(for: "the question") { _ in
                desk.look { $0.selectedRow?.text == "question" }
            }
            desk.press(KeyPress(.character("t")))
            try await Self.wait(for: ["question", "answer"], at: desk)
        }
    }

    @Test("a deep chain fits the screen, and what others write does nothing but be read")
    func deepAndStrange() async throws {
        try await atDesk(
            after: Before { world in
                var last = try Self.say("1", cid: 1, world.bob, in: world.chat)
                for number in 2...30 as ClosedRange<Int64> {
                    let text = Text("\(number) שלום \u{1B}[31m\u{202E} words\nanother line")
                    last = try Self.say(
                        text,
                        answering: last,
                        cid: number,
                        world.bob,
                        in: world.chat
                    )
                }
            }
        ) { desk in
            try await desk.resize(to: Size(columns: 80, rows: 24))
            try await desk.openBob()
            try await desk.display.wait(for: "all of it") { _ in
                desk.look { $0.rows.count == 30 }
            }
            desk.type("/thread\n")
            try await desk.display.waits(for: "30 messages on this device")
            desk.waitForDrawing()
            let lines = desk.display.lines
            let last = try #require(lines.last { $0.contains("this one") })
            #expect(last.hasPrefix("│                    ▌Bob"))
            #expect(last.hasSuffix("│"))
            #expect(lines.contains { $0.contains("םולש 30") })
            #expect(!lines.contains { $0.contains("another line") })
            #expect(lines.allSatisfy { !$0.unicodeScalars.contains("\u{1B}") })
        }
    }
}
