import Dispatch
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

extension TestServer {
    fileprivate func failure(_ request: AdminService.Request) throws -> String {
        try #require(throws: AdminService.Failure.self) { try admin(request) }.description
    }

    fileprivate func announce(
        _ text: String,
        from owner: WireClient? = nil,
        again: Bool = false
    ) throws -> String {
        let owner = owner.map { "\($0.userID)" }
        let request = AnnouncementRequest(text, owner: owner, isRepeated: again)
        return try #require(try admin(.announce(request)).last)
    }

    /// Returns the id of the only channel.
    fileprivate func channel() throws -> ChatID {
        let lines = try admin(.chats(AdminFilter([.kind: "channel"])))
        let line = try #require(lines.first)
        try #require(lines.count == 1)
        return ChatID(try #require(Int64(line.split(separator: " ")[0])))
    }

    fileprivate func keepHouse() {
        let done = DispatchSemaphore(value: 0)
        server.messenger.housekeeper.run { done.signal() }
        done.wait()
    }
}

@Suite("Announcements to everybody")
struct AnnouncementTests {
    @Test("reach everybody at once, whether they were members or not")
    func everybody() throws {
        try withServer(limits: ["announcedPerStep": 2]) { server in
            let people = try (0..<5).map { try server.signUp("Person \($0)") }
            #expect(try server.failure(.announce(AnnouncementRequest("x"))).contains("--from"))
            let text = "We move on Friday.\n\tBring boxes: \\o/"
            let answer = try server.announce(text, from: people[0])
            #expect(answer.hasSuffix(" to 5 members"), "\(answer)")
            let channel = try server.channel()
            for person in people {
                #expect(try person.texts(channel).last == text)
                #expect(try person.chat(channel)?.title == "Announcements")
            }
            #expect(try people[3].chat(channel)?.newMessages == 1)
            // The owner wrote the announcement, so it is not new to the owner.
            #expect(try people[0].chat(channel)?.newMessages ?? 0 == 0)
            let news = try people[4].news().map(\.opcode)
            #expect(news.filter { $0 == .notifMessage }.count == 1, "\(news)")
            #expect(news.first == .notifChat)

            // The next announcement adds a user who left. A new account is a member from the start.
            try people[2].call(ChatLeaveRequest(chatID: channel))
            let late = try server.signUp("Late")
            #expect(try late.texts(channel).last == text)
            #expect(try server.announce("It is Monday now").hasSuffix(" to 6 members"))
            for person in people + [late] {
                #expect(try person.texts(channel).filter { $0 == "It is Monday now" }.count == 1)
            }
            #expect(try server.channel() == channel)
            #expect(try server.admin(.check) == ["ok"])
        }
    }

