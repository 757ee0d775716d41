import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour

/// What moves under the hands of whoever is at the screen: lists, sizes, questions.
@Suite("What moves at the screen", .serialized)
struct ScreenMoveTests {
    private static var hello: Before {
        Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }
    }

    @Test("who is in a group is asked when somebody is to be named, once")
    func names() async throws {
        try await atDesk(
            after: Before { world in
                _ = try world.bob.createGroup("Friends", with: [world.alice], cid: 77)
                try world.bob.send("hello", to: world.chat, cid: 1)
            }
        ) { desk in
            func count(_ opcode: String, _ direction: FrameTap.Direction) -> Int {
                desk.look { state in
                    state.frames?.count { $0.opcode == opcode && $0.direction == direction } ?? 0
                }
            }
            /// How often the server was asked who is there, once all frames until now are counted.
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
            desk.stopServer()
            try await desk.display.wait(for: "offline") { _ in
                desk.look { $0.connection != .online }
            }
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
