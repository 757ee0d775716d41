import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

/// Tests that the screen keeps a text that the user has begun, on this device and on the account's
/// other devices.
@Suite("Drafts at the screen", .serialized)
struct ScreenDraftTests {
    /// Bob and Alice have each sent a message to their dialog. There is also a group.
    private static var two: Before {
        Before { world in
            try world.bob.send("hello", to: world.chat, cid: 1)
            try world.alice.send("my own", to: world.chat, cid: 2)
            _ = try world.bob.createGroup("Friends", with: [world.alice], cid: 77)
        }
    }

    private static func draft(at desk: Desk) throws -> String? {
        try desk.client.chat(desk.chat)?.draft
    }

    /// Saves a draft from another device of the user at the desk.
    private static func save(_ text: Text, at desk: Desk) throws {
        try desk.alice.call(
            DraftSaveRequest(chatID: desk.chat, draft: NewDraft(text: text))
        )
    }

    @Test("what another device begins to write comes into the untouched line and stays")
    func fromElsewhere() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            try Self.save("from the phone", at: desk)
            try await desk.display.waits(for: "> from the phone")
            try Self.save("from the phone, longer", at: desk)
            try await desk.display.waits(for: "> from the phone, longer")
            try await desk.open("Friends")
            await desk.waitForWishes()
            #expect(await desk.client.settle(within: .seconds(60)))
            #expect(try Self.draft(at: desk) == "from the phone, longer")
            try await desk.openBob()
            #expect(desk.look(\.input).text == "from the phone, longer")
        }
    }

    @Test("sending throws away only the draft that the line began with")
    func sentBeside() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            desk.type("mine")
            try Self.save("of the phone", at: desk)
            try await desk.display.wait(for: "the draft") { _ in
                (try? Self.draft(at: desk)) == "of the phone"
            }
            #expect(desk.look(\.input).text == "mine")
            desk.type("\n")
            try await desk.display.waits(for: "> of the phone")
            await desk.waitForWishes()
            #expect(await desk.client.settle(within: .seconds(60)))
            #expect(try Self.draft(at: desk) == "of the phone")
            #expect(try desk.client.history(of: desk.chat).rows.last?.text == "mine")
        }
    }

    @Test("what could not be sent is in the line again, and its draft is still there")
    func notSent() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            desk.type("hello")
            desk.passTime()
            await desk.waitForWishes()
            #expect(await desk.client.settle(within: .seconds(60)))
            desk.stopServer()
            // Remove the signed-in user from the store. Without a user, the client cannot send the
            // text.
            let store = try LocalStore(path: "\(desk.directory)/alice.db")
            try store.write { try $0.set(.user, nil) }
            store.close()
            desk.type(" there\n")
            await desk.waitForWishes()
            try await desk.display.waits(for: "> hello there")
            #expect(try Self.draft(at: desk) == "hello")
        }
    }

    @Test("a chat that is left and opened again at once has its text")
    func quickly() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            desk.type("hello")
            let (up, down) = (KeyPress(.up, .alt), KeyPress(.down, .alt))
            let isFirst = desk.look { $0.chats.first?.id == desk.chat }
            desk.press(isFirst ? [down, up] : [up, down])
            #expect(desk.look(\.open) == desk.chat)
            #expect(desk.look(\.input).text == "hello")
            desk.press(isFirst ? [down] : [up])
            await desk.waitForWishes()
            #expect(await desk.client.settle(within: .seconds(60)))
            #expect(try Self.draft(at: desk) == "hello")
        }
    }

    @Test("what is written is stored as soon as nothing is typed for a while")
    func pause() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            desk.type("hel")
            desk.type("lo")
            #expect(try Self.draft(at: desk) == nil)
            desk.passTime()
            await desk.waitForWishes()
            #expect(try Self.draft(at: desk) == "hello")
            // If two devices save drafts, the later draft wins. So wait until this draft is on the
            // server.
            #expect(await desk.client.settle(within: .seconds(60)))
            // The user has not edited the line. The screen does not store it again, even after a
            // cursor move.
            try Self.save("of the phone", at: desk)
            try await desk.display.waits(for: "> of the phone")
            desk.press(KeyPress(.left))
            desk.passTime()
            await desk.waitForWishes()
            #expect(try Self.draft(at: desk) == "of the phone")
            desk.press(.control("e"), .control("u"))
            desk.passTime()
            await desk.waitForWishes()
            #expect(try Self.draft(at: desk) == nil)
        }
    }

    @Test("a command is no draft, and a message that begins with a slash is one")
    func slashes() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            desk.type("//etc/passwd")
            try await desk.open("Friends")
            await desk.waitForWishes()
            #expect(try Self.draft(at: desk) == "/etc/passwd")
            try await desk.openBob()
            #expect(desk.look(\.input).text == "//etc/passwd")
            desk.press(.control("u"))
            desk.type("/hel")
            try await desk.open("Friends")
            await desk.waitForWishes()
            #expect(try Self.draft(at: desk) == "/etc/passwd")
        }
    }

    @Test("a half-written answer is kept with what it answers")
    func answer() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            // A login contains only the newest message of the dialog, so wait for both messages.
            try await desk.display.wait(for: "both") { _ in desk.look { $0.rows.count == 2 } }
            desk.press(KeyPress(.escape), KeyPress(.up), KeyPress(.character("r")))
            desk.type("half an ans")
            try await desk.open("Friends")
            try await desk.openBob()
            #expect(desk.look(\.input).text == "half an ans")
            try await desk.display.waits(for: "┃ Bob: hello")
            desk.type("wer\n")
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last { $0.text == "half an answer" }?.message != nil }
            }
            #expect(desk.look { $0.rows.last?.quote?.text } == "hello")
            await desk.waitForWishes()
            #expect(await desk.client.settle(within: .seconds(60)))
            #expect(try Self.draft(at: desk) == nil)
        }
    }

    @Test("changing a message puts aside what was being written, and is itself kept")
    func edit() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "my own")
            desk.type("half")
            desk.press(KeyPress(.escape), KeyPress(.character("e")))
            #expect(desk.look(\.input).text == "my own")
            desk.type(" words")
            try await desk.open("Friends")
            #expect(desk.look(\.input).isEmpty)
            await desk.waitForWishes()
            #expect(await desk.client.settle(within: .seconds(60)))
            #expect(try Self.draft(at: desk) == "half")
            try await desk.openBob()
            #expect(desk.look(\.input).text == "my own words")
            desk.type("\n")
            try await desk.display.waits(for: "edited")
            #expect(desk.look { $0.rows.last?.text } == "my own words")
            #expect(desk.look(\.input).text == "half")
            desk.press(KeyPress(.escape), KeyPress(.character("e")), KeyPress(.escape))
            #expect(desk.look(\.input).text == "half")
        }
    }

    @Test("what is asked for is done in its order, and all of it before the program ends")
    func order() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.openBob()
            let texts = (1...40).map { "number \($0)" }
            var keys: [KeyPress] = []
            for text in texts {
                keys += text.unicodeScalars.map { KeyPress(.character($0)) }
                keys.append(KeyPress(.enter))
            }
            keys.append(.control("q"))
            desk.press(keys)
            await desk.waitForEnd()
            let sent = try desk.client.history(of: desk.chat, count: 100).rows.map(\.text)
            #expect(sent.suffix(40) == texts[...])
        }
    }
}
