import TambourFraming
import TambourNet
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourGateway
@testable import TambourMessenger

/// A map from a payload, if no generated type describes the map.
private struct Fields {
    let values: [String: AnyValue]

    init(_ bytes: some Sequence<UInt8>) throws {
        let map = try MessagePackReader.read(Bytes(Array(bytes)), limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try NameMap<AnyValue>.read(from: &reader)
        }
        values = Dictionary(map.pairs.map { ("\($0.0)", $0.1) }) { first, _ in first }
    }

    var keys: Set<String> { Set(values.keys) }

    /// Returns the value of a key; nil if the key is missing.
    subscript(_ key: String) -> AnyValue? { values[key] }

    func map(_ key: String) throws -> Fields {
        try #require(values[key]).bytes.withUnsafeBytes { try Fields($0) }
    }

    func text(_ key: String) throws -> String {
        try MessagePackReader.read(#require(values[key]).bytes, limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try reader.readString()
        }
    }

    func user(_ key: String) throws -> UserID {
        try MessagePackReader.read(#require(values[key]).bytes, limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            UserID(try reader.readID())
        }
    }
}

private let tamtam: Capabilities = [.classic, .tamtam]

extension WireClient {
    /// Returns the undecoded reply to a request.
    fileprivate func raw(_ request: some WireRequest) throws -> [UInt8] {
        let packet = try reply(to: send(request))
        guard packet.header.command == PacketCommand.ok.rawValue else {
            throw Failure.unexpected("\(type(of: request)) was refused")
        }
        return packet.payload
    }

    fileprivate func fields(_ request: some WireRequest) throws -> Fields {
        try Fields(raw(request))
    }

    /// Sends AUTH_REQUEST as a TamTam app does.
    fileprivate func askAsTamTam(_ phone: Int64) throws -> Fields {
        try fields(AuthRequestRequest(phone: PhoneNumber.format(phone), requestType: "SMS"))
    }
}

extension TestServer {
    /// Requests a code as a TamTam app does, and returns the reply of AUTH to this code.
    fileprivate func checkAsTamTam(_ phone: Int64, on client: WireClient) throws -> Fields {
        let token = try client.askAsTamTam(phone).text("verifyToken")
        let code = try receivedCode(of: phone)
        return try client.fields(AuthCodeRequest(token: token, verifyCode: code))
    }

    /// Signs up a new phone, or signs in a known phone. Stores the LOGIN token in the client.
    @discardableResult
    fileprivate func enterAsTamTam(_ phone: Int64, on client: WireClient) throws -> Fields {
        let types = try checkAsTamTam(phone, on: client).map("tokenTypes")
        let isNew = types.keys == ["NEW"]
        let confirmed = try client.fields(
            AuthConfirmRequest(
                name: isNew ? "Tanya Tam" : nil,
                token: types.text(isNew ? "NEW" : "AUTH"),
                tokenType: isNew ? "NEW" : "AUTH",
                deviceType: "ANDROID",
                deviceID: "5d1c"
            )
        )
        client.token = try confirmed.text("token")
        return confirmed
    }
}

/// Returns whether the server speaks the TamTam dialect on this logged-in connection.
private func speaksTamTam(_ client: WireClient) throws -> Bool {
    let profile = try client.fields(LoginRequest(token: client.token)).map("profile")
    return profile["contact"] == nil
}

@Suite("The dialect of TamTam")
struct TamTamTests {
    private func withListeners(
        _ listen: [String] = ["127.0.0.1:0", "tcp://127.0.0.1:0?dialect=tamtam"],
        _ body: (TestServer) throws -> Void
    ) throws {
        let server = try TestServer(lanes: 1, listen: listen)
        defer { server.remove() }
        try body(server)
    }

    private func connect(_ server: TestServer, _ listener: Int = 0) throws -> WireClient {
        let client = try WireClient(address: server.addresses[listener])
        // The apps send no build number, no ids, and a low version.
        let agent = UserAgent(deviceType: "ANDROID", appVersion: "2.34.1")
        try client.call(SessionInitRequest(userAgent: agent))
        return client
    }

    // MARK: - Forms

