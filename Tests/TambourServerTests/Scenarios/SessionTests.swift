import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("PING (1)")
struct PingTests {
    @Test("is answered with an empty map, before SESSION_INIT too")
    func always() throws {
        try withServer { server in
            let client = try WireClient(address: server.address)
            let reply = try client.reply(to: client.send(.ping, payload: []))
            #expect(reply.header.command == PacketCommand.ok.rawValue)
            #expect(reply.header.opcode == Opcode.ping.rawValue)
            #expect(reply.payload == [0x80])
        }
    }

    @Test("the number of a request comes back byte by byte, whatever its version")
    func echo() throws {
        try withServer { server in
            let client = try WireClient(address: server.address)
            for (version, sequence) in [(10, 0), (11, 0xFFFF), (10, 0x00FF), (11, 0x8000)] {
                var packet: [UInt8] = []
                encodePacket(
                    version: UInt8(version),
                    command: .request,
                    sequence: UInt16(sequence),
                    opcode: Opcode.ping.rawValue,
                    payload: [0x80],
                    into: &packet
                )
                try client.send(raw: packet)
                let reply = try client.reply(to: UInt16(sequence))
                #expect(reply.header.sequence == UInt16(sequence))
                #expect(reply.header.version == 10)
            }
        }
    }
}

@Suite("LOG (5)")
struct LogTests {
    @Test("events are counted by the types of the specification, the others together")
    func counted() throws {
        try withPair { server, alice, _, _ in
            let events = [LogEvent(type: "NAV"), LogEvent(type: "PERF"), LogEvent(type: "NAV")]
            try alice.call(LogRequest(events: events))
            try alice.call(
                LogRequest(events: (0..<1000).map { LogEvent(type: Text("+7999\($0)")) })
            )
            #expect(server.server.metrics.logEventCounts == ["NAV": 2, "PERF": 1, "other": 1000])
        }
    }

    private func timing(_ spans: [(String, Int64)]) -> LogEvent {
        let list = spans.map { name, ms in
            AnyValue(
                NameMap<AnyValue>([("name", AnyValue(Text(name))), ("duration", AnyValue(ms))])
            )
        }
        return LogEvent(
            type: "PERF",
            event: "open_chat_to_render",
            params: AnyValue(NameMap<AnyValue>([("spans", AnyValue(list))]))
        )
    }

    /// Returns a user who has logged in with an app of this version.
    private func user(_ server: TestServer, version: String?) throws -> WireClient {
        let client = try server.signUp("User")
        try client.call(
            SessionInitRequest(userAgent: UserAgent(deviceType: "ANDROID", appVersion: version))
        )
        return client
    }

    @Test("timings become histograms by span and version")
    func timings() throws {
        try withServer { server in
            let alice = try user(server, version: "26.37.1-beta")
            let spans: [(String, Int64)] = [("open_chat_to_render", 214), ("messages_render", 83)]
            try alice.call(LogRequest(events: [timing(spans)]))
            try alice.call(LogRequest(events: [timing([("messages_render", 100)])]))
            try alice.call(LogRequest(events: [timing([("messages_render", 60_000)])]))
            let admin = AdminClient(dataDirectory: server.dataDirectory)
            var lines: [String] = []
            _ = try admin.run(.metrics) { lines.append($0) }
            let mine = lines.filter { $0.contains("span=\"messages_render\"") }
            let name = "tambour_client_timing_seconds"
            let labels = "span=\"messages_render\",version=\"26.37.1\""
            #expect(mine.count == ClientTimings.bounds.count + 3)
            #expect(mine.contains("\(name)_bucket{\(labels),le=\"0.05\"} 0"))
            #expect(mine.contains("\(name)_bucket{\(labels),le=\"0.1\"} 2"))
            #expect(mine.contains("\(name)_bucket{\(labels),le=\"30.0\"} 2"))
            #expect(mine.contains("\(name)_bucket{\(labels),le=\"+Inf\"} 3"))
            #expect(mine.contains("\(name)_sum{\(labels)} 60.183"))
            #expect(mine.contains("\(name)_count{\(labels)} 3"))
        }
    }

