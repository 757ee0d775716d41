import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Tests texts that are longer than a message may be, and chats in which the user can no longer
/// write.
@Suite("What cannot be sent as it is", .serialized)
struct ScreenLimitTests {
    private static var hello: Before {
        Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }
    }

    private static let long = (1...9_000).map { "line \($0)" }.joined(separator: "\n")

    @Test("a long paste is sent whole, in as many messages as were announced")
    func longPaste() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.tell(.paste(Self.long + "\n"))
            let count = Client.parts(of: Self.long).count
            try await desk.display.waits(for: "Enter sends \(count) messages")
            #expect(desk.look(\.input).text == Self.long + "\n")
            desk.press(KeyPress(.enter))
            let texts = try (0..<count).map { _ in
                "\(try desk.bob.next(.notifMessage, as: NotifMessage.self).message.text)"
            }
            #expect(texts.joined(separator: "\n") == Self.long)
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.input.isEmpty && $0.rows.last?.message != nil }
            }
        }
    }

    @Test("a paste that the line has no room for is refused, and what was there stays")
    func hugePaste() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("before")
            desk.tell(.paste(String(repeating: "x", count: LineEditor.longest)))
            #expect(desk.look(\.input).text == "before")
            try await desk.display.waits(for: "nothing was inserted")
            desk.press(.control("u"))
        }
    }

    @Test("an edit that is too long for one message is refused, and stays in the line")
    func longEdit() async throws {
        try await atDesk(
            after: Before { try $0.alice.send("mine", to: $0.chat, cid: 1) }
        ) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "mine")
            desk.press(KeyPress(.escape), KeyPress(.character("e")))
            desk.tell(.paste(String(repeating: "x", count: 4_010)))
            try await desk.display.waits(for: "14 characters too many")
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "one message has room for 4000 characters")
            #expect(desk.look(\.input).text.utf16.count == 4_014)
            #expect(desk.look { $0.intent.isEdit })
            #expect(desk.look { $0.rows.first?.text } == "mine")
            desk.press(KeyPress(.escape))
        }
    }

    @Test("a line that is written while no chat is open is kept")
    func nowhere() async throws {
        try await atDesk { desk in
            desk.type("hello?\n")
            try await desk.display.waits(for: "no chat is open")
            #expect(desk.look(\.input).text == "hello?")
            desk.press(.control("u"))
        }
    }

    @Test("a group that the server refuses is told with its reason, and waits nowhere")
    func refusedGroup() async throws {
        let before = Before { world in
            try world.bob.send("hello", to: world.chat, cid: 78)
            try world.bob.call(ContactUpdateRequest(contactID: world.alice.userID, action: .block))
        }
        try await atDesk(after: before) { desk in
            try await desk.openBob()
            let line = "/new Friends, Bob"
            desk.type("\(line)\n")
            try await desk.display.waits(for: "Friends was not made")
            #expect(desk.look(\.input).text == line)
            let waiting = try desk.client.waiting()
            #expect(waiting.isEmpty)
        }
    }

    @Test("who is removed from a group sees it, keeps what they wrote, and can delete it")
    func removed() async throws {
        try await atDesk(
            after: Before { world in
                let group = try world.bob.createGroup("Friends", with: [world.alice], cid: 77)
                try world.bob.send("welcome", to: group, cid: 78)
            }
        ) { desk in
            try await desk.open("Friends")
            try await desk.display.waits(for: "welcome")
            desk.type("unfinished")
            let group = try #require(desk.look(\.open))
            try desk.bob.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [desk.alice.userID],
                    operation: .remove
                )
            )
            try await desk.display.waits(for: "You are no longer in this chat")
            try await desk.display.waits(for: "no longer a member")
            #expect(desk.display.lines.contains { $0.contains("welcome") })
            desk.type("\n")
            try await desk.display.waits(for: "so nothing can be sent")
            #expect(desk.look(\.input).text == "unfinished")
            desk.press(.control("u"))
            desk.type("/leave\n")
            try await desk.display.waits(for: "Delete Friends here?")
            desk.type("y")
            try await desk.display.waitsForEnd(of: "Friends")
            #expect(desk.look { $0.open == nil && $0.focus == .input })
            #expect(try desk.client.chat(group) == nil)
        }
    }
}
