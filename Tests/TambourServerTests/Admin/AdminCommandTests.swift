import TambourMessenger
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

extension TestServer {
    fileprivate func failure(_ request: AdminService.Request) throws -> String {
        let failure = try #require(throws: AdminService.Failure.self) { try admin(request) }
        return failure.description
    }
}

@Suite("Admin commands")
struct AdminCommandTests {
    @Test("users are listed by state, name, phone and page, and shown")
    func users() throws {
        try withServer { server in
            let people = try ["Alice", "Bob", "Alina", "Carol"].map { try server.signUp($0) }
            let ids = people.map { "\($0.userID)" }
            func list(_ filter: [AdminFilter.Key: String]) throws -> [String] {
                try server.admin(.users(AdminFilter(filter))).map {
                    String($0.split(separator: " ")[1])
                }
            }
            #expect(try list([:]) == ids)
            #expect(try list([.name: "ALI"]) == [ids[0], ids[2]])
            #expect(try list([.limit: "2"]) == [ids[0], ids[1]])
            #expect(try list([.limit: "2", .after: ids[1]]) == [ids[2], ids[3]])
            #expect(try list([.limit: "1", .after: ids[0], .name: "ali"]) == [ids[2]])
            _ = try server.admin(.block(user: ids[1], isBlocked: true))
            #expect(try list([.state: "blocked"]) == [ids[1]])
            #expect(try list([.state: "active"]) == [ids[0], ids[2], ids[3]])
            let phone = PhoneNumber.format(try people[3].phone)
            #expect(try list([.phone: phone]) == [ids[3]])
            #expect(try list([.idleDays: "1"]) == [])
            let group = try people[0].createGroup("G", with: [people[3]], cid: 1)
            #expect(try list([.chat: "\(group)"]) == [ids[0], ids[3]])
            for bad: [AdminFilter.Key: String] in [
                [.state: "x"], [.limit: "0"], [.limit: "x"], [.after: "x"],
            ] {
                _ = try server.failure(.users(AdminFilter(bad)))
            }
            let shown = try server.admin(.user(phone))
            #expect(shown.contains("id \(ids[3])"))
            #expect(shown.contains("name \"Carol\""))
            #expect(shown.contains("sessions 1") && shown.contains("chats 1"))
            #expect(shown.contains("password no") && shown.contains("erasure never"))
            #expect(try server.failure(.user("+79")).contains("no user"))
        }
    }