    @Test("no client makes a label: unknown spans, versions and strangers share one")
    func labels() throws {
        try withServer(limits: ["maxTelemetryVersions": 2]) { server in
            let words: [(String, Int64)] = [("Alice", 5), ("+79990000001", 5), ("a\"b\nc", 5)]
            for version in [nil, "beta", "1.2.3.4.5", "7999000.1", "1.0", "2", "3"] {
                let client = try user(server, version: version)
                try client.call(LogRequest(events: [timing(words)]))
            }
            let stranger = try WireClient(address: server.address)
            try stranger.call(SessionInitRequest(userAgent: UserAgent(appVersion: "9.9")))
            try stranger.call(LogRequest(events: [timing([("messages_render", 5)])]))
            let counts = server.server.metrics.timings.histograms.mapValues(\.count)
            #expect(
                counts == [
                    .init(span: "other", version: "1"): 3, .init(span: "other", version: "2"): 3,
                    .init(span: "other", version: "other"): 15,
                    .init(span: "messages_render", version: "other"): 1,
                ]
            )
        }
    }

    @Test("timings that make no sense are skipped, and those beside them count")
    func nonsense() throws {
        try withServer { server in
            let alice = try user(server, version: "1")
            let day: Int64 = 86_400_000
            let items = AnyValue([AnyValue(1 as Int64), AnyValue([AnyValue]())])
            let odd: [AnyValue] = [
                AnyValue([AnyValue(1 as Int64)]), AnyValue("spans" as Text),
                AnyValue(NameMap<AnyValue>([("spans", AnyValue(7 as Int64))])),
                AnyValue(NameMap<AnyValue>([("spans", items)])),
            ]
            let spans = [-1, Int64.min, day + 1, .max, day, 0].map { ("messages_render", $0) }
            try alice.call(
                LogRequest(
                    events: odd.map { LogEvent(type: "PERF", params: $0) } + [timing(spans)]
                )
            )
            let counts = server.server.metrics.timings.histograms.mapValues(\.count)
            #expect(counts == [.init(span: "messages_render", version: "1"): 2])
        }
    }
}

@Suite("SESSION_INIT (6)")
struct SessionInitTests {
    @Test("known capabilities are echoed, unknown ones are not, absent ones are absent")
    func capabilities() throws {
        try withServer { server in
            let client = try WireClient(address: server.address)
            let reply = try client.call(
                SessionInitRequest(
                    capabilities: ["from-the-future", "history-more", "lz4-large"],
                    features: ["unknown"]
                )
            )
            #expect(reply.capabilities == ["lz4-large", "history-more"])
            #expect(reply.features == [])
            let classic = try WireClient(address: server.address)
            let plain = try classic.call(SessionInitRequest())
            #expect(plain.capabilities == nil)
            #expect(plain.features == nil)
        }
    }

    @Test("an empty payload is enough of a hello")
    func empty() throws {
        try withServer { server in
            let client = try WireClient(address: server.address)
            let number = try client.send(.sessionInit, payload: [])
            _ = try client.reply(to: number, as: SessionInitReply.self)
        }
    }

    @Test("everything else has to wait for it, and most for LOGIN")
    func states() throws {
        try withServer(limits: ["maxSoftErrors": 1_000]) { server in
            let client = try WireClient(address: server.address)
            #expect(try client.code(of: LoginRequest(token: "x")) == .protoState)
            #expect(try client.code(of: LogRequest()) == .protoState)
            try client.call(SessionInitRequest())
            #expect(try client.code(of: LoginRequest(token: "x")) == .loginToken)
            let others = (0...UInt16(400)).compactMap { Opcode(rawValue: $0).info }
                .filter { $0.isServed && $0.kind != nil && $0.states == .loggedIn }
            #expect(others.count > 10)
            for info in others {
                let refusal = try client.refusal(info.opcode, payload: [0x80])
                #expect(refusal.error == "proto.state", "\(info.name)")
            }
        }
    }
}

@Suite("LOGOUT (20)")
struct LogoutTests {
    @Test("is answered, then every connection of the token ends and the token is dead")
    func logout() throws {
        try withPair { server, alice, bob, _ in
            let second = try server.reconnect(alice).client
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            try alice.call(LogoutRequest())
            try alice.waitForClose()
            try second.waitForClose()
            try tablet.call(PingRequest())
            let again = try server.connect()
            let refusal = try again.refusal(of: LoginRequest(token: alice.token))
            #expect(refusal.code == .loginToken)
            #expect(refusal.message == "FAIL_LOGIN_TOKEN")
            try bob.call(PingRequest())
        }
    }
}