    @Test("are not made twice by mistake, and need an owner who is there")
    func mistakes() throws {
        try withPair { server, alice, bob, _ in
            _ = try server.announce("Hello", from: alice)
            #expect(
                try server.failure(.announce(AnnouncementRequest("Hello"))).contains("--again")
            )
            let channel = try server.channel()
            _ = try server.announce("Hello", again: true)
            #expect(try bob.texts(channel).filter { $0 == "Hello" }.count == 2)
            let other = AnnouncementRequest("Else", owner: "\(bob.userID)")
            #expect(try server.failure(.announce(other)).contains("leave --from out"))
            let nobody = AnnouncementRequest("Else", owner: "+79")
            #expect(try server.failure(.announce(nobody)).contains("no user"))
            let long = AnnouncementRequest(String(repeating: "x", count: 4001))
            #expect(try server.failure(.announce(long)).contains("4001 characters"))
            let whole = String(repeating: "é\n", count: 2000)
            #expect(try server.announce(whole).hasSuffix(" to 2 members"))
            #expect(try bob.texts(channel).last == whole)

            // After the owner deletes the channel, the next announcement creates another one.
            try alice.call(ChatDeleteRequest(chatID: channel, forAll: true))
            #expect(try server.failure(.announce(AnnouncementRequest("New"))).contains("--from"))
            #expect(try server.announce("New", from: bob).hasSuffix(" to 2 members"))
            #expect(
                try server.admin(.defaultChats).map { $0.split(separator: " ")[3] }
                    == ["announcements"]
            )
        }
    }

    @Test("are finished after a crash at any step, once")
    func crashes() throws {
        // Each run stops after `stop` steps. With one account per step, the last runs stop right
        // before and right after the post.
        for stop in 0...5 {
            let directory = try TestServer.temporaryDirectory()
            defer { TestServer.removeDirectory(directory) }
            let limits = ["announcedPerStep": 1]
            let first = try TestServer(overrides: limits, dataDirectory: directory)
            let people = try (0..<4).map { try first.signUp("Person \($0)") }
            _ = try first.announce("first", from: people[0])
            let channel = try first.channel()
            try people[3].call(ChatLeaveRequest(chatID: channel))
            try first.run { tx in
                let chat = try #require(try tx.livingChat(ChatKey(channel.rawValue)))
                try tx.addAnnouncement("second", in: chat, after: tx.reader.announcement())
            }
            let announcer = Announcer(limits: LiveAdminBackend(first.server).limits)
            for _ in 0..<stop { try first.run { _ = try announcer.step(in: $0) } }
            first.stop()

            let second = try TestServer(overrides: limits, dataDirectory: directory)
            defer { second.stop() }
            second.keepHouse()
            second.keepHouse()
            for person in people {
                let (client, _) = try second.reconnect(person)
                let texts = try client.texts(channel)
                #expect(texts.filter { $0 == "second" }.count == 1, "\(stop): \(texts)")
            }
            // An administrator who does not know whether the command succeeded may repeat it.
            #expect(
                try second.failure(.announce(AnnouncementRequest("second"))).contains("--again")
            )
        }
    }

    @Test("take steps that cost the same however many members the channel has")
    func steps() throws {
        try withServer(limits: ["announcedPerStep": 20]) { server in
            let alice = try server.signUp("Alice")
            _ = try server.announce("first", from: alice)
            let channel = try server.channel()
            _ = try server.admin(.removeDefaultChat("\(channel)"))
            _ = try server.admin(.createUsers(count: 119, firstPhone: 79_990_800_000))
            try server.run { tx in
                let chat = try #require(try tx.livingChat(ChatKey(channel.rawValue)))
                try tx.addAnnouncement("second", in: chat, after: tx.reader.announcement())
            }
            let announcer = Announcer(limits: LiveAdminBackend(server.server).limits)
            let costs = Box<[(step: Announcer.Step, writes: Int, rows: Int)]>([])
            while costs.value.last?.step != .posted {
                try server.run { tx in
                    let (writes, rows) = (tx.writes, tx.reader.rowsRead)
                    let step = try announcer.step(in: tx)
                    costs.value.append((step, tx.writes - writes, tx.reader.rowsRead - rows))
                }
            }
            // Six steps add twenty accounts each. The seventh finds no account left, and posts.
            #expect(costs.value.map(\.step) == Array(repeating: .more, count: 6) + [.posted])
            let middle = costs.value[1..<6]
            #expect(Set(middle.map(\.writes)).count == 1, "\(costs.value)")
            #expect(middle.allSatisfy { $0.rows <= 2 * 20 + 10 }, "\(costs.value)")
            #expect(try alice.texts(channel).last == "second")
        }
    }

    @Test("continue when the administrator repeats the command")
    func repeated() throws {
        try withPair { server, alice, bob, _ in
            _ = try server.announce("first", from: alice)
            let channel = try server.channel()
            try server.run { tx in
                let chat = try #require(try tx.livingChat(ChatKey(channel.rawValue)))
                try tx.addAnnouncement("second", in: chat, after: tx.reader.announcement())
            }
            let other = AnnouncementRequest("else")
            #expect(try server.failure(.announce(other)).contains("on its way"))
            #expect(try server.announce("second").hasSuffix(" to 2 members"))
            #expect(try bob.texts(channel).filter { $0 == "second" }.count == 1)
            #expect(try server.admin(.audit(AdminFilter([.action: "announce"]))).count == 1)
        }
    }
}

