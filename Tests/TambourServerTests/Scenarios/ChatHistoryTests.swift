import TambourProtocol
import TambourTesting
import Testing

@Suite("CHAT_HISTORY (49)")
struct ChatHistoryTests {
    @discardableResult
    private func fill(_ count: Int64, _ sender: WireClient, _ dialog: ChatID, text: String = "")
        throws -> [Message]
    {
        let numbers = try (1...count).map {
            try sender.send(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(cid: $0, text: Text(text + "\($0)"))
                )
            )
        }
        return try numbers.map { try sender.reply(to: $0, as: MsgSendReply.self).message }
    }

    @Test("pages go back oldest first and overlap in exactly the pivot")
    func pages() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try fill(100, alice, dialog)
            var from: Int64?
            var seen: [Message] = []
            var pages = 0
            while true {
                let page = try #require(try bob.history(dialog, from: from).messages)
                pages += 1
                #expect(page.map(\.id) == page.map(\.id).sorted())
                if let first = seen.first { #expect(page.last?.id == first.id) }
                seen = page + seen.dropFirst(from == nil ? 0 : 1)
                if page.count < 40 { break }
                from = page[0].time
            }
            #expect(pages == 3)
            #expect(seen.map(\.id) == sent.map(\.id))
            #expect(seen.allSatisfy { $0.chatID == dialog })
        }
    }

    @Test("backward holds the pivot, forward begins behind it")
    func pivot() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try fill(10, alice, dialog)
            let pivot = sent[4].time
            func ids(_ backward: Int64, _ forward: Int64, _ from: Int64? = nil) throws
                -> [MessageID]
            {
                try bob.history(dialog, from: from ?? pivot, backward: backward, forward: forward)
                    .messages?.map(\.id) ?? []
            }
            #expect(try ids(3, 0) == sent[2...4].map(\.id))
            #expect(try ids(0, 3) == sent[5...7].map(\.id))
            #expect(try ids(2, 2) == sent[3...6].map(\.id))
            #expect(try ids(1, 0, sent[0].time - 1).isEmpty)
            #expect(try ids(0, 1, 0) == [sent[0].id])
        }
    }

    @Test("a little ahead, tomorrow, -1 and nothing mean the newest")
    func newest() throws {
        try withPair { _, alice, bob, dialog in
            // The server gives the last messages of a burst times that are ahead of the clock.
            let sent = try fill(50, alice, dialog)
            for from in [nil, wallNow + 1_000, wallNow + 86_400_000, -1, .min, .max] {
                let page = try #require(try bob.history(dialog, from: from, backward: 5).messages)
                #expect(page.map(\.id) == sent.suffix(5).map(\.id), "\(String(describing: from))")
            }
            #expect(try bob.history(dialog, from: .max, backward: 0, forward: 5).messages == [])
            let oldest = try bob.history(dialog, from: nil, backward: 0, forward: 2).messages
            #expect(oldest?.map(\.id) == sent.prefix(2).map(\.id))
        }
    }

    @Test("a window of time bounds both directions")
    func window() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try fill(10, alice, dialog)
            func ids(_ earliest: Int64?, _ latest: Int64?) throws -> [MessageID] {
                try bob.call(
                    ChatHistoryRequest(
                        chatID: dialog,
                        from: sent[4].time,
                        forward: 40,
                        backward: 40,
                        backwardTime: earliest,
                        forwardTime: latest
                    )
                ).messages?.map(\.id) ?? []
            }
            #expect(try ids(sent[2].time, sent[7].time) == sent[2...7].map(\.id))
            #expect(try ids(0, 0) == sent.map(\.id))
            #expect(try ids(.max, nil) == sent[5...].map(\.id))
            #expect(try ids(nil, .min) == sent.map(\.id))
        }
    }

    @Test("removed messages are left out for all, hidden ones for one")
    func holes() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try fill(6, alice, dialog)
            try alice.delete([sent[1].id, sent[5].id], in: dialog)
            try bob.delete([sent[3].id], in: dialog, forMe: true)
            #expect(try bob.texts(dialog) == ["1", "3", "5"])
            #expect(try alice.texts(dialog) == ["1", "3", "4", "5"])
            let page = try #require(try bob.history(dialog, backward: 2).messages)
            #expect(page.map(\.text) == ["3", "5"])
        }
    }

    @Test("`more` is there only for who named the capability, and true while something is left")
    func more() throws {
        try withPair { server, alice, bob, dialog in
            let sent = try fill(5, alice, dialog)
            #expect(try bob.history(dialog, backward: 2).more == nil)
            let modern = try server.signIn(
                phoneOf: bob,
                device: "modern",
                capabilities: ["history-more"]
            )
            #expect(try modern.history(dialog, backward: 2).more == true)
            #expect(try modern.history(dialog, backward: 5).more == false)
            #expect(try modern.history(dialog, from: 0, backward: 0, forward: 4).more == true)
            #expect(try modern.history(dialog, from: 0, backward: 0, forward: 5).more == false)
            // `more` does not count deleted messages.
            try alice.delete([sent[0].id], in: dialog)
            #expect(try modern.history(dialog, backward: 4).more == false)
        }
    }

    @Test("a page that would be too long is cut where it is farthest from the pivot")
    func cut() throws {
        let limits = ["maxReplyBytes": 2_000]
        try withPair(limits: limits) { server, alice, bob, dialog in
            let sent = try fill(20, alice, dialog, text: String(repeating: "x", count: 200))
            let modern = try server.signIn(
                phoneOf: bob,
                device: "modern",
                capabilities: ["history-more"]
            )
            let back = try modern.history(dialog, backward: 20)
            let page = try #require(back.messages)
            #expect(back.more == true)
            #expect((2...8).contains(page.count))
            #expect(page.map(\.id) == sent.suffix(page.count).map(\.id))
            let forth = try modern.history(dialog, from: 0, backward: 0, forward: 20)
            let ahead = try #require(forth.messages)
            #expect(forth.more == true)
            #expect(ahead.map(\.id) == sent.prefix(ahead.count).map(\.id))
        }
    }

    @Test("one message longer than a page is sent all the same: paging must end")
    func oneTooLong() throws {
        try withPair(limits: ["maxReplyBytes": 100]) { _, alice, bob, dialog in
            let sent = try fill(3, alice, dialog, text: String(repeating: "x", count: 300))
            #expect(try bob.history(dialog).messages?.map(\.id) == [sent[2].id])
        }
    }

    @Test("no client gets more than the largest page")
    func largest() throws {
        try withPair(limits: ["maxHistoryPage": 7]) { _, alice, bob, dialog in
            try fill(20, alice, dialog)
            #expect(try bob.history(dialog, backward: .max).messages?.count == 7)
            let both = try bob.history(dialog, from: 1, backward: 5, forward: .max)
            #expect(both.messages?.count == 7)
            let middle = try #require(both.messages?.last)
            let around = try bob.history(dialog, from: middle.time, backward: 5, forward: .max)
            #expect(around.messages?.count == 7)
        }
    }

    @Test("without messages or with the chat, as asked")
    func parts() throws {
        try withPair { _, alice, bob, dialog in
            try fill(2, alice, dialog)
            let reply = try bob.call(
                ChatHistoryRequest(
                    chatID: dialog,
                    backward: 10,
                    getMessages: false,
                    getChat: true
                )
            )
            #expect(reply.messages == nil)
            #expect(reply.chat?.newMessages == 2)
            let delayed = try bob.call(
                ChatHistoryRequest(chatID: dialog, backward: 10, itemType: .delayed)
            )
            #expect(delayed.messages == [])
        }
    }

    @Test("a dialog that has not begun is empty; unknown chats and negative counts are refused")
    func refusals() throws {
        try withPair { server, alice, bob, dialog in
            #expect(try alice.history(dialog).messages == [])
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Two", with: [bob], cid: 1)
            for chat in [group, ChatID(-1), .dialog(carol.userID, UserID(999))] {
                #expect(try carol.code(of: ChatHistoryRequest(chatID: chat)) == .chatNotFound)
            }
            for request in [
                ChatHistoryRequest(chatID: dialog, backward: -1),
                ChatHistoryRequest(chatID: dialog, forward: .min),
            ] {
                #expect(try alice.code(of: request) == .protoPayload)
            }
        }
    }
}