    @Test("a new user signs up, signs in again and comes back, all in its forms")
    func signUp() throws {
        try withListeners { server in
            let phone = server.freshPhone()
            let app = try connect(server)
            let asked = try app.askAsTamTam(phone)
            #expect(
                asked.keys.isSuperset(of: [
                    "verifyToken", "retries", "codeDelay", "codeLength", "callDelay", "requestType",
                ])
            )
            #expect(try asked.text("requestType") == "SMS")
            #expect(asked["codeDelay"] == AnyValue(60) && asked["callDelay"] == AnyValue(60))
            let checked = try app.fields(
                AuthCodeRequest(
                    token: asked.text("verifyToken"),
                    verifyCode: server.receivedCode(of: phone),
                    authTokenType: "PHONE"
                )
            )
            let new = try checked.map("tokenTypes").text("NEW")
            #expect(checked.keys == ["tokenAttrs", "tokenTypes"])
            #expect(try checked.map("tokenAttrs").map("NEW").text("token") == new)
            let confirm = AuthConfirmRequest(name: "Tanya Tam", token: new, tokenType: "NEW")
            let confirmed = try app.fields(confirm)
            #expect(confirmed.keys == ["userToken", "profile", "tokenType", "token"])
            let profile = try confirmed.map("profile")
            #expect(
                profile.keys == [
                    "id", "accountStatus", "updateTime", "names", "options", "phone",
                    "registrationTime",
                ]
            )
            #expect(profile["names"] == AnyValue([UserName(name: "Tanya Tam", type: "TT")]))
            #expect(profile["options"] == AnyValue(["TT"]))

            // The phone now has an account, so the second step returns the login token.
            let second = try connect(server)
            let known = try server.checkAsTamTam(phone, on: second)
            #expect(known.keys == ["tokenAttrs", "tokenTypes", "profile"])
            #expect(try known.map("tokenAttrs").keys == ["AUTH"])
            #expect(try known.map("profile")["id"] == profile["id"])
            let token = try known.map("tokenTypes").text("AUTH")
            #expect(try second.code(of: LoginRequest(token: token)) == .loginToken)
            let login = AuthConfirmRequest(token: token, tokenType: "AUTH", deviceType: "ANDROID")
            second.token = try second.fields(login).text("token")
            #expect(try second.code(of: login) == .errorCodeExpired)

