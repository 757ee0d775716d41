import TambourProtocol
import TambourTesting
import Testing

@Suite("CHAT_MARK (50)")
struct ChatMarkTests {
    /// A read mark in the year 2033. One known client sends such marks.
    private let farFuture: Int64 = 2_000_000_000_000

    private func messages(_ count: Int64, _ from: WireClient, _ dialog: ChatID) throws
        -> [Message]
    {
        try (1...count).map { try from.send("\($0)", to: dialog, cid: $0).message }
    }

    @Test("a mark moves up, and everybody else hears of it")
    func read() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let sent = try messages(3, alice, dialog)
            _ = try (alice.takePushes(), bob.takePushes(), tablet.takePushes())

            let reply = try bob.call(
                ChatMarkRequest(type: .readMessage, chatID: dialog, messageID: sent[1].id)
            )

            #expect(reply.unread == 1)
            #expect(reply.mark == sent[1].time)
            for other in [alice, tablet] {
                let pushes = try other.only(.notifMark, as: NotifMark.self)
                #expect(pushes.map(\.userID) == [bob.userID])
                #expect(pushes.map(\.mark) == [sent[1].time])
                #expect(pushes.map(\.setAsUnread) == [false])
            }
            try bob.expectSilence()
            #expect(try alice.chat(dialog)?.participants[bob.userID] == sent[1].time)

            let lower = try bob.call(
                ChatMarkRequest(type: .readMessage, chatID: dialog, mark: sent[0].time)
            )
            #expect(lower.mark == sent[1].time)
            try alice.expectSilence()
        }
    }

    @Test("a random mark of the year 2033 counts as the last message, not as all to come")
    func future() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try messages(2, alice, dialog)
            for mark in [farFuture, .max] {
                let reply = try bob.call(
                    ChatMarkRequest(type: .readMessage, chatID: dialog, mark: mark)
                )
                #expect(reply.mark == sent[1].time)
                #expect(reply.unread == 0)
            }
            try alice.send("3", to: dialog, cid: 3)
            #expect(try bob.chat(dialog)?.newMessages == 1)
        }
    }

    @Test("numbers below zero move nothing")
    func negative() throws {
        try withPair { _, alice, bob, dialog in
            _ = try messages(2, alice, dialog)
            let reply = try bob.call(
                ChatMarkRequest(type: .readMessage, chatID: dialog, mark: .min)
            )
            #expect(reply.mark == 0)
            #expect(reply.unread == 2)
            #expect(try alice.only(.notifMark, as: NotifMark.self).isEmpty)
        }
    }

    @Test("SET_AS_UNREAD lowers it to below the message, and only the own sessions hear of it")
    func setAsUnread() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let sent = try messages(3, alice, dialog)
            _ = try bob.call(ChatMarkRequest(type: .readMessage, chatID: dialog, mark: farFuture))
            _ = try (alice.takePushes(), bob.takePushes(), tablet.takePushes())

            let reply = try bob.call(
                ChatMarkRequest(type: .setAsUnread, chatID: dialog, messageID: sent[1].id)
            )

            #expect(reply.unread == 2)
            #expect(reply.mark == sent[1].time - 1)
            let pushes = try tablet.only(.notifMark, as: NotifMark.self)
            #expect(pushes.map(\.setAsUnread) == [true])
            #expect(pushes.map(\.mark) == [sent[1].time - 1])
            try alice.expectSilence()

            let higher = try bob.call(
                ChatMarkRequest(type: .setAsUnread, chatID: dialog, messageID: sent[2].id)
            )
            #expect(higher.mark == sent[1].time - 1)
        }
    }

    @Test("the smallest and the largest numbers set as unread overflow nothing")
    func extremes() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try messages(2, alice, dialog)
            _ = try bob.call(ChatMarkRequest(type: .readMessage, chatID: dialog, mark: farFuture))
            let last = try bob.call(
                ChatMarkRequest(type: .setAsUnread, chatID: dialog, mark: .max)
            )
            #expect(last.mark == sent[1].time - 1)
            #expect(last.unread == 1)
            for mark in [Int64.min, -1, 0] {
                let all = try bob.call(
                    ChatMarkRequest(type: .setAsUnread, chatID: dialog, mark: mark)
                )
                #expect(all.mark == 0)
                #expect(all.unread == 2)
            }
            let odd = try bob.call(
                ChatMarkRequest(type: .setAsUnread, chatID: dialog, messageID: MessageID(.min))
            )
            #expect(odd.mark == 0)
        }
    }

    @Test("READ_REACTION leaves the mark alone")
    func reaction() throws {
        try withPair { _, alice, bob, dialog in
            _ = try messages(2, alice, dialog)
            let reply = try bob.call(
                ChatMarkRequest(type: .readReaction, chatID: dialog, mark: farFuture)
            )
            #expect(reply.mark == 0)
            #expect(reply.unread == 2)
        }
    }

    @Test("an own message moves the own mark over everything before it")
    func ownMessage() throws {
        try withPair { _, alice, bob, dialog in
            _ = try messages(3, alice, dialog)
            let reply = try bob.send("4", to: dialog, cid: 1)
            #expect(reply.unread == 0)
            #expect(reply.mark == reply.message.time)
            #expect(try bob.chat(dialog)?.participants[bob.userID] == reply.message.time)
        }
    }

    @Test("above the fan-out threshold nobody else hears of a mark or sees it")
    func bigGroup() throws {
        try withPair(limits: ["fanOutMembers": 2]) { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Big", with: [bob, carol], cid: 1)
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            _ = try (alice.takePushes(), tablet.takePushes())
            let reply = try bob.call(ChatMarkRequest(type: .readMessage, chatID: group))
            #expect(reply.unread == 0)
            #expect(try tablet.only(.notifMark, as: NotifMark.self).count == 1)
            try alice.expectSilence()
            #expect(try alice.chat(group)?.participants[bob.userID] == nil)
            #expect(try bob.chat(group)?.participants[bob.userID] == reply.mark)
        }
    }

    @Test("a dialog that has not begun has nothing to mark; an unknown chat is not found")
    func nothing() throws {
        try withPair { server, alice, bob, dialog in
            let empty = try alice.call(ChatMarkRequest(type: .readMessage, chatID: dialog))
            #expect(empty == ChatMarkReply(unread: 0, mark: 0))
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Two", with: [bob], cid: 1)
            for chat in [group, ChatID(-1), .dialog(carol.userID, UserID(999))] {
                let request = ChatMarkRequest(type: .readMessage, chatID: chat)
                #expect(try carol.code(of: request) == .chatNotFound)
            }
        }
    }
}
