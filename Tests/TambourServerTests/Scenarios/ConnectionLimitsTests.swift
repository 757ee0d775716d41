import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("Limits of a connection")
struct ConnectionLimitsTests {
    @Test("who says nothing is closed")
    func noHello() throws {
        try withServer(limits: ["sessionInitTimeoutMs": 50]) { server in
            try WireClient(address: server.address).waitForClose()
        }
    }

    @Test("who does not log in is closed, pings or not")
    func noLogin() throws {
        try withServer(limits: ["loginTimeoutMs": 100]) { server in
            let client = try server.connect()
            #expect(throws: WireClient.Failure.self) {
                let clock = ContinuousClock()
                let end = clock.now + .seconds(20)
                while clock.now < end { try client.call(PingRequest()) }
            }
        }
    }

    @Test("a frame that does not end is closed")
    func partialFrame() throws {
        try withServer(limits: ["partialFrameTimeoutMs": 50]) { server in
            let client = try server.connect()
            try client.send(raw: [10, 0, 0])
            try client.waitForClose()
        }
    }

    @Test("frames that end, though never together with what came, are not closed")
    func neverAligned() throws {
        try withServer(limits: ["partialFrameTimeoutMs": 300]) { server in
            let client = try server.connect()
            var ping: [UInt8] = []
            encodePacket(
                command: .request,
                sequence: 500,
                opcode: Opcode.ping.rawValue,
                payload: [0x80],
                into: &ping
            )
            // Each write contains the end of one frame and the start of the next. The client writes
            // for three times the deadline of a frame.
            try client.send(raw: Array(ping[..<4]))
            let clock = ContinuousClock()
            let end = clock.now + .milliseconds(1_000)
            while clock.now < end {
                try client.send(raw: Array(ping[4...] + ping[..<4]))
                _ = try client.reply(to: 500)
            }
            try client.send(raw: Array(ping[4...]))
            _ = try client.reply(to: 500)
        }
    }

    @Test("an idle connection is closed, one that pings is not")
    func idle() throws {
        try withPair(limits: ["idleTimeoutMs": 1_500]) { _, alice, bob, _ in
            let clock = ContinuousClock()
            let end = clock.now + .milliseconds(3_000)
            while clock.now < end { try bob.call(PingRequest()) }
            try alice.waitForClose()
            try bob.call(PingRequest())
        }
    }

    @Test("who has ended its side gets every answer, then the connection ends")
    func halfClosed() throws {
        try withPair { _, alice, _, dialog in
            var numbers: [UInt16] = []
            for cid in Int64(1)...20 {
                let message = NewMessage(cid: cid, text: "x")
                numbers.append(try alice.send(MsgSendRequest(chatID: dialog, message: message)))
                numbers.append(try alice.send(ChatHistoryRequest(chatID: dialog, backward: 1)))
            }
            // Send the first bytes of a packet and nothing more.
            try alice.send(raw: [10, 0])
            alice.finishSending()
            for number in numbers { #expect(try alice.reply(to: number).header.command == 1) }
            try alice.waitForClose()
            #expect(alice.hasEndedCleanly)
        }
    }

    @Test("who has sent more than is served at once, and then ended its side, gets every answer")
    func halfClosedWithMuchToDo() throws {
        try withPair(limits: ["maxRequestsInFlight": 8]) { server, alice, _, dialog in
            for round in Int64(0)..<20 {
                // The repetitions make it likely that the stream ends while the server has paused
                // reading.
                let (client, _) = try server.reconnect(alice)
                let numbers = try (Int64(1)...300).map { index in
                    let message = NewMessage(cid: round * 300 + index, text: "x")
                    return try client.send(MsgSendRequest(chatID: dialog, message: message))
                }
                client.finishSending()
                for number in numbers { _ = try client.reply(to: number) }
                try client.waitForClose()
            }
        }
    }

    @Test("nonsense is answered a limited number of times, then the connection ends")
    func softErrors() throws {
        try withServer(limits: ["maxSoftErrors": 3]) { server in
            let client = try server.connect()
            let unknown = Opcode(rawValue: 999)
            for _ in 0..<3 {
                #expect(try client.refusal(unknown, payload: [0x80]).error == "proto.opcode")
            }
            #expect(try client.refusal(.auth, payload: [0xC1]).error == "proto.payload")
            try client.waitForClose()
        }
    }

    @Test("what is known and not served answers proto.opcode")
    func notServed() throws {
        try withPair { _, alice, _, _ in
            for opcode in [Opcode(rawValue: 25), Opcode(rawValue: 240), .notifTyping] {
                let refusal = try alice.refusal(opcode, payload: [0x80])
                #expect(refusal.error == "proto.opcode")
                #expect(refusal.message != "")
            }
        }
    }

    @Test("a slow reader is closed, hurts nobody, and its next login heals it")
    func slowReader() throws {
        let limits = ["maxOutboundBytes": 65_536, "maxOutboundPushBytes": 32_768]
        try withPair(limits: limits) { server, alice, bob, dialog in
            // Bob reads nothing. The kernel's buffers must fill first, so send texts that do not
            // compress.
            let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
            var sent: Int64 = 0
            while server.server.metrics.slowReadersClosed.count == 0, sent < 20_000 {
                let numbers = try (0..<50).map { _ in
                    sent += 1
                    let text = String((0..<4_000).map { _ in letters.randomElement() ?? "A" })
                    return try alice.send(
                        MsgSendRequest(
                            chatID: dialog,
                            message: NewMessage(cid: sent, text: Text(text))
                        )
                    )
                }
                for number in numbers { _ = try alice.reply(to: number) }
            }
            #expect(server.server.metrics.slowReadersClosed.count == 1)
            try bob.waitForClose()
            let (client, login) = try server.reconnect(bob)
            #expect(login.chats.first?.lastMessage?.cid == sent)
            #expect(login.chats.first?.newMessages == sent)
            try alice.send("more", to: dialog, cid: sent + 1)
            #expect(try client.next(.notifMessage, as: NotifMessage.self).message.text == "more")
        }
    }

    @Test("a client that reads gets a push that is longer than the backlog may be")
    func longPush() throws {
        try withPair(limits: ["maxOutboundPushBytes": 2_000]) { server, alice, bob, dialog in
            try alice.send("first", to: dialog, cid: 1)
            // No bytes may be waiting when the long push arrives.
            _ = try bob.takePushes()
            let text = (0..<800).map { "\($0 &* 2_654_435_761 % 9_973)" }.joined()
            try alice.send(text, to: dialog, cid: 2)
            #expect(try bob.next(.notifMessage, as: NotifMessage.self).message.cid == 2)
            #expect(server.server.metrics.slowReadersClosed.count == 0)
        }
    }

    @Test("a push that cannot be sent closes its session, and nobody else's")
    func pushOverLimit() throws {
        try withPair(limits: ["maxReplyBytes": 1_000]) { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let value = AnyValue(Text(String(repeating: "x", count: 200)))
            let settings = NameMap(
                (0..<100).map { (Text("\($0)\(String(repeating: "n", count: 240))"), value) }
            )
            // The settings of one chat fit into a packet, but the settings of all three chats do
            // not.
            let group = try alice.createGroup("Group", with: [bob], cid: 1)
            let chats = IDMap([(ChatID(0), settings), (dialog, settings), (group, settings)])
            let change = ConfigRequest(settings: SettingsChange(chats: chats))
            #expect(try alice.code(of: change) == .internalError)
            try tablet.waitForClose()
            #expect(server.server.metrics.pushesOverLimit.count == 1)
            #expect(server.server.metrics.repliesOverLimit.count == 1)
            try alice.call(PingRequest())
            try bob.call(PingRequest())
        }
    }

    @Test("who asks and does not read the answers is closed")
    func deafAsker() throws {
        let limits = ["maxOutboundBytes": 65_536]
        try withPair(limits: limits) { server, alice, bob, dialog in
            for cid in Int64(1)...50 {
                try alice.send(String(repeating: "\(cid % 10)", count: 4_000), to: dialog, cid: cid)
            }
            let request = ChatHistoryRequest(chatID: dialog, backward: 50)
            #expect(throws: WireClient.Failure.self) {
                for _ in 0..<200_000 { try alice.send(request) }
                try alice.waitForClose()
                throw WireClient.Failure.closed
            }
            #expect(server.server.metrics.slowReadersClosed.count == 1)
            try bob.call(PingRequest())
        }
    }

    @Test("frames of strangers are small")
    func beforeLogin() throws {
        try withPair(limits: ["maxFrameBytesBeforeLogin": 1_000]) { server, alice, _, _ in
            let payload = LogRequest(
                events: (0..<40).map { LogEvent(type: Text(String(repeating: "\($0)", count: 30))) }
            ).encoded()
            #expect(payload.count > 1_000)
            let number = try alice.send(.log, payload: payload)
            _ = try alice.reply(to: number, as: LogReply.self)
            let stranger = try server.connect()
            let refusal = try stranger.refusal(.log, payload: payload)
            #expect(refusal.error == "proto.frame")
            try stranger.waitForClose()
        }
    }
}