            let third = try connect(server)
            third.token = second.token
            let back = try third.fields(LoginRequest(token: third.token))
            #expect(try back.map("profile").keys == profile.keys)
            // The apps send these requests after LOGIN. The server must refuse none of them.
            _ = try third.raw(ContactInfoRequest(contactIDs: []))
            for opcode in [Opcode.ping, .sessionsInfo] {
                let answer = try third.reply(to: third.send(opcode, payload: [0xC0]))
                #expect(answer.header.command == PacketCommand.ok.rawValue)
            }
        }
    }

    @Test("a login leaves out saved messages, which stay where they are")
    func savedMessages() throws {
        try withListeners { server in
            let app = try connect(server)
            try server.enterAsTamTam(server.freshPhone(), on: app)
            try app.send("kept", to: ChatID(0), cid: 1)
            let there = try app.fields(LoginRequest(token: app.token))
            #expect(there["chats"] == AnyValue([Chat]()))
            let history = try app.call(ChatHistoryRequest(chatID: ChatID(0), backward: 10))
            #expect(history.messages?.count == 1)
        }
    }

    @Test("links of chats begin with an address, and are taken with any")
    func links() throws {
        try withListeners { server in
            let alice = try server.signUp("Alice")
            let channel = try alice.createGroup("Drums", with: [], type: "CHANNEL", cid: 1)
            try alice.call(
                ChatUpdateRequest(chatID: channel, access: .public, link: "drum_news")
            )
            let addresses = [
                "drum_news", "@drum_news", "tt.me/drum_news", "https://tt.me/drum_news",
                "tamtam.chat/Drum_News", "https://tamtam.chat/drum_news/",
                "https://max.ru/drum_news",
            ]
            let app = try connect(server)
            try server.enterAsTamTam(server.freshPhone(), on: app)
            for address in addresses {
                let chat = try app.fields(LinkInfoRequest(link: Text(address))).map("chat")
                #expect(try chat.text("link") == "https://tt.me/drum_news", "\(address)")
                #expect(
                    try alice.call(LinkInfoRequest(link: Text(address))).chat?.link == "drum_news"
                )
            }
            for address in ["tt.me", "tt.me/", "a/drum_news", "https://drum_news"] {
                #expect(try app.fields(LinkInfoRequest(link: Text(address))).keys.isEmpty)
            }
        }
    }

    @Test("a chat is reported with a complaint alone")
    func complaint() throws {
        try withListeners { server in
            let alice = try server.signUp("Alice")
            let app = try connect(server)
            let profile = try server.enterAsTamTam(server.freshPhone(), on: app).map("profile")
            app.userID = try profile.user("id")
            server.introduce(app.userID)
            try app.send("hello", to: app.dialog(with: alice), cid: 1)
            var writer = MessagePackWriter()
            writer.writeMapHeader(2)
            writer.writeKey("chatId")
            writer.writeInt(app.dialog(with: alice).rawValue)
            writer.writeKey("complaint")
            writer.writeKey("SPAM")
            let answer = try app.reply(to: app.send(.chatComplain, payload: writer.finish()))
            #expect(answer.header.command == PacketCommand.ok.rawValue)
        }
    }

    @Test("numbers that mean something else are refused, and no word is said about it")
    func movedNumbers() throws {
        try withListeners { server in
            let app = try connect(server)
            try server.enterAsTamTam(server.freshPhone(), on: app)
            for number: UInt16 in [78, 84, 94, 256] {
                let refusal = try app.refusal(Opcode(rawValue: number), payload: [0x80])
                #expect(refusal.error == "proto.opcode" && refusal.localizedMessage == nil)
            }
        }
    }

    // MARK: - Other clients

    @Test("a push goes to each in its own form, and a classic client gets the bytes it always got")
    func pushes() throws {
        try withListeners { server in
            let phone = server.freshPhone()
            let app = try connect(server)
            try server.enterAsTamTam(phone, on: app)
            let classic = try connect(server)
            let asked = try classic.call(
                AuthRequestRequest(phone: PhoneNumber.format(phone), type: "START_AUTH")
            )
            let checked = try classic.call(
                AuthCodeRequest(
                    token: asked.token,
                    verifyCode: server.receivedCode(of: phone),
                    authTokenType: "CHECK_CODE"
                )
            )
            #expect(checked.tokenAttrs.login != nil && checked.tokenAttrs.auth == nil)
            let modern = try server.connect(capabilities: ["history-more"])
            modern.token = try #require(checked.tokenAttrs.login?.token)
            _ = try server.login(modern)

            let reply = try modern.call(ProfileRequest(firstName: "Nina", lastName: "Tam"))
            let push = NotifProfile(profile: reply.profile)
            for (client, form) in [(app, tamtam), (classic, Capabilities.classic)] {
                let pushed = try client.takePushes().filter { $0.opcode == .notifProfile }
                #expect(pushed.map(\.payload) == [push.encoded(for: form)])
            }
            let own = try Fields(push.encoded(for: tamtam)).map("profile")
            #expect(own["names"] == AnyValue([UserName(name: "Nina Tam", type: "TT")]))
            let login = try classic.raw(LoginRequest(token: modern.token))
            let read = try LoginReply.decode(login, limits: .standard)
            #expect(login == read.encoded(for: .classic))
        }
    }

    @Test("a message tells an app what its user has not read")
    func counters() throws {
        try withListeners { server in
            let alice = try server.signUp("Alice")
            let app = try connect(server)
            let profile = try server.enterAsTamTam(server.freshPhone(), on: app).map("profile")
            app.userID = try profile.user("id")
            server.introduce(app.userID)
            try alice.send("hello", to: alice.dialog(with: app), cid: 1)
            let push = try app.next(.notifMessage, as: NotifMessage.self)
            #expect(push.unread == 1 && push.ttl == false)
        }
    }

    // MARK: - Detection

    /// A request, and the dialect that it reveals: whether it is TamTam's; nil if it reveals none.
    struct Clue: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let request: CommandRequest
        let isTamTam: Bool?

        init(_ name: String, _ request: CommandRequest, _ isTamTam: Bool?) {
            testDescription = name
            self.request = request
            self.isTamTam = isTamTam
        }
    }

    static let clues: [Clue] = [
        Clue("17 with a type", .authRequest(.init(phone: "1", type: "START_AUTH")), false),
        Clue("17 again", .authRequest(.init(phone: "1", type: "RESEND")), false),
        Clue("17 with an empty type", .authRequest(.init(phone: "1", type: "")), false),
        Clue("17 with both", .authRequest(.init(phone: "1", type: "X", requestType: "SMS")), false),
        Clue("17 with a requestType", .authRequest(.init(phone: "1", requestType: "SMS")), true),
        Clue("17 with neither", .authRequest(.init(phone: "1")), nil),
        Clue(
            "18 as known clients send it",
            .auth(.init(token: "", verifyCode: "", authTokenType: "CHECK_CODE")),
            false
        ),
        Clue(
            "18 with PHONE",
            .auth(.init(token: "", verifyCode: "", authTokenType: "PHONE")),
            true
        ),
        Clue("18 with neither", .auth(.init(token: "", verifyCode: "")), nil),
        Clue(
            "23 as known clients send it",
            .authConfirm(.init(token: "", tokenType: "REGISTER")),
            false
        ),
        Clue("23 with NEW", .authConfirm(.init(token: "", tokenType: "NEW")), true),
        Clue("23 with AUTH", .authConfirm(.init(token: "", tokenType: "AUTH")), true),
        Clue("23 with neither", .authConfirm(.init(firstName: "A", token: "")), nil),
        Clue("another request", .logout(LogoutRequest()), nil),
    ]

    @Test("is shown by what no other client sends", arguments: clues)
    func clue(_ clue: Clue) {
        let told = DialectRules.clue(in: clue.request)
        #expect(told == clue.isTamTam.map { $0 ? tamtam : .classic })
    }

    @Test("is what the first clue says, whatever comes after it")
    func firstClue() throws {
        try withListeners { server in
            let phone = server.freshPhone()
            try server.enterAsTamTam(phone, on: connect(server))
            // Send all requests at once, before the server can answer any.
            let other = PhoneNumber.format(server.freshPhone())
            let both = [
                AuthRequestRequest(phone: other, type: "START_AUTH"),
                AuthRequestRequest(phone: other, requestType: "SMS"),
            ]
            for (isTamTam, requests) in [(false, both), (true, both.reversed())] {
                let client = try connect(server)
                let numbers = try requests.map { try client.send($0) }
                for number in numbers {
                    let reply = try Fields(client.reply(to: number).payload)
                    #expect((reply["verifyToken"] != nil) == isTamTam)
                }
            }
            let ask = PhoneNumber.format(phone)
            let client = try connect(server)
            let asked = try client.call(AuthRequestRequest(phone: ask, type: "START_AUTH"))
            let checked = try client.call(
                AuthCodeRequest(
                    token: asked.token,
                    verifyCode: server.receivedCode(of: phone),
                    authTokenType: "PHONE"
                )
            )
            #expect(checked.tokenAttrs.login != nil)
        }
    }

    @Test("does not change after a login, nor by another SESSION_INIT")
    func afterLogin() throws {
        try withListeners { server in
            let alice = try server.signUp("Alice")
            let phone = server.freshPhone()
            #expect(try alice.askAsTamTam(phone)["verifyToken"] == nil)
            #expect(try server.reconnect(alice).client.fields(PingRequest()).keys.isEmpty)
            #expect(try !speaksTamTam(alice))

            let app = try connect(server)
            try server.enterAsTamTam(server.freshPhone(), on: app)
            let agent = UserAgent(deviceType: "ANDROID", appVersion: "26.1", buildNumber: 6_500)
            try app.call(SessionInitRequest(userAgent: agent))
            _ = try app.raw(AuthRequestRequest(phone: PhoneNumber.format(phone), type: "RESEND"))
            #expect(try speaksTamTam(app))
        }
    }

    @Test("is that of the listener, with no clue or against it")
    func listener() throws {
        let listen = ["127.0.0.1:0?dialect=classic", "tcp://127.0.0.1:0?dialect=tamtam"]
        try withListeners(listen) { server in
            let phone = server.freshPhone()
            let app = try connect(server, 1)
            // Some apps send only the phone. A type is a sign of another client. In both cases, the
            // dialect of the listener counts.
            for request in [
                AuthRequestRequest(phone: PhoneNumber.format(phone)),
                AuthRequestRequest(phone: PhoneNumber.format(phone), type: "START_AUTH"),
            ] {
                #expect(try app.fields(request)["verifyToken"] != nil)
                _ = try server.receivedCode(of: phone)
            }
            let other = try connect(server, 0)
            #expect(try other.askAsTamTam(phone)["verifyToken"] == nil)
        }
    }

    @Test("is nobody's who names a capability")
    func capabilities() throws {
        try withListeners { server in
            let client = try WireClient(address: server.addresses[1])
            let hello = try client.call(SessionInitRequest(capabilities: ["history-more"]))
            #expect(hello.capabilities == ["history-more"])
            let phone = server.freshPhone()
            #expect(try client.askAsTamTam(phone)["verifyToken"] == nil)
        }
    }

    // MARK: - The token

    @Test("stays with the token: on another listener and after a restart")
    func token() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        var tokens: [String] = []
        do {
            let server = try TestServer(
                dataDirectory: directory,
                listen: ["127.0.0.1:0", "127.0.0.1:0?dialect=tamtam"]
            )
            defer { server.stop() }
            let app = try connect(server, 1)
            try server.enterAsTamTam(server.freshPhone(), on: app)
            let other = try server.signUp("Alice")
            tokens = [app.token, other.token]
            let elsewhere = try connect(server, 0)
            elsewhere.token = app.token
            #expect(try speaksTamTam(elsewhere))
        }
        let server = try TestServer(dataDirectory: directory)
        defer { server.stop() }
        for (token, isTamTam) in zip(tokens, [true, false]) {
            let client = try connect(server)
            client.token = token
            #expect(try speaksTamTam(client) == isTamTam)
        }
    }

    @Test(
        "of the second step ends with what ends other sign-ins, and does not stand for a password"
    )
    func secondStep() throws {
        try withListeners { server in
            let phone = server.freshPhone()
            let app = try connect(server)
            let user = try server.enterAsTamTam(phone, on: app).map("profile").user("id")
            try server.enterAsTamTam(phone, on: connect(server))
            let ends: [() throws -> Void] = [
                { try app.call(SessionsCloseRequest()) },
                {
                    try server.run { tx in
                        try tx.setPhone(79_990_009_999, of: user)
                        try tx.setPhone(phone, of: user)
                    }
                },
                { try app.setPassword("correct horse") },
            ]
            for end in ends {
                let client = try connect(server)
                let types = try server.checkAsTamTam(phone, on: client).map("tokenTypes")
                let confirm = AuthConfirmRequest(token: try types.text("AUTH"), tokenType: "AUTH")
                try end()
                #expect(try client.code(of: confirm) == .errorCodeExpired)
            }
            let challenged = try server.checkAsTamTam(phone, on: connect(server))
            #expect(challenged.keys == ["tokenAttrs", "passwordChallenge"])
            #expect(try challenged.map("tokenAttrs").keys.isEmpty)
        }
    }

    @Test("of the second step lets nobody into a blocked account")
    func blocked() throws {
        try withListeners { server in
            let phone = server.freshPhone()
            let user = try server.enterAsTamTam(phone, on: connect(server)).map("profile").user(
                "id"
            )
            let client = try connect(server)
            let types = try server.checkAsTamTam(phone, on: client).map("tokenTypes")
            let token = try types.text("AUTH")
            try server.run { try $0.setBlocked(true, user) }
            let confirm = AuthConfirmRequest(token: token, tokenType: "AUTH")
            #expect(try client.code(of: confirm) == .authBlocked)
        }
    }
}

