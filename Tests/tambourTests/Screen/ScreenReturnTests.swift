import Dispatch
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

/// Tests what the screen shows again after a restart, a command or a lost connection.
@Suite("Coming back at the screen", .serialized)
struct ScreenReturnTests {
    private static var hello: Before {
        Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }
    }

    @Test("the open chat is open at the next start, unless it is lost")
    func openChat() async throws {
        try await atDesk(after: Self.hello) { desk in
            #expect(try desk.client.openChat() == nil)
            try await desk.openBob()
            await desk.waitForWishes()
            #expect(try desk.client.openChat() == desk.chat)
            let (display, preferences) = (LookedAtDisplay(), PreferencesFile(path: nil))
            let next = ScreenController(client: desk.client, preferences: preferences, theme: .none)
            try next.queue.sync { try next.begin(on: display) { _ in } }
            try await display.waits(for: " hello")
            #expect(next.queue.sync { next.state.openTitle } == "Bob")
            next.queue.sync { next.close() }
            await withCheckedContinuation { done in next.perform { _ in done.resume() } }
            #expect(try desk.client.openChat() == nil)
            next.queue.sync { next.end(0) }
        }
    }

    @Test("a command replaces an untouched draft, which then returns")
    func commandOverDraft() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("half a thought")
            desk.passTime()
            await desk.waitForWishes()
            desk.type("/theme none\n")
            #expect(desk.look(\.notice)?.isError != true)
            #expect(desk.look(\.input).text == "half a thought")
            desk.type("/nonsense\n")
            #expect(desk.look(\.notice)?.isError == true)
            #expect(desk.look(\.input).text == "/nonsense")
            desk.press(KeyPress(.escape))
            #expect(desk.look(\.input).text == "half a thought")
            // If the user has not edited the draft, two slashes add one slash to it. After an edit,
            // a single slash is part of the text.
            desk.type("//")
            #expect(desk.look(\.input).text == "half a thought/")
            desk.type("/x")
            #expect(desk.look(\.input).text == "half a thought//x")
            #expect(desk.look(\.rows).map(\.text) == ["hello"])
        }
    }

    @Test("a command that is deleted letter by letter brings the draft back")
    func deletedCommand() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("half")
            desk.passTime()
            await desk.waitForWishes()
            desk.type("/m")
            #expect(desk.look(\.input).text == "/m")
            desk.press(KeyPress(.backspace), KeyPress(.backspace))
            #expect(desk.look(\.input).text == "half")
        }
    }

    @Test("somebody is found by phone or by name, and only a new chat needs a first message")
    func found() async throws {
        try await atDesk(after: Self.hello) { desk in
            let info = try desk.bob.call(ContactInfoRequest(contactIDs: [desk.bob.userID]))
            let phone = try #require(info.contacts.first?.phone)
            desk.type("/find +\(phone)\n")
            try await desk.display.wait(for: "the chat") { _ in desk.look(\.open) == desk.chat }
            #expect(desk.look(\.notice) == nil)
        }
    }

    @Test("the saved messages have a command")
    func savedMessages() async throws {
        try await atDesk(after: Self.hello) { desk in
            desk.type("/saved\n")
            try await desk.display.waits(for: "Saved messages")
            desk.type("a note\n")
            try await desk.display.wait(for: "the note") { _ in
                desk.look { $0.rows.last.map { $0.text == "a note" && $0.message != nil } == true }
            }
            #expect(desk.look(\.open) == ChatID(0))
        }
    }

    @Test("Esc closes the packets")
    func packets() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("/debug\n")
            try await desk.display.waits(for: "Packets: Esc closes")
            desk.press(KeyPress(.escape))
            try await desk.display.waitsForEnd(of: "Packets")
            #expect(desk.look(\.focus) == .input)
        }
    }

    @Test("offline, the status says when the next try is")
    func nextTry() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.loseServer()
            try await desk.display.waits(for: "offline, next try at ")
        }
    }

    @Test("the pinned message is below the title, and is gone to")
    func pinned() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.press(KeyPress(.escape), KeyPress(.character("P")))
            try await desk.display.waits(for: "^ Bob: hello")
            desk.press(KeyPress(.escape))
            desk.type("/pinned\n")
            #expect(desk.look(\.selectedRow)?.text == "hello")
            desk.press(KeyPress(.escape))
            desk.type("/unpin\n")
            try await desk.display.waitsForEnd(of: "^ Bob: hello")
            desk.type("/pinned\n")
            #expect(desk.look(\.notice)?.text == "this chat has no pinned message")
        }
    }

    @Test("the pinned message is that of others: pinned, edited, kept and deleted elsewhere")
    func pinnedElsewhere() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            let hello = try #require(desk.look { $0.rows.last?.message })
            let bob = desk.bob
            try bob.call(ChatUpdateRequest(chatID: desk.chat, pinMessageID: hello))
            try await desk.display.waits(for: "^ Bob: hello")
            try bob.call(MsgEditRequest(chatID: desk.chat, messageID: hello, text: "good day"))
            try await desk.display.waits(for: "^ Bob: good day")
            let silent = ChatUpdateRequest(
                chatID: desk.chat,
                pinMessageID: MessageID(0),
                notifyPin: false
            )
            try bob.call(silent)
            try await desk.display.waitsForEnd(of: "^ Bob: good day")
            try bob.call(ChatUpdateRequest(chatID: desk.chat, pinMessageID: hello))
            try await desk.display.waits(for: "^ Bob: good day")
            try bob.call(MsgDeleteRequest(chatID: desk.chat, messageIDs: [hello]))
            try await desk.display.waitsForEnd(of: "^ Bob: good day")
        }
    }

    @Test("a reply does not quote a deleted message")
    func deletedQuote() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("mine\n")
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last.map { $0.text == "mine" && $0.message != nil } == true }
            }
            let mine = try #require(desk.look { $0.rows.last?.message })
            try desk.bob.call(
                MsgSendRequest(
                    chatID: desk.chat,
                    message: NewMessage(
                        cid: 9,
                        text: "an answer",
                        link: NewLink(type: .reply, messageID: mine)
                    )
                )
            )
            try await desk.display.waits(for: "Alice: mine")
            desk.press(KeyPress(.escape), KeyPress(.up), KeyPress(.character("d")))
            desk.press(KeyPress(.character("y")))
            try await desk.display.wait(for: "no quote") { _ in
                desk.look { $0.rows.last?.text == "an answer" && $0.rows.last?.quote == nil }
            }
        }
    }
}