@Suite("SESSIONS_INFO (96)")
struct SessionsInfoTests {
    @Test("the asking one is first and says what it said of itself")
    func list() throws {
        try withPair { server, alice, _, _ in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let sessions = try tablet.call(SessionsInfoRequest()).sessions
            #expect(sessions.count == 2)
            #expect(sessions.map(\.current) == [true, false])
            #expect(sessions.map(\.info) == ["tablet", "phone"])
            #expect(sessions[0].client == "DESKTOP 1")
            #expect(sessions[0].location == "127.0.0.1")
            #expect(abs(sessions[0].time - wallNow) < 60_000)
        }
    }
}

@Suite("SESSIONS_CLOSE (97)")
struct SessionsCloseTests {
    @Test("kills the live connections of the other sessions, and keeps the own token")
    func close() throws {
        try withPair { server, alice, bob, _ in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let reply = try laptop.call(SessionsCloseRequest())
            #expect(reply.token == laptop.token)
            try alice.waitForClose()
            try tablet.waitForClose()
            #expect(try laptop.call(SessionsInfoRequest()).sessions.count == 1)
            let again = try server.connect()
            #expect(try again.code(of: LoginRequest(token: tablet.token)) == .loginToken)
            _ = try server.reconnect(laptop)
            try bob.call(PingRequest())
        }
    }

    @Test("with an id, ends that session alone, and logins in progress")
    func closeOne() throws {
        try withPair { server, alice, bob, _ in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let sessions = try laptop.call(SessionsInfoRequest()).sessions
            let lost = try #require(sessions.first { $0.info == "tablet" }?.id)
            let own = try #require(sessions.first { $0.current }?.id)
            let theirs = try #require(try bob.call(SessionsInfoRequest()).sessions[0].id)
            let screen = try server.connect()
            let link = try screen.call(GetQrRequest())
            try alice.call(AuthQrApproveRequest(qrLink: link.qrLink))

            #expect(try laptop.code(of: SessionsCloseRequest(id: own)) == .notAllowed)
            try laptop.call(SessionsCloseRequest(id: theirs))
            try bob.call(PingRequest())
            #expect(
                try screen.call(GetQrStatusRequest(trackID: link.trackID)).status.loginAvailable
            )
            #expect(try laptop.call(SessionsCloseRequest(id: lost)).token == laptop.token)
            try tablet.waitForClose()
            let again = try server.connect()
            #expect(try again.code(of: LoginRequest(token: tablet.token)) == .loginToken)
            let status = GetQrStatusRequest(trackID: link.trackID)
            #expect(try screen.code(of: status) == .trackNotFound)
            try laptop.call(SessionsCloseRequest(id: lost))
            let left = try alice.call(SessionsInfoRequest()).sessions.map(\.info).sorted()
            #expect(left == ["laptop", "phone"])
        }
    }

    @Test("a session that always has a request under way is ended all the same")
    func busy() throws {
        try withPair { server, alice, _, _ in
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let request = ChatsListRequest()
            for _ in 0..<100 { try alice.send(request) }
            try laptop.call(SessionsCloseRequest())
            // Send more requests than the server answers before it closes the connection. Sending
            // then fails.
            #expect(throws: WireClient.Failure.self) {
                for _ in 0..<1_000_000 {
                    try alice.send(request)
                    try alice.call(PingRequest())
                }
            }
        }
    }
}

@Suite("Acknowledgements (128 as a request, 303)")
struct AcknowledgementTests {
    @Test("are answered with an empty map")
    func answered() throws {
        try withPair { _, alice, _, dialog in
            let payload = NotifMessageRequest(chatID: dialog, messageID: MessageID(1)).encoded()
            let reply = try alice.reply(to: alice.send(.notifMessage, payload: payload))
            #expect(reply.header.command == PacketCommand.ok.rawValue)
            #expect(reply.payload == [0x80])
            try alice.call(MsgDeliveryRequest())
        }
    }

    @Test("what a client sends as a reply is not answered")
    func replies() throws {
        try withPair { _, alice, _, _ in
            for command in [PacketCommand.ok, .notFound, .error] {
                var packet: [UInt8] = []
                encodePacket(
                    command: command,
                    sequence: 7_777,
                    opcode: Opcode.notifMessage.rawValue,
                    payload: [0xC1, 0xFF],
                    into: &packet
                )
                try alice.send(raw: packet)
            }
            let before = alice.receivedPackets
            try alice.call(PingRequest())
            #expect(alice.receivedPackets == before + 1)
        }
    }
}