@Suite("Listeners")
struct ListenEndpointTests {
    @Test("are written as an address, with a scheme and a dialect")
    func reads() throws {
        #expect(try ListenEndpoint("127.0.0.1:7770").dialect == nil)
        #expect(try ListenEndpoint("tcp://127.0.0.1:7770").address.port == 7770)
        let endpoint = try ListenEndpoint("tcp://[::1]:0?dialect=tamtam")
        #expect(endpoint.dialect == tamtam && endpoint.address.host == "::1")
        #expect(endpoint.description == "[::1]:0?dialect=tamtam")
        #expect(try ListenEndpoint("localhost:1?dialect=classic").dialect == .classic)
    }

    @Test(
        "say what is wrong with them",
        arguments: [
            (
                "127.0.0.1:1?dialect=icq",
                "there is no dialect \"icq\"; there are classic and tamtam"
            ),
            ("127.0.0.1:1?dialect=", "there is no dialect \"\"; there are classic and tamtam"),
            ("127.0.0.1:1?tls=1", "\"tls=1\" is no option; a listener has dialect=NAME"),
            ("127.0.0.1:1?", "\"\" is no option; a listener has dialect=NAME"),
            ("ws://127.0.0.1:1", "the only schemes are tcp:// and tls://"),
            ("tcp://127.0.0.1", "expected HOST:PORT"),
        ]
    )
    func refuses(_ text: String, _ reason: String) {
        let error = #expect(throws: ListenEndpoint.ParseError.self) { try ListenEndpoint(text) }
        #expect(error?.reason == reason)
        #expect(error?.description == "listener \"\(text)\": \(reason)")
    }
}
