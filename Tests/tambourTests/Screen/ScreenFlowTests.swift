import Dispatch
import Synchronization
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Sends keys to the screen and checks what the screen shows. The server is a real one.
@Suite("At the screen", .serialized)
struct ScreenFlowTests {
    private static func talk(_ world: Desk.World, _ texts: [String]) throws {
        for (number, text) in texts.enumerated() {
            try world.bob.send(text, to: world.chat, cid: Int64(number + 1))
        }
    }

    @Test("a message is written, sent, answered, edited and deleted")
    func writing() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }) { desk in
            try await desk.openBob()
            desk.type("hi there\n")
            try await desk.display.waits(for: "✓")
            let push = try desk.bob.next(.notifMessage, as: NotifMessage.self)
            #expect("\(push.message.text)" == "hi there")

            desk.press(KeyPress(.escape), KeyPress(.up), KeyPress(.character("r")))
            desk.type("an answer\n")
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last { $0.text == "an answer" }?.message != nil }
            }
            let answer = try desk.bob.next(.notifMessage, as: NotifMessage.self)
            #expect(answer.message.link?.stored?.type == .reply)
            try await desk.display.waits(for: "┃ Bob: hello")

            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last?.message != nil }
            }
            desk.press(KeyPress(.escape), KeyPress(.character("e")))
            desk.press(.control("u"))
            desk.type("a better answer\n")
            try await desk.display.waits(for: "edited")
            #expect(desk.display.lines.contains { $0.contains("a better answer") })

            desk.press(KeyPress(.escape), KeyPress(.character("d")))
            try await desk.display.waits(for: "Delete it for everybody?")
            // If the user presses a key that is no answer, the question stays open.
            desk.press(KeyPress(.character("h")))
            #expect(desk.look { $0.prompt != nil })
            desk.press(KeyPress(.character("y")))
            try await desk.display.waitsForEnd(of: "a better answer")
        }
    }

    @Test("a paste is never sent, whatever is in it")
    func paste() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }) { desk in
            try await desk.openBob()
            desk.tell(.paste("rm -rf /\n/quit\nmore\n"))
            #expect(desk.look(\.input).text == "rm -rf /\n/quit\nmore\n")
            #expect(desk.look(\.rows).map(\.text) == ["hello"])
            desk.press(.control("u"))
        }
    }

    @Test("search finds words here and on the server, jumps to them and steps between them")
    func search() async throws {
        let many = (1...150).map { "filler \($0)" }
        try await atDesk(
            after: Before { world in
                try Self.talk(world, ["apricot one"] + many + ["apricot two", "the end"])
            }
        ) { desk in
            try await desk.openBob()
            desk.press(.alt("/"))
            desk.type("apri")
            try await desk.display.waits(for: "2 found")
            #expect(desk.display.lines.contains { $0.contains("apricot one") })
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "1 of 2")
            try await desk.display.wait(for: "the newer hit") { _ in
                desk.look { $0.selectedRow?.text == "apricot two" }
            }
            // The older hit is not on this device. So the client fetches the page around it.
            desk.press(KeyPress(.character("n")))
            try await desk.display.wait(for: "the older hit") { _ in
                desk.look { $0.selectedRow?.text == "apricot one" }
            }
            try await desk.display.waits(for: "filler 1")
            desk.press(.alt("o"))
            try await desk.display.wait(for: "back") { _ in
                desk.look { $0.rows.contains { $0.text == "apricot two" } }
            }
            desk.press(.alt("i"))
            try await desk.display.wait(for: "forward") { _ in
                desk.look { $0.rows.contains { $0.text == "apricot one" } }
            }
            desk.press(KeyPress(.end, .alt))
            try await desk.display.waits(for: "the end")
        }
    }

    @Test("search works offline on what is here")
    func searchOffline() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["apricot", "banana"]) }) { desk in
            try await desk.openBob()
            // The chat list shows the last message before the history arrives.
            try await desk.display.waits(for: "apricot")
            try await desk.display.waits(for: "banana")
            try await desk.loseServer()
            desk.press(.alt("s"))
            desk.type("apri")
            try await desk.display.waits(for: "1 on this device, offline")
            desk.press(KeyPress(.enter))
            try await desk.display.wait(for: "the hit") { _ in
                desk.look { $0.selectedRow?.text == "apricot" }
            }
        }
    }

    @Test("a quote leads to what is quoted, and a date to its day")
    func jumps() async throws {
        let many = (1...120).map { "filler \($0)" }
        try await atDesk(
            after: Before { world in
                let first = try world.bob.send("the question", to: world.chat, cid: 1_000)
                try Self.talk(world, many)
                let link = NewLink(type: .reply, messageID: first.message.id)
                let message = NewMessage(cid: 2_000, text: "the answer", link: link)
                try world.bob.call(MsgSendRequest(chatID: world.chat, message: message))
            }
        ) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "the answer")
            desk.press(KeyPress(.escape), KeyPress(.character("q")))
            try await desk.display.wait(for: "the question") { _ in
                desk.look { $0.selectedRow?.text == "the question" }
            }
            desk.press(KeyPress(.escape))
            desk.type("/date today\n")
            try await desk.display.wait(for: "the first of today") { _ in
                desk.look { $0.rows.first?.text == "the question" }
            }
            desk.type("/date someday\n")
            try await desk.display.waits(for: "usage: /date")
        }
    }

    @Test("what was unread is marked, and Alt-u goes there")
    func unread() async throws {
        try await atDesk(
            after: Before { world in
                try Self.talk(world, ["read"])
                let seen = try world.alice.next(.notifMessage, as: NotifMessage.self)
                let mark = MarkType.readMessage
                try world.alice.call(
                    ChatMarkRequest(type: mark, chatID: world.chat, mark: seen.message.time)
                )
                for number in 1...60 {
                    try world.bob.send("unread \(number)", to: world.chat, cid: 100 + Int64(number))
                }
            }
        ) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "unread 60")
            desk.press(.alt("u"))
            try await desk.display.wait(for: "the line and what is around it") { display in
                let lines = display.lines
                let new = lines.firstIndex { $0.contains("─ new ─") }
                let first = lines.firstIndex { $0.contains("unread 1 ") }
                return new != nil && first != nil && new! < first!
            }
        }
    }

    @Test("names, emoji and commands are completed")
    func completion() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }) { desk in
            try await desk.openBob()
            desk.type("@bo")
            try await desk.display.waits(for: "@Bob")
            desk.press(KeyPress(.tab))
            #expect(desk.look(\.input).text == "@Bob ")
            desk.type(":heart:")
            #expect(desk.look(\.input).text == "@Bob ❤️")
            desk.type(" :thumbsu")
            try await desk.display.waits(for: ":thumbsup:")
            desk.press(KeyPress(.tab))
            #expect(desk.look(\.input).text == "@Bob ❤️ 👍")
            desk.type("\n")
            try await desk.display.waits(for: "✓")
            let push = try desk.bob.next(.notifMessage, as: NotifMessage.self)
            #expect("\(push.message.text)" == "@Bob ❤️ 👍")
            let element = try #require(push.message.elements?.stored?.first)
            #expect("\(element.type)" == "USER_MENTION")
            #expect(element.entityID == desk.bob.userID)
            #expect(element.length == 4)

            desk.type("/sess")
            try await desk.display.waits(for: "devices that are signed in")
            desk.press(KeyPress(.tab))
            #expect(desk.look(\.input).text == "/sessions ")
            desk.type("\n")
            try await desk.display.waits(for: "(this one)")
            desk.press(KeyPress(.escape))
        }
    }

    @Test("a text is written in an editor, and stays when that fails")
    func editor() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }) { desk in
            try await desk.openBob()
            desk.type("draft")
            desk.display.editor.withLock { $0 = { "\($0)\nof two lines" } }
            desk.press(.alt("e"))
            try await desk.display.waits(for: "of two lines")
            desk.display.editor.withLock { $0 = nil }
            desk.press(.alt("e"))
            try await desk.display.waits(for: "the editor failed")
            #expect(desk.look(\.input).text == "draft\nof two lines")
        }
    }

    @Test("a key that was typed before the editor ended meets the edited text")
    func typedAhead() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }) { desk in
            try await desk.openBob()
            desk.type("draft")
            desk.display.editor.withLock { $0 = { _ in "from the editor" } }
            desk.display.typedAhead.withLock { $0 = KeyPress(.enter) }
            desk.press(.alt("e"))
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last?.text == "from the editor" }
            }
            await desk.waitForWishes()
            #expect(desk.look(\.input).text == "")
        }
    }

    @Test("keys that were chosen do it, wherever they count, and the usual ones no more")
    func chosenKeys() async throws {
        let keys = ["contacts": "F5", "editor": "Ctrl-x", "copy": "c", "pin": "F6", "help": "F2"]
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }, keys: keys) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "F2 keys")
            desk.press(.alt("c"), KeyPress(.function(1)))
            #expect(desk.look { $0.panel == nil && $0.help == nil })
            desk.press(KeyPress(.function(5)))
            try await desk.display.waits(for: "Alt-a add")
            desk.press(KeyPress(.escape), KeyPress(.function(2)))
            try await desk.display.waits(for: "Ctrl-X          write in")
            desk.press(KeyPress(.escape))
            desk.display.editor.withLock { $0 = { _ in "from the editor" } }
            desk.press(.control("x"))
            try await desk.display.waits(for: "from the editor")
            desk.press(KeyPress(.escape))
            try await desk.display.waits(for: "c copy")
            // Here, `y` is not bound to an action, so the key types a letter.
            desk.press(KeyPress(.character("y")))
            #expect(desk.look(\.focus) == .input)
            desk.press(KeyPress(.escape), KeyPress(.character("c")))
            #expect(desk.display.state.withLock(\.copied) == ["hello"])
            desk.press(KeyPress(.escape), .alt("g"))
            try await desk.display.waits(for: "F6 pin")
            desk.press(KeyPress(.function(6)))
            try await desk.display.waits(for: "is pinned to the top")
            desk.press(KeyPress(.escape))
        }
    }

    @Test("a theme that is chosen is kept beside the keys")
    func keptTheme() async throws {
        try await atDesk(keys: ["contacts": "F5"]) { desk in
            desk.type("/theme light\n")
            try await desk.display.wait(for: "light") { _ in desk.look { $0.theme.name == "light" }
            }
            let file = PreferencesFile(path: "\(desk.directory)/preferences.json")
            #expect(file.value == Preferences(theme: "light", keys: ["contacts": "F5"]))
        }
    }

    @Test("reactions are picked, messages forwarded, links opened, texts copied")
    func messageKeys() async throws {
        try await atDesk(
            after: Before { world in
                try Self.talk(world, ["https://example.org/a and (https://example.org/b)."])
                _ = try world.bob.createGroup("Friends", with: [world.alice], cid: 77)
            }
        ) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "example.org/b")
            desk.press(KeyPress(.escape), KeyPress(.character("2")))
            try await desk.display.wait(for: "the browser") {
                $0.state.withLock(\.browsed) == ["https://example.org/b"]
            }
            desk.press(KeyPress(.character("y")))
            #expect(desk.display.state.withLock(\.copied).first?.hasPrefix("https") == true)
            desk.press(KeyPress(.character("+")))
            desk.type("fir")
            try await desk.display.waits(for: "🔥")
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "🔥 1*")
            desk.press(KeyPress(.escape), KeyPress(.character("f")))
            desk.type("frie")
            try await desk.display.waits(for: "▌Friends")
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "Alice · forwarded from Bob")
        }
    }

    @Test("contacts are added, renamed, blocked, unblocked and removed")
    func contacts() async throws {
        try await atDesk { desk in
            let phone = try #require(
                try desk.bob.call(ContactInfoRequest(contactIDs: [desk.bob.userID])).contacts
                    .first?.phone
            )
            desk.press(.alt("c"))
            try await desk.display.waits(for: "nobody yet")
            desk.press(.alt("a"))
            desk.type("+\(phone)\n")
            try await desk.display.waits(for: "▌Bob")
            desk.press(.alt("r"), .control("u"))
            desk.type("Robert Smith\n")
            try await desk.display.waits(for: "▌Robert Smith")
            desk.press(.alt("b"), KeyPress(.character("y")))
            try await desk.display.waits(for: "blocked Robert Smith")
            #expect(await desk.client.settle(within: .seconds(60)))
            desk.press(KeyPress(.escape))
            desk.type("/blocked\n")
            try await desk.display.waits(for: "▌Robert Smith")
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "unblocked Robert Smith")
            #expect(await desk.client.settle(within: .seconds(60)))
            #expect(try await desk.client.blocked().isEmpty)
            desk.press(KeyPress(.escape), .alt("c"))
            try await desk.display.waits(for: "▌Robert Smith")
            desk.press(.alt("d"), KeyPress(.character("y")))
            try await desk.display.waits(for: "nobody yet")
        }
    }

    @Test("a group is made, its members are listed, raised and removed")
    func group() async throws {
        try await atDesk { desk in
            let phone = try #require(
                try desk.bob.call(ContactInfoRequest(contactIDs: [desk.bob.userID])).contacts
                    .first?.phone
            )
            desk.type("/new Friends, +\(phone)\n")
            try await desk.display.wait(for: "the group") { _ in
                desk.look { $0.openTitle == "Friends" }
            }
            desk.type("/members\n")
            try await desk.display.waits(for: "2 members")
            try await desk.display.waits(for: "owner")
            desk.type("bob")
            try await desk.display.waits(for: "▌Bob")
            desk.press(.alt("r"))
            try await desk.display.wait(for: "an administrator") { display in
                display.lines.contains { $0.contains("▌Bob") && $0.contains("administrator") }
            }
            desk.press(.alt("r"))
            try await desk.display.wait(for: "a member") { display in
                display.lines.contains { $0.contains("▌Bob") && !$0.contains("administrator") }
            }
            desk.press(.alt("d"), KeyPress(.character("y")))
            try await desk.display.waits(for: "1 members")
            desk.press(KeyPress(.escape))
            desk.type("/title Good friends\n")
            try await desk.display.waits(for: "Good friends")
        }
    }

    @Test("the own name and text are changed")
    func profile() async throws {
        try await atDesk { desk in
            desk.type("/profile\n")
            try await desk.display.waits(for: "Alice")
            desk.press(KeyPress(.character("n")), .control("u"))
            desk.type("Alice Liddell\n")
            try await desk.display.waits(for: "Alice Liddell")
            desk.press(KeyPress(.character("a")))
            desk.type("down the hole\n")
            try await desk.display.waits(for: "down the hole")
        }
    }

    @Test("who was signed out from elsewhere is told how to sign in again")
    func signedOut() async throws {
        try await atDesk { desk in
            desk.type("/login\n")
            try await desk.display.waits(for: "you are signed in")
            try desk.alice.call(SessionsCloseRequest())
            try await desk.display.waits(for: "signed out, /login")
            // The notice must stay when the connection is lost.
            try await desk.loseServer()
            // The line still contains the command.
            desk.press(KeyPress(.enter))
            await desk.waitForEnd()
            #expect(desk.look { _ in desk.screen.wantsSignIn })
        }
    }

    @Test("what waits offline is listed and can be cancelled")
    func queue() async throws {
        try await atDesk(after: Before { try Self.talk($0, ["hello"]) }) { desk in
            try await desk.openBob()
            try await desk.loseServer()
            desk.type("for later\n")
            try await desk.display.waits(for: "for later")
            desk.press(.alt("q"))
            try await desk.display.waits(for: "message “for later”")
            for _ in 0..<5 {
                if desk.display.lines.contains(where: { $0.contains("▌message “for later”") }) {
                    break
                }
                desk.press(KeyPress(.down))
            }
            try await desk.display.waits(for: "▌message “for later”")
            desk.press(KeyPress(.character("x")))
            try await desk.display.waitsForEnd(of: "for later")
        }
    }

    @Test("chats are muted and pinned, and only loud ones alert")
    func alerts() async throws {
        try await atDesk(
            after: Before { world in
                try Self.talk(world, ["hello"])
                _ = try world.bob.createGroup("Friends", with: [world.alice], cid: 77)
            }
        ) { desk in
            try await desk.display.waits(for: "Friends")
            desk.press(.alt("g"))
            desk.type("friends")
            try await desk.display.waits(for: "▌Friends")
            desk.press(.alt("p"))
            try await desk.display.waits(for: "^Friends")
            desk.press(.alt("m"))
            try await desk.display.wait(for: "muted") { _ in
                desk.look { $0.chats.first { $0.title == "Friends" }?.isMuted == true }
            }
            desk.press(KeyPress(.escape))
            let group = try #require(try desk.client.chats().first { $0.title == "Friends" }?.id)
            try desk.bob.send("quiet", to: group, cid: 501)
            try await desk.display.waits(for: "quiet")
            try desk.bob.send("loud", to: desk.chat, cid: 502)
            try await desk.display.wait(for: "an alert") { !$0.state.withLock(\.alerts).isEmpty }
            #expect(desk.display.state.withLock(\.alerts) == ["Bob: loud"])
            desk.press(.alt("n"))
            try await desk.display.wait(for: "the loud one first") { _ in
                desk.look { $0.open == desk.chat }
            }
        }
    }

    @Test("who was named finds it in the list of mentions")
    func mentions() async throws {
        try await atDesk(
            after: Before { world in
                let element = Element(
                    type: "USER_MENTION",
                    from: 0,
                    length: 6,
                    entityID: world.alice.userID
                )
                let message = NewMessage(cid: 9, text: "@Alice look", elements: [element])
                try world.bob.call(MsgSendRequest(chatID: world.chat, message: message))
                try world.bob.send("no name", to: world.chat, cid: 10)
            }
        ) { desk in
            try await desk.openBob()
            try await desk.display.waits(for: "@Alice look")
            desk.press(.alt("a"))
            try await desk.display.waits(for: "▌Bob ")
            desk.press(KeyPress(.enter))
            try await desk.display.wait(for: "the mention") { _ in
                desk.look { $0.selectedRow?.text == "@Alice look" }
            }
        }
    }

    @Test("formatting is written as Markdown, sent as formatting, and edited as Markdown")
    func formatting() async throws {
        try await atDesk(after: Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }) { desk in
            try await desk.openBob()
            desk.type("this is **bold** and _soft_\n")
            func wait(for text: String, _ styles: [MessageSpan.Style]) async throws {
                try await desk.display.wait(for: text) { _ in
                    desk.look { state in
                        guard let row = state.rows.last, row.message != nil else { return false }
                        return row.text == text && row.spans.map(\.style) == styles
                            && !row.isChanging
                    }
                }
            }
            try await wait(for: "this is bold and soft", [.strong, .emphasized])
            desk.press(KeyPress(.escape), KeyPress(.character("e")))
            #expect(desk.look(\.input).text == "this is **bold** and _soft_")
            desk.type(" `now`\n")
            try await wait(
                for: "this is bold and soft now",
                [.strong, .emphasized, .monospaced]
            )
        }
    }
}