@Suite("Chats that new accounts join")
struct DefaultChatTests {
    @Test("have the new account before its first login, and tell a group of it")
    func joins() throws {
        try withPair { server, alice, bob, _ in
            let group = try alice.createGroup("Lobby", with: [bob], cid: 1)
            let channel = try alice.createGroup("News", with: [], type: "CHANNEL", cid: 2)
            try alice.send("welcome", to: group, cid: 3)
            for chat in [group, channel] { _ = try server.admin(.addDefaultChat("\(chat)")) }
            #expect(
                Set(try server.admin(.defaultChats)) == [
                    "\(group) group 2 open \"Lobby\"", "\(channel) channel 1 open \"News\"",
                ]
            )
            _ = try bob.news()
            let carol = try server.signUp("Carol")
            #expect(try carol.chat(group)?.participantsCount == 3)
            #expect(try carol.chat(channel) != nil)
            #expect(try carol.texts(group).contains("welcome"))
            let event = try #require(try bob.history(group).messages?.last)
            let control = try #require(event.attaches.stored?.first)
            #expect(control.event == "joinByLink" && event.sender == carol.userID)
            #expect(try bob.news().map(\.opcode).contains(.notifMessage))

            // Accounts that one admin command creates join in one event.
            _ = try server.admin(.createUsers(count: 3, firstPhone: 79_990_800_000))
            let listed = try server.admin(.defaultChats)
            #expect(listed.contains { $0.hasPrefix("\(group) group 6 ") }, "\(listed)")
            let added = try #require(try bob.history(group).messages?.last)
            #expect(added.attaches.stored?.first?.userIDs?.count == 3)

            #expect(try server.admin(.removeDefaultChat("\(group)")).count == 1)
            let dave = try server.signUp("Dave")
            #expect(try dave.chat(group) == nil && dave.chat(channel) != nil)
            #expect(try server.admin(.check) == ["ok"])
        }
    }

    @Test("do not stop a registration when a group is full or deleted")
    func full() throws {
        try withServer(limits: ["maxGroupMembers": 3, "maxDefaultChats": 2]) { server in
            let alice = try server.signUp("Alice")
            let group = try alice.createGroup("Lobby", with: [], cid: 1)
            let gone = try alice.createGroup("Gone", with: [], cid: 2)
            for chat in [group, gone] { _ = try server.admin(.addDefaultChat("\(chat)")) }
            #expect(try server.failure(.addDefaultChat("\(group)")).contains("already"))
            let third = try alice.createGroup("Third", with: [], cid: 3)
            #expect(try server.failure(.addDefaultChat("\(third)")).contains("limit is 2"))
            #expect(try server.failure(.addDefaultChat("12")).contains("no group or channel"))
            #expect(try server.failure(.removeDefaultChat("12")).contains("do not join"))
            try alice.call(ChatDeleteRequest(chatID: gone, forAll: true))
            // The group has room for only two of the three accounts.
            _ = try server.admin(.createUsers(count: 3, firstPhone: 79_990_800_000))
            #expect(
                Set(try server.admin(.defaultChats)) == [
                    "\(group) group 3 full \"Lobby\"", "\(gone) - 0 deleted",
                ]
            )
            let bob = try server.signUp("Bob")
            #expect(try bob.chat(group) == nil)
            #expect(try server.admin(.check) == ["ok"])
        }
    }

    @Test("are joined with the registration or not at all")
    func atomic() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let group = try alice.createGroup("Lobby", with: [], cid: 1)
            _ = try server.admin(.addDefaultChat("\(group)"))
            // A transaction that fails after the registration leaves no account and no member.
            #expect(throws: (any Error).self) {
                try server.run { tx in
                    let id = try tx.createAccount(
                        phone: 79_990_900_000,
                        firstName: "Nobody",
                        lastName: nil
                    )
                    try tx.joinDefaultChats([id], limits: .standard)
                    throw RequestError.internalError
                }
            }
            #expect(try alice.chat(group)?.participantsCount == 1)
            #expect(try server.admin(.users(AdminFilter())).count == 1)
        }
    }
}
