import TambourFraming
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("How often something may be asked for")
struct RateTests {
    private let second: Int64 = 1000

    private func expectTooMany(_ client: WireClient, _ request: some WireRequest) throws -> Int64 {
        let packet = try client.reply(to: client.send(request))
        let error = try ErrorReply.decode(packet.payload, limits: .standard)
        #expect(error.error == "too.many.requests")
        return try #require(error.retryAfter)
    }

    @Test("too many messages are refused until the time that is named, on every device")
    func sends() throws {
        let clock = ManualClock()
        try withPair(
            limits: ["sendBurst": 3, "sendsPerMinute": 60],
            environment: clock.environment
        ) { server, alice, bob, dialog in
            for cid in 1...3 { try alice.send("a", to: dialog, cid: Int64(cid)) }
            let request = MsgSendRequest(chatID: dialog, message: NewMessage(cid: 4, text: "a"))
            #expect(try expectTooMany(alice, request) == 1000)
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            #expect(try expectTooMany(laptop, request) == 1000)
            // The limit affects neither other users nor other requests.
            try bob.send("b", to: dialog, cid: 1)
            #expect(try alice.texts(dialog) == ["a", "a", "a", "b"])
            clock.advance(ms: 1000)
            try alice.call(request)
            #expect(try alice.texts(dialog).count == 5)
            _ = try expectTooMany(alice, request)
        }
    }

    @Test("groups, invitations and joins have limits of their own")
    func groups() throws {
        let limits = ["createBurst": 2, "inviteBurst": 3, "joinBurst": 1]
            .merging(["createsPerMinute": 1, "invitesPerMinute": 1, "joinsPerMinute": 1]) { $1 }
        try withPair(limits: limits) { server, alice, bob, _ in
            let group = try alice.createGroup("one", with: [bob], cid: 1)
            func create(_ users: [UserID]) -> MsgSendRequest {
                let control = NewAttach(type: .control, title: "two", event: "new", userIDs: users)
                return MsgSendRequest(message: NewMessage(cid: 2, attaches: [control]))
            }
            // Alice may invite two more users. A user who is named twice counts once.
            let three = [bob.userID, UserID(900_001), UserID(900_002)]
            _ = try expectTooMany(alice, create(three))
            _ = try expectTooMany(alice, create([]))
            let carol = try server.signUp("Carol")
            let add = ChatMembersUpdateRequest(
                chatID: group,
                userIDs: [carol.userID],
                operation: .add
            )
            try alice.call(add)
            try alice.call(add)
            _ = try expectTooMany(alice, add)
            let link = try #require(
                try alice.call(ChatUpdateRequest(chatID: group, revokePrivateLink: true)).chat.link
            )
            let dave = try server.signUp("Dave")
            try dave.call(ChatJoinRequest(link: link))
            _ = try expectTooMany(dave, ChatJoinRequest(link: link))
            try dave.send("here", to: group, cid: 1)
        }
    }

    @Test("looking for people and links is limited")
    func searches() throws {
        try withPair(limits: ["searchBurst": 3, "searchesPerMinute": 1]) { _, alice, bob, _ in
            let create = ContactCreateRequest(phone: "1", firstName: "A")
            #expect(try alice.code(of: create) == .userNotFound)
            try alice.call(LinkInfoRequest(link: "join/x"))
            #expect(try alice.code(of: ChatCheckLinkRequest(link: "join/x")) == .notFound)
            _ = try expectTooMany(alice, ContactInfoByPhoneRequest(phone: "1"))
            #expect(try bob.code(of: ContactInfoByPhoneRequest(phone: "1")) == .userNotFound)
        }
    }

    @Test("a phone book is as long as it is, and not walked through for ever")
    func phoneBooks() throws {
        let limits = ["phoneBookBurst": 5, "phoneBookPerMinute": 1]
        try withPair(limits: limits) { _, alice, bob, _ in
            func book(_ count: Int) -> SyncRequest {
                SyncRequest(
                    contactList: NameMap((0..<count).map { (Text("+7999\($0)"), PhoneBookEntry()) })
                )
            }
            try alice.call(book(3))
            try alice.call(book(2))
            _ = try expectTooMany(alice, book(1))
            try bob.call(book(9))
            _ = try expectTooMany(bob, book(1))
        }
    }

    @Test("an address that tries too much is told to wait; who has logged in is not")
    func addresses() throws {
        try withServer(limits: ["authBurst": 6, "authsPerMinute": 1]) { server in
            let alice = try server.signUp("Alice")
            let client = try server.connect()
            for _ in 0..<3 {
                let guess = AuthCodeRequest(token: "x", verifyCode: "1")
                #expect(try client.code(of: guess) == .errorCodeExpired)
            }
            _ = try expectTooMany(client, AuthCodeRequest(token: "x", verifyCode: "1"))
            _ = try expectTooMany(client, AuthRequestRequest(phone: "+79990000001"))
            #expect(try client.code(of: LoginRequest(token: "dead")) == .loginFlood)
            _ = try server.reconnect(alice)
        }
    }

    @Test("an account that logs in too often is told to wait, and its token stays good")
    func logins() throws {
        let clock = ManualClock()
        try withServer(
            limits: ["loginBurst": 2, "loginsPerMinute": 60],
            environment: clock.environment
        ) { server in
            let alice = try server.signUp("Alice")
            _ = try server.reconnect(alice)
            let client = try server.connect()
            #expect(try client.code(of: LoginRequest(token: alice.token)) == .loginFlood)
            clock.advance(ms: 1000)
            client.token = alice.token
            _ = try server.login(client)
        }
    }

    @Test("the new dialogs of an hour are limited; existing dialogs continue")
    func strangers() throws {
        let clock = ManualClock()
        try withServer(limits: ["maxNewDialogsPerHour": 2], environment: clock.environment) {
            server in
            let alice = try server.signUp("Alice")
            let others = try (0..<4).map { try server.signUp("User \($0)") }
            try others[3].send("hi", to: others[3].dialog(with: alice), cid: 1)
            clock.advance(ms: 1000)
            for other in others.prefix(2) {
                try alice.send("hi", to: alice.dialog(with: other), cid: 1)
                clock.advance(ms: 60_000)
            }
            let third = MsgSendRequest(
                chatID: alice.dialog(with: others[2]),
                message: NewMessage(cid: 1, text: "hi")
            )
            #expect(try expectTooMany(alice, third) == 3_600_000 - 120_000)
            #expect(try others[2].chat(others[2].dialog(with: alice)) == nil)
            try alice.send("again", to: alice.dialog(with: others[0]), cid: 2)
            try alice.send("hello", to: alice.dialog(with: others[3]), cid: 2)
            try alice.send("to myself", to: ChatID(0), cid: 3)
            _ = try alice.createGroup("all", with: others, cid: 9)
            clock.advance(ms: 3_600_000 - 120_000)
            try alice.call(third)
            // A dialog with a user who has Alice as a contact does not count against the limit.
            let friend = try server.signUp("Friend")
            try friend.call(ContactUpdateRequest(contactID: alice.userID, action: .add))
            try alice.send("hi", to: alice.dialog(with: friend), cid: 4)
        }
    }
}

