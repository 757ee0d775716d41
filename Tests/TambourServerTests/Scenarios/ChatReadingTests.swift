import TambourProtocol
import TambourTesting
import Testing

@Suite("CHAT_INFO (48)")
struct ChatInfoTests {
    @Test("chats the caller does not see are left out, each is sent once")
    func visible() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Two", with: [bob], cid: 1)
            try alice.send("hello", to: dialog, cid: 2)
            let ids = [group, dialog, ChatID(-1), group, ChatID(.max)]
            let mine = try bob.call(ChatInfoRequest(chatIDs: ids)).chats
            #expect(mine.map(\.id) == [group, dialog])
            #expect(mine.map(\.type) == [.chat, .dialog])
            #expect(mine[1].lastMessage?.text == "hello")
            #expect(mine[1].lastEventTime == mine[1].lastMessage?.time)
            #expect(mine[0].participantsCount == 2)
            #expect(try carol.call(ChatInfoRequest(chatIDs: ids)).chats.isEmpty)
        }
    }

    @Test("the same dialog id is another chat for another caller")
    func xorIDs() throws {
        try withServer { server in
            // A dialog's id is the xor of its users' ids. The user ids are small here, so dialog
            // ids may collide: 1 xor 2 == 3 xor 0.
            let users = try (1...4).map { try server.signUp("User \($0)") }
            try users[0].send("1-2", to: users[0].dialog(with: users[1]), cid: 1)
            for third in users[2...] {
                let id = users[0].dialog(with: users[1])
                #expect(try third.chat(id) == nil)
            }
            #expect(try users[1].chat(users[0].dialog(with: users[1])) != nil)
        }
    }

    @Test("saved messages are there before anything is saved")
    func saved() throws {
        try withPair { _, alice, _, _ in
            let chat = try #require(try alice.chat(ChatID(0)))
            #expect(chat.type == .dialog)
            #expect(chat.owner == alice.userID)
            #expect(chat.newMessages == 0)
        }
    }

    @Test("too many ids are refused")
    func tooMany() throws {
        try withPair(limits: ["maxIDsPerRequest": 3]) { _, alice, _, dialog in
            let request = ChatInfoRequest(chatIDs: Array(repeating: dialog, count: 4))
            let code = try alice.code(of: request)
            #expect(code == .protoPayload)
        }
    }
}

@Suite("CHATS_LIST (53)")
struct ChatsListTests {
    @Test("pages go down by the time of the last event, and every chat comes once")
    func pages() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let others = try (1...7).map { try server.signUp("User \($0)") }
            for other in others { try alice.send("hi", to: alice.dialog(with: other), cid: 1) }
            var marker: Int64? = wallNow + 1_000_000
            var seen: [ChatID] = []
            while let asked = marker {
                let page = try alice.call(ChatsListRequest(marker: asked, count: 3))
                let times = page.chats.map(\.lastEventTime)
                #expect(times == times.sorted(by: >))
                #expect(times.allSatisfy { $0 < asked })
                seen += page.chats.map(\.id)
                marker = page.marker == 0 ? nil : page.marker
            }
            // Messages in different chats may share a millisecond, so only compare the sets.
            #expect(seen.count == others.count)
            #expect(Set(seen) == Set(others.map { alice.dialog(with: $0) }))
        }
    }

    @Test("chats of one millisecond stay on one page")
    func ties() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let others = try (1...5).map { try server.signUp("User \($0)") }
            for other in others { try alice.send("hi", to: alice.dialog(with: other), cid: 1) }
            clock.advance(ms: 1_000)
            let page = try alice.call(ChatsListRequest(count: 2))
            #expect(page.chats.count == 5)
            // The marker of the last page with chats may point to an empty page.
            if page.marker != 0 {
                let next = try alice.call(ChatsListRequest(marker: page.marker, count: 2))
                #expect(next.chats.isEmpty)
                #expect(next.marker == 0)
            }
        }
    }

    @Test("a page that would be too long is cut and goes on behind the cut")
    func cut() throws {
        let clock = ManualClock()
        try withServer(limits: ["maxReplyBytes": 2_000], environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let others = try (1...6).map { try server.signUp("User \($0)") }
            let text = String(repeating: "x", count: 300)
            for other in others {
                clock.advance(ms: 1)
                try alice.send(text, to: alice.dialog(with: other), cid: 1)
            }
            var marker: Int64 = .max
            var seen: [ChatID] = []
            var pages = 0
            while marker != 0 {
                let page = try alice.call(ChatsListRequest(marker: marker))
                seen += page.chats.map(\.id)
                marker = page.marker
                pages += 1
            }
            #expect(pages > 1)
            #expect(seen == others.reversed().map { alice.dialog(with: $0) })
        }
    }

    @Test("odd markers and counts are no trouble")
    func odd() throws {
        try withPair { _, alice, _, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            #expect(try alice.call(ChatsListRequest()).chats.map(\.id) == [dialog])
            #expect(try alice.call(ChatsListRequest(marker: .max, count: .max)).chats.count == 1)
            #expect(try alice.call(ChatsListRequest(count: .min)).chats.count == 1)
            #expect(try alice.call(ChatsListRequest(marker: .min)).chats.isEmpty)
        }
    }
}

@Suite("CHAT_SUBSCRIBE (75)")
struct ChatSubscribeTests {
    @Test("is a hint: messages come in any case")
    func hint() throws {
        try withPair { _, alice, bob, dialog in
            try bob.call(ChatSubscribeRequest(chatID: dialog, subscribe: false))
            try alice.send("hi", to: dialog, cid: 1)
            #expect(try bob.next(.notifMessage, as: NotifMessage.self).message.text == "hi")
        }
    }

    @Test("an unknown chat is not found")
    func unknown() throws {
        try withPair { _, alice, _, _ in
            for chat in [ChatID(-1), .dialog(alice.userID, UserID(999))] {
                let code = try alice.code(of: ChatSubscribeRequest(chatID: chat))
                #expect(code == .chatNotFound)
            }
        }
    }
}
