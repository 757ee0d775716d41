import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Tests what happens if lists, sizes or questions change while the user looks at the screen.
@Suite("What moves at the screen", .serialized)
struct ScreenMoveTests {
    private static var hello: Before {
        Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }
    }

    private static var groupAndHello: Before {
        Before { world in
            _ = try world.bob.createGroup("Friends", with: [world.alice], cid: 77)
            try hello.happen(world)
        }
    }

    @Test("what is chosen in a list stays chosen when the list moves")
    func selection() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            try await desk.loseServer()
            desk.type("first\nsecond\nthird\n")
            try await desk.display.wait(for: "all") { _ in desk.look { $0.rows.count == 4 } }
            desk.press(.alt("q"))
            try await desk.display.waits(for: "message “third”")
            func chosen() -> String? { desk.look { $0.panel?.selectedItem?.title } }
            for _ in 0..<9 where chosen()?.hasPrefix("message “second”") != true {
                desk.press(KeyPress(.down))
            }
            #expect(chosen()?.hasPrefix("message “second”") == true)
            let first = try #require(
                try desk.client.waiting().first { $0.kind == .message("first") }
            )
            try await desk.client.cancel(first.id)
            try await desk.display.waitsForEnd(of: "message “first”")
            #expect(chosen()?.hasPrefix("message “second”") == true)
            let second = try #require(
                try desk.client.waiting().first { $0.kind == .message("second") }
            )
            try await desk.client.cancel(second.id)
            try await desk.display.waitsForEnd(of: "message “second”")
            // The selected item has just disappeared by itself. The next key must not affect
            // another item.
            desk.press(KeyPress(.character("x")))
            await desk.waitForWishes()
            #expect(try desk.client.waiting().contains { $0.kind == .message("third") })
            desk.press(KeyPress(.escape))
        }
    }

    @Test(
        "without an open chat the keys of a list open one",
        arguments: [KeyPress.Key.down, .enter]
    )
    func firstChat(key: KeyPress.Key) async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.display.wait(for: "the chat") { _ in desk.look { !$0.chats.isEmpty } }
            #expect(desk.look { $0.open } == nil)
            desk.press(KeyPress(key))
            try await desk.display.waits(for: "hello")
            #expect(desk.look { $0.openChat?.title } == "Bob")
        }
    }

    @Test("a question is answered by the same key in a Russian layout")
    func russianYes() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("gone soon\n")
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last?.message != nil && $0.rows.count == 2 }
            }
            desk.press(KeyPress(.escape), KeyPress(.character("в")), KeyPress(.character("н")))
            try await desk.display.wait(for: "it is gone") { _ in desk.look { $0.rows.count == 1 } }
        }
    }

    @Test("the chosen chat stays chosen while others come before it")
    func goTo() async throws {
        try await atDesk(after: Self.groupAndHello) { desk in
            try await desk.display.wait(for: "both") { _ in
                desk.look { $0.chats.first?.title == "Bob" && $0.chats.count == 2 }
            }
            let group = try #require(desk.look { $0.chats.last?.id })
            desk.press(.alt("g"))
            #expect(desk.look { $0.panel?.selectedItem?.title } == "Bob")
            try desk.bob.send("come", to: group, cid: 2)
            try await desk.display.wait(for: "the group is first") { _ in
                desk.look { $0.panel?.items.first?.title == "Friends" }
            }
            #expect(desk.look { $0.panel?.selectedItem?.title } == "Bob")
            // If the user changes the search, the panel selects the best match again.
            desk.type("f")
            #expect(desk.look { $0.panel?.selectedItem?.title } == "Friends")
            desk.press(KeyPress(.escape))
        }
    }

    @Test("what is read stays in sight when the terminal gets another size")
    func resize() async throws {
        let long = String(repeating: "word ", count: 60)
        try await atDesk(
            after: Before { world in
                for number in 1...40 {
                    try world.bob.send(
                        "number \(number) \(long)end\(number).",
                        to: world.chat,
                        cid: Int64(number)
                    )
                }
            }
        ) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "end40.")
            try await desk.display.wait(for: "all") { _ in desk.look { $0.rows.count == 40 } }
            for _ in 0..<6 {
                desk.press(KeyPress(.pageUp))
                desk.waitForDrawing()
            }
            let before = try #require(desk.lastSeen)
            #expect(!before.contains("end40."))
            try await desk.resize(to: Size(columns: 200, rows: 50))
            #expect(desk.lastSeen == before)
            try await desk.resize(to: Size(columns: 60, rows: 20))
            #expect(desk.lastSeen == before)
            // The screen stops scrolling at the first line.
            desk.change { $0.scroll = 100_000 }
            try await desk.resize(to: Size(columns: 90, rows: 24))
            #expect(desk.display.lines.contains { $0.contains("number 1 ") })
        }
    }

    @Test("the line moves as it is drawn on wide screens")
    func wideLine() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            try await desk.resize(to: Size(columns: 220, rows: 24))
            desk.type(String(repeating: "a", count: 150))
            desk.press(KeyPress(.up))
            #expect(desk.look(\.input).cursor == 150)
            desk.press(.control("u"))
        }
    }

    @Test("Ctrl-C says how to leave, and Ctrl-Q leaves from everywhere")
    func leaving() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.press(.control("c"))
            #expect(desk.look { $0.notice?.text } == "Ctrl-Q leaves")
            desk.press(KeyPress(.escape))
            let chosen = desk.look(\.selected)
            desk.press(KeyPress(.character("d")))
            #expect(desk.look { $0.focus == .prompt })
            desk.press(.control("c"))
            #expect(desk.look { $0.notice?.text } == "Ctrl-Q leaves")
            #expect(desk.look { $0.focus == .prompt })
            desk.press(KeyPress(.character("n")))
            #expect(desk.look { $0.focus == .messages })
            #expect(desk.look(\.selected) == chosen)
            desk.press(KeyPress(.character("d")), .control("q"))
            await desk.waitForEnd()
        }
    }

    @Test("who is in a group is asked when somebody is to be named, once")
    func names() async throws {
        try await atDesk(after: Self.groupAndHello) { desk in
            func count(_ opcode: String, _ direction: FrameTap.Direction) -> Int {
                desk.look { state in
                    state.frames?.count { $0.opcode == opcode && $0.direction == direction } ?? 0
                }
            }
            /// Returns how often the client has requested the members. First waits until all
            /// earlier frames are counted.
            func asked() async throws -> Int {
                let before = count("SESSIONS_INFO", .received)
                _ = try await desk.client.sessions()
                try await desk.display.wait(for: "the frames until now") { _ in
                    count("SESSIONS_INFO", .received) > before
                }
                return count("CHAT_MEMBERS", .sent)
            }
            func name() async throws {
                desk.type("@b")
                try await desk.display.wait(for: "the name") { _ in
                    desk.look { $0.suggestions?.entries.contains { $0.text == "@Bob " } == true }
                }
                desk.press(.control("u"))
            }
            desk.type("/debug\n")
            try await desk.open("Friends")
            #expect(try await asked() == 0)
            try await name()
            try await desk.display.wait(for: "who is there") { _ in
                count("CHAT_MEMBERS", .received) == 1
            }
            #expect(try await asked() == 1)
            try await desk.openBob()
            try await desk.open("Friends")
            try await name()
            #expect(try await asked() == 1)
        }
    }

    @Test("a message that waits is changed in its place")
    func queued() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            try await desk.loseServer()
            desk.type("first\nsecond\n")
            try await desk.display.wait(for: "both") { _ in desk.look { $0.rows.count == 3 } }
            desk.press(KeyPress(.escape), KeyPress(.up), KeyPress(.character("e")))
            #expect(desk.look(\.input).text == "first")
            desk.type(" of all\n")
            try await desk.display.wait(for: "the new text") { _ in
                desk.look { $0.rows.map(\.text) == ["hello", "first of all", "second"] }
            }
        }
    }
}