@Suite("What people are told about a refusal")
struct LocalizedRefusalTests {
    private func refusal(locale: String?) throws -> ErrorReply {
        try withServerValue { server in
            let client = try WireClient(address: server.address)
            try client.call(SessionInitRequest(userAgent: UserAgent(locale: locale)))
            return try client.refusal(.login, payload: LoginRequest(token: "x").encoded())
        }
    }

    private func withServerValue<Value>(_ body: (TestServer) throws -> Value) throws -> Value {
        let server = try TestServer()
        defer { server.remove() }
        return try body(server)
    }

    @Test("in Russian, in English for every other language, and not at all without a locale")
    func languages() throws {
        #expect(try refusal(locale: "ru").localizedMessage == "Сеанс завершён. Войдите снова")
        #expect(try refusal(locale: "ru_RU").localizedMessage == "Сеанс завершён. Войдите снова")
        let english = try refusal(locale: "de")
        #expect(english.localizedMessage == "Your session has ended. Please sign in again")
        #expect(english.message == "FAIL_LOGIN_TOKEN")
        #expect(try refusal(locale: "rus").localizedMessage == english.localizedMessage)
        #expect(try refusal(locale: nil).localizedMessage == nil)
        #expect(try refusal(locale: "").localizedMessage == nil)
    }

    @Test("every code has words in every language")
    func complete() {
        // The error code for opcodes that the server does not serve has no text. Apps would show
        // the text at every start.
        for code in RequestError.Code.allCases where code != .protoOpcode {
            for language in RequestError.Language.allCases {
                #expect(code.text(in: language)?.isEmpty == false, "\(code) \(language)")
            }
            #expect((code.title(in: .en) == nil) == (code.title(in: .ru) == nil), "\(code)")
        }
    }
}