    @Test("chats are listed by kind, member, title and size, and shown without what is written")
    func chats() throws {
        try withPair { server, alice, bob, dialog in
            try alice.send("a secret rhythm", to: dialog, cid: 1)
            try alice.send("a secret rhythm", to: ChatID(0), cid: 2)
            let group = try bob.createGroup("Drummers", with: [alice], cid: 3)
            func list(_ filter: [AdminFilter.Key: String]) throws -> [String] {
                try server.admin(.chats(AdminFilter(filter)))
            }
            #expect(try list([:]).count == 3)
            let groups = try list([.kind: "group"])
            #expect(groups.count == 1 && groups[0].hasPrefix("\(group) group 2 1 "))
            #expect(groups[0].hasSuffix(" \"Drummers\""))
            #expect(try list([.title: "drum"]) == groups)
            #expect(try list([.kind: "dialog"])[0].hasSuffix("\(alice.userID) and \(bob.userID)"))
            #expect(try list([.user: "\(bob.userID)"]).count == 2)
            #expect(try list([.user: "\(alice.userID)", .kind: "saved"]).count == 1)
            #expect(try list([.minMembers: "3"]).isEmpty)
            #expect(try list([.limit: "1", .after: "\(group)"]).count == 1)
            let shown = try server.admin(.chat("\(group)"))
            #expect(shown.contains("title \"Drummers\"") && shown.contains("members 2"))
            #expect(
                shown.contains { $0.hasPrefix("member \(bob.userID) ") && $0.hasSuffix("owner") }
            )
            #expect(!(try list([:]) + shown).joined().contains("rhythm"))
            #expect(try server.failure(.chat("7000")).contains("no chat"))
            let unknown = AdminFilter([.kind: "x"])
            #expect(
                try server.failure(.chats(unknown)) == "kind: dialog, saved, group, channel"
            )
        }
    }

    @Test("sessions are listed, shown and ended; who is ended has to sign in")
    func sessions() throws {
        try withPair { server, alice, bob, _ in
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            func list(_ filter: [AdminFilter.Key: String]) throws -> [String] {
                try server.admin(.sessions(AdminFilter(filter))).map {
                    String($0.split(separator: " ")[0])
                }
            }
            let all = try list([:])
            #expect(all.count == 3)
            let own = try list([.user: "\(alice.userID)"])
            #expect(own.count == 2)
            #expect(try list([.limit: "1"]) == [all[0]])
            #expect(try list([.limit: "2", .after: all[0]]) == Array(all[1...]))
            #expect(try list([.user: "\(alice.userID)", .after: own[0]]) == [own[1]])
            #expect(try list([.address: "127.0.0.1"]) == all)
            #expect(try list([.address: "10.0."]) == [])
            #expect(try list([.idleDays: "1"]) == [])
            #expect(try server.admin(.session(own[1])).contains("user \(alice.userID)"))
            #expect(try server.admin(.endSession(own[1])) == ["\(own[1]) ended"])
            try laptop.waitForClose()
            try alice.call(PingRequest())
            #expect(try server.failure(.endSession(own[1])).contains("no session"))
            #expect(try server.admin(.endSessions(user: "\(bob.userID)")).count == 1)
            try bob.waitForClose()
            let again = try server.connect()
            #expect(try again.code(of: LoginRequest(token: bob.token)) == .loginToken)
            #expect(try server.admin(.endSessions(user: "\(bob.userID)")) == ["no session"])
        }
    }

    @Test("statistics count rows and bytes, and what has come since a day before")
    func statistics() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, _, dialog in
            try alice.send("one", to: dialog, cid: 1)
            let first = try server.admin(.stats(sinceDays: 1))
            #expect(first[0].split(separator: " ") == ["table", "rows", "bytes"])
            #expect(first.last?.hasPrefix("1 messages: ") == true)
            func row(_ lines: [String], _ table: String) throws -> [Int64] {
                let words = try #require(
                    lines.map { $0.split(separator: " ") }.first { $0[0] == table }
                )
                return words[1...].compactMap { Int64($0) }
            }
            #expect(try row(first, "message")[0] == 1)
            #expect(try row(first, "message")[1] > 0)
            clock.advance(ms: 86_400_000)
            for cid in 2...400 {
                try alice.send(String(repeating: "x", count: 400), to: dialog, cid: Int64(cid))
            }
            let second = try server.admin(.stats(sinceDays: 1))
            let message = try row(second, "message")
            #expect(message[0] == 400 && message[2] == 399)
            let bytesBefore = try row(first, "message")[1]
            #expect(message[3] > 150_000 && message[3] == message[1] - bytesBefore)
            #expect(try row(second, "account").suffix(2) == [0, 0])
            // A second call on the same day still compares with the sizes of the day before.
            let third = try server.admin(.stats(sinceDays: 1))
            #expect(try row(third, "message")[2] == 399)
            _ = try server.failure(.stats(sinceDays: 0))
        }
    }

    @Test("an export has everything of one person, and of others what that one sees")
    func export() throws {
        try withPair { server, alice, bob, dialog in
            let phone = try alice.phone
            let first = try alice.send("my \"own\"\n words", to: dialog, cid: 1).message.id
            try bob.send("his words", to: dialog, cid: 1)
            let group = try bob.createGroup("Drummers", with: [alice], cid: 2)
            try alice.send("to the group", to: group, cid: 2)
            let left = try bob.createGroup("Left", with: [alice], cid: 3)
            try alice.send("before I went", to: left, cid: 3)
            try alice.call(ChatLeaveRequest(chatID: left))
            try alice.call(
                ContactUpdateRequest(contactID: bob.userID, action: .add, firstName: "Bobby")
            )
            try alice.call(
                ConfigRequest(
                    settings: SettingsChange(
                        user: NameMap([("INACTIVE_TTL", AnyValue("6M" as Text))])
                    )
                )
            )
            try alice.setPassword("correct horse", hint: "my hint")
            try alice.call(ComplainRequest(ids: [bob.userID.rawValue], reasonID: 7))
            let tomorrow = Environment.live.wallMs() + 86_400_000
            try alice.schedule("tomorrow", at: tomorrow, in: dialog, cid: 4)
            let poll = NewMessage(cid: 5, attaches: [.poll()])
            let asked = try bob.call(MsgSendRequest(chatID: group, message: poll)).message
            let pollID = try #require(asked.attaches.stored?.first?.pollID)
            let vote = SendVoteRequest(
                chatID: group,
                messageID: asked.id,
                pollID: pollID,
                answersIDs: [2]
            )
            try alice.call(vote)
            let fire = NewReaction(id: "🔥")
            try alice.call(MsgReactionRequest(chatID: group, messageID: asked.id, reaction: fire))
            let hidden = try bob.send("never mind", to: group, cid: 6).message.id
            try alice.delete([hidden], in: group, forMe: true)
            let closed = try bob.createGroup("Closed", with: [], cid: 7)
            try bob.ask(for: closed)
            let link = try #require(
                try bob.call(ChatUpdateRequest(chatID: closed, revokePrivateLink: true)).chat.link
            )
            try alice.call(ChatJoinRequest(link: link))
            try alice.call(PhoneBindRequestRequest(phone: PhoneNumber.format(server.freshPhone())))
            let id = alice.userID
            try server.run { tx in
                let end = tx.ct + 86_400_000
                let invitation = try tx.createInvitation(
                    codeHash: Tokens.hash("hers"),
                    maxUses: 1,
                    expires: end,
                    by: id,
                    keptSince: 0
                )
                try tx.use(invitation, by: id)
            }
            let lines = try server.admin(.export(user: "\(alice.userID)"))
            func has(_ type: String, _ parts: String...) -> Bool {
                lines.contains { line in
                    line.hasPrefix("{\"type\":\"\(type)\"") && parts.allSatisfy(line.contains)
                }
            }
            #expect(has("profile", "\"+\(phone)\"", "\"Alice\"", "\"passwordHint\":\"my hint\""))
            #expect(has("session", "\"address\":\"127.0.0.1\"") && has("device"))
            #expect(has("contact", "\"givenFirstName\":\"Bobby\"", "\"added\":true"))
            #expect(has("setting", "\"INACTIVE_TTL\"", "\"6M\""))
            #expect(has("chat", "\"partner\":\(bob.userID)") && has("chat", "\"Drummers\""))
            #expect(has("formerChat", "\"id\":\(left)"))
            #expect(has("message", "\"id\":\(first)", "\"my \\\"own\\\"\\n words\""))
            #expect(has("message", "\"to the group\"") && has("message", "\"before I went\""))
            #expect(has("report", "\"user\":\(bob.userID)", "\"reason\":7"))
            #expect(has("scheduledMessage", "\"tomorrow\"", "\"due\":\"", "\"chat\":\(dialog)"))
            #expect(has("vote", "\"chat\":\(group),\"message\":\(asked.id),\"answer\":2,"))
            #expect(has("reaction", "\"message\":\(asked.id),\"reaction\":\"🔥\""))
            #expect(has("hiddenMessage", "\"chat\":\(group),\"message\":\(hidden)}"))
            #expect(has("joinRequest", "\"chat\":\(closed)"))
            #expect(has("attempt", "\"created\":\""))
            #expect(has("invitationUse", "\"used\":\""))
            #expect(has("invitation", "\"made\":true", "\"uses\":1"))
            let all = lines.joined(separator: "\n")
            for secret in ["his words", alice.token, "correct horse", bob.token] {
                #expect(!all.contains(secret), "\(secret)")
            }
            #expect(try server.failure(.export(user: "77")).contains("no user"))
        }
    }
}
