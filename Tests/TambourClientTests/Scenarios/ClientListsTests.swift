import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// The lists of a client other than chats and messages.
@Suite("Lists of a client")
struct ClientListsTests {
    @Test("members have roles, which can be given and taken")
    func roles() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            let group = try alice.createGroup("Friends", with: [bob], cid: 1)
            try await client.until("the group") { try $0.chat(group) != nil }
            func roles() async throws -> [String: Client.Member.Role] {
                let members = try await client.roster(of: group)
                return Dictionary(uniqueKeysWithValues: members.map { ($0.person.name, $0.role) })
            }
            #expect(try await roles() == ["Alice": .owner, "Bob": .member])
            try await client.setAdministrator(bob.userID, in: group, true)
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(try await roles() == ["Alice": .owner, "Bob": .administrator])
            try await client.setAdministrator(bob.userID, in: group, false)
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(try await roles() == ["Alice": .owner, "Bob": .member])
        }
    }

    @Test("a list of members keeps the names that the account gave")
    func givenNames() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            let group = try alice.createGroup("Friends", with: [bob], cid: 1)
            try await client.change(bob.userID, .add(firstName: "Robert", lastName: nil))
            try await client.until("done") { try $0.queueLength() == 0 }
            try bob.call(ProfileRequest(description: "a change that members see"))
            let names = try await client.roster(of: group).map(\.person.name)
            #expect(names.sorted() == ["Alice", "Robert"])
            let firstPage = try await client.members(of: group).map(\.name)
            #expect(firstPage.sorted() == ["Alice", "Robert"])
            #expect(try client.person(bob.userID)?.name == "Robert")
        }
    }

    @Test("large groups are listed page by page")
    func pages() async throws {
        try await withWorld(["membersPageSize": 2]) { world in
            let alice = try world.server.signUp("Alice")
            let others = try (1...5).map { try world.server.signUp("Guest \($0)") }
            let client = try await world.onlineClient(of: alice)
            let group = try alice.createGroup("Friends", with: others, cid: 1)
            let members = try await client.roster(of: group)
            #expect(Set(members.map(\.id)) == Set([alice.userID] + others.map(\.userID)))
            #expect(members.count == 6)
            #expect(try await client.roster(of: group, limit: 3).count < 6)
        }
    }

    @Test("who is blocked is listed, and is no contact by that")
    func blocked() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            #expect(try await client.blocked().isEmpty)
            try await client.change(bob.userID, .block)
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(try await client.blocked().map(\.name) == ["Bob"])
            try await client.change(bob.userID, .unblock)
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(try await client.blocked().isEmpty)
            #expect(try client.people().isEmpty)
        }
    }

    @Test("what waits is listed in its order, with what it is, and what was refused with why")
    func waiting() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hi", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.until("hi") { try $0.texts(of: chat).contains("hi") }
            try await client.until("who it is") { try $0.chats().first?.title == "Bob" }
            await client.stop()

            let offline = try world.open("tambour")
            let sent = try await offline.send("one", to: chat)
            let message = try #require(try offline.history(of: chat).rows.first?.message)
            try await offline.react("👍", to: message, in: chat)
            try await offline.updateProfile(about: "me")
            let waiting = try offline.waiting()
            #expect(waiting.map(\.kind) == [.message("one"), .reaction, .profile])
            #expect(waiting.map(\.chatTitle) == ["Bob", "Bob", nil])
            #expect(waiting.allSatisfy { $0.failure == nil })
            try await offline.cancel(sent)
            #expect(try offline.waiting().count == 2)

            try await offline.send("to nobody", to: ChatID(-4096))
            try await offline.startAndSync()
            try await offline.until("the refusal") { try $0.waiting().first?.failure != nil }
            let refused = try #require(try offline.waiting().first)
            #expect(refused.kind == .message("to nobody"))
            try await offline.cancel(refused.id)
            try await offline.until("nothing") { try $0.waiting().isEmpty }
        }
    }

    @Test("messages that name the account or answer it are found, the newest first")
    func mentions() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let carol = try world.server.signUp("Carol")
            let group = try alice.createGroup("Friends", with: [bob, carol], cid: 1)
            let client = try await world.onlineClient(of: alice)
            let first = try alice.send("who?", to: group, cid: 2)
            let link = NewLink(type: .reply, messageID: first.message.id)
            try bob.call(
                MsgSendRequest(
                    chatID: group,
                    message: NewMessage(cid: 3, text: "me", link: link)
                )
            )
            try await client.until("the answer") { try $0.texts(of: group).last == "me" }
            #expect(try client.chats().first?.isMentioned == true)
            let answer = try #require(try client.history(of: group).rows.last?.message)
            try await client.markRead(answer, in: group)
            #expect(try client.chats().first?.isMentioned == false)
            let other = Element(type: "USER_MENTION", length: 6, entityID: carol.userID)
            try bob.call(
                MsgSendRequest(
                    chatID: group,
                    message: NewMessage(cid: 4, text: "@Carol", elements: [other])
                )
            )
            let own = Element(type: "USER_MENTION", from: 3, length: 6, entityID: alice.userID)
            try await client.until("another") { try $0.texts(of: group).last == "@Carol" }
            #expect(try client.chats().first?.isMentioned == false)
            try carol.call(
                MsgSendRequest(
                    chatID: group,
                    message: NewMessage(cid: 5, text: "hi @Alice", elements: [own])
                )
            )
            try await client.until("all") { try $0.texts(of: group).last == "hi @Alice" }
            #expect(try client.chats().first?.isMentioned == true)
            #expect(try client.mentions().map(\.row.text) == ["hi @Alice", "me"])
            #expect(try client.mentions(count: 1).map(\.row.text) == ["hi @Alice"])

            let mention = MessageSpan(.mention(bob.userID), 0..<4)
            try await client.send("@Bob yes", to: group, formatted: [mention])
            try await client.until("sent") { try $0.queueLength() == 0 }
            let shown = try #require(try client.history(of: group).rows.last?.spans.first)
            #expect(shown.style == .mention(bob.userID))
            #expect(shown.range == 0..<4)
        }
    }

    @Test("the server finds what is not on this device, in one chat and in all, page by page")
    func searchServer() async throws {
        try await withWorld(["searchPageSize": 2]) { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let carol = try world.server.signUp("Carol")
            let (one, two) = (alice.dialog(with: bob), alice.dialog(with: carol))
            for number in 1...3 {
                try bob.send("apricot \(number)", to: one, cid: Int64(number))
            }
            try carol.send("apricot 4", to: two, cid: 4)
            let client = try await world.onlineClient(of: alice)
            let page = try await client.searchServer("apri")
            #expect(page.found.map(\.row.text) == ["apricot 4", "apricot 3"])
            let next = try await client.searchServer("apri", after: page.marker)
            #expect(next.found.map(\.row.text) == ["apricot 2", "apricot 1"])
            let here = try await client.searchServer("apri", in: two)
            #expect(here.found.map(\.row.text) == ["apricot 4"])
            #expect(here.marker == nil)
            #expect(try client.history(of: one).rows.count < 3)
        }
    }

    @Test("an empty page of a search is not its end")
    func emptyPages() async throws {
        try await withWorld(["maxScannedRows": 30]) { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let chat = alice.dialog(with: bob)
            for number in 1...120 {
                let text = number == 2 ? "apricot" : "hay \(number)"
                try bob.send(text, to: chat, cid: Int64(number))
            }
            let first = try alice.call(MsgSearchRequest(chatID: chat, query: "apricot"))
            #expect(first.result.isEmpty && first.marker != nil)
            let client = try await world.onlineClient(of: alice)
            for asked in [nil, chat] {
                let page = try await client.searchServer("apri", in: asked)
                #expect(page.found.map(\.row.text) == ["apricot"])
            }
            // A search that finds nothing must end or return a marker for continuing; it must not
            // wait forever.
            let nothing = try await client.searchServer("nowhere", in: chat)
            #expect(nothing.found.isEmpty)
        }
    }

    @Test("the top of the list is its beginning")
    func top() async throws {
        try await withWorld { world in
            let alice = try world.server.signUp("Alice")
            for number in 1...4 {
                let other = try world.server.signUp("Guest \(number)")
                try other.send("hi", to: alice.dialog(with: other), cid: 1)
            }
            let client = try await world.onlineClient(of: alice)
            try await client.until("all") { try $0.chats().count == 4 }
            // A user's presence may change between two reads.
            try await client.until("the top") {
                try $0.chats(limit: 2) == Array($0.chats().prefix(2))
            }
            try await client.until("no more than all") { try $0.chats(limit: 9) == $0.chats() }
        }
    }

    @Test("the own read mark is known, also of a chat that is not")
    func readMark() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let sent = try bob.send("hi", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.until("hi") { try $0.texts(of: chat).contains("hi") }
            #expect(try client.readMark(of: chat) < sent.message.time)
            try await client.markRead(sent.message.id, in: chat)
            #expect(try client.readMark(of: chat) == sent.message.time)
            #expect(try client.readMark(of: ChatID(99)) == 0)
        }
    }
}
