import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Reads and writes comments on posts with the keyboard.
@Suite("Comments at the screen", .serialized)
struct ScreenCommentTests {
    /// Bob's channel with a post that has two comments.
    private static var news: Before {
        Before { world in
            let channel = try world.bob.channel("News", with: [world.alice], cid: 1)
            let post = try world.bob.send("the post", to: channel, cid: 2).message.id
            try world.bob.comment("first", on: post, in: channel, cid: 3)
            try world.bob.comment("second", on: post, in: channel, cid: 4)
            try world.bob.send("hello", to: world.chat, cid: 5)
        }
    }

    /// Returns Bob's channel and its post, with the ids that Bob sees.
    private static func post(at desk: Desk) throws -> (channel: ChatID, post: MessageID) {
        let chats = try desk.bob.call(ChatsListRequest(marker: 0)).chats
        let channel = try #require(chats.first { $0.title == "News" }).id
        let page = try desk.bob.call(ChatHistoryRequest(chatID: channel, backward: 10)).messages
        return (channel, try #require(page?.last { $0.text == "the post" }).id)
    }

    private static func openComments(at desk: Desk) async throws {
        try await desk.open("News")
        try await desk.display.waits(for: "2 comments")
        desk.press(KeyPress(.escape), KeyPress(.character("c")))
        try await wait(for: ["first", "second"], at: desk)
    }

    private static func wait(for texts: [String], at desk: Desk) async throws {
        try await desk.display.wait(for: "\(texts)") { _ in
            desk.look { $0.comments != nil && $0.rows.map(\.text) == texts }
        }
    }

    @Test("a post shows their number; they are opened, written, answered, edited and deleted")
    func writing() async throws {
        try await atDesk(after: Self.news) { desk in
            try await Self.openComments(at: desk)
            try await desk.display.waits(for: "Comments on “the post”")
            let (channel, post) = try Self.post(at: desk)
            desk.type("a third\n")
            try await Self.wait(for: ["first", "second", "a third"], at: desk)
            try await desk.display.waits(for: "✓")
            try desk.bob.comment("a fourth", on: post, in: channel, cid: 5)
            try await Self.wait(for: ["first", "second", "a third", "a fourth"], at: desk)

            desk.press(KeyPress(.escape), KeyPress(.character("r")))
            desk.type("an answer\n")
            try await desk.display.wait(for: "the answer") { _ in
                desk.look { $0.rows.last.map { $0.quote?.text == "a fourth" } == true }
            }
            desk.press(KeyPress(.escape), KeyPress(.character("e")))
            desk.type(" to it\n")
            try await desk.display.waits(for: "an answer to it")
            desk.press(KeyPress(.escape), KeyPress(.up), KeyPress(.character("+")))
            desk.type("heart\n")
            try await desk.display.waits(for: "1*")
            desk.press(KeyPress(.escape), KeyPress(.character("d")))
            desk.type("y")
            try await Self.wait(for: ["first", "second", "a third", "a fourth"], at: desk)
            try await desk.display.wait(for: "all done") { _ in desk.look { $0.queueLength == 0 } }
            let theirs = try desk.bob.comments(on: post, in: channel)
            #expect(theirs.map(\.text) == ["first", "second", "a third", "a fourth"])

            // Return to the channel. The post there shows the new number of comments.
            desk.press(KeyPress(.enter), .alt("o"))
            try await desk.display.waits(for: "4 comments")
            #expect(desk.look { $0.comments == nil && $0.open == channel })
        }
    }

    @Test("they are read and written offline")
    func offline() async throws {
        try await atDesk(after: Self.news) { desk in
            try await Self.openComments(at: desk)
            desk.press(.alt("o"))
            try await desk.loseServer()
            try await desk.display.wait(for: "the post") { _ in
                desk.look { $0.comments == nil && $0.rows.last?.text == "the post" }
            }
            desk.type("/comments\n")
            try await Self.wait(for: ["first", "second"], at: desk)
            try await desk.display.waits(for: "messages are missing here")
            desk.type("written offline\n")
            try await Self.wait(for: ["first", "second", "written offline"], at: desk)
            desk.type("/queue\n")
            try await desk.display.waits(for: "comment “written offline” in News")
        }
    }

    @Test("what comments cannot do is refused in words")
    func refusals() async throws {
        try await atDesk(after: Self.news) { desk in
            try await desk.openBob()
            desk.type("/comments\n")
            try await desk.display.waits(for: "only posts of channels have comments")
            desk.press(KeyPress(.escape), .control("u"))
            try await Self.openComments(at: desk)
            for key in ["f", "u", "v", "P"] as [Unicode.Scalar] {
                desk.press(KeyPress(.escape), KeyPress(.character(key)))
                #expect(desk.look(\.notice)?.text.hasPrefix("comments do not have this") == true)
                desk.press(KeyPress(.enter))
            }
            desk.press(KeyPress(.escape), KeyPress(.character("c")))
            #expect(desk.look(\.notice)?.text.hasPrefix("these are the comments") == true)
            desk.press(KeyPress(.enter))
            desk.type("/members\n")
            #expect(desk.look(\.notice)?.text.hasPrefix("/members is for the channel") == true)
            desk.press(.control("u"))

            let (channel, _) = try Self.post(at: desk)
            try desk.bob.ban(desk.alice, from: channel)
            desk.type("banned\n")
            try await desk.display.waits(for: "you are banned from commenting")
        }
    }

    @Test("a deleted post takes them along")
    func deletedPost() async throws {
        try await atDesk(after: Self.news) { desk in
            try await Self.openComments(at: desk)
            let (channel, post) = try Self.post(at: desk)
            try desk.bob.call(MsgDeleteRequest(chatID: channel, messageIDs: [post]))
            try await desk.display.waits(for: "the post was deleted, and its comments with it")
            #expect(desk.look { $0.open == channel && $0.comments == nil })
        }
    }

    @Test("an empty list says so, and closed comments too")
    func empty() async throws {
        let quiet = Before { world in
            let channel = try world.bob.channel("News", with: [world.alice], cid: 1)
            try world.bob.send("the post", to: channel, cid: 2)
            let options = NameMap([(Text("COMMENTS"), false)])
            try world.bob.call(ChatUpdateRequest(chatID: channel, options: options))
        }
        try await atDesk(after: quiet) { desk in
            try await desk.open("News")
            desk.press(KeyPress(.escape), KeyPress(.character("c")))
            try await desk.display.waits(for: "comments are closed in this channel")
            try await desk.display.waits(for: "no comments yet")
        }
    }
}
