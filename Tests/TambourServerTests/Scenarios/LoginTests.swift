import Dispatch
import Synchronization
import TambourFraming
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("LOGIN (19) and LOGIN2 (8)")
struct LoginTests {
    private func hello(_ server: TestServer, _ token: String) throws -> WireClient {
        let client = try server.connect()
        client.token = token
        return client
    }

    @Test("without marks it brings everything, with the mark it gave nothing")
    func fullAndDelta() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, dialog in
            try bob.send("hi", to: dialog, cid: 1)
            clock.advance(ms: 1_000)
            let full = try server.reconnect(alice).login
            #expect(full.chats.map(\.id) == [dialog])
            #expect(full.chatMarker == 0)
            #expect(full.contacts.map(\.id) == [bob.userID])
            #expect(full.profile.contact.id == alice.userID)
            #expect(full.profile.contact.phone != nil)
            #expect(full.contacts.first?.phone == nil)
            #expect(full.config != nil)
            #expect(full.time < clock.now)
            #expect(full.time >= clock.now - 1_000)

            for mark in [full.time, full.time + 1_000_000_000, .max] {
                let nothing = try server.reconnect(alice, since: mark).login
                #expect(nothing.chats.isEmpty)
                #expect(nothing.contacts.isEmpty)
                #expect(nothing.chatMarker == nil)
            }
            for mark in [Int64.min, -1, 0] {
                #expect(try server.reconnect(alice, since: mark).login.chats.count == 1)
            }

            clock.advance(ms: 1_000)
            try bob.send("there", to: dialog, cid: 2)
            let changed = try server.reconnect(alice, since: full.time).login
            #expect(changed.chats.map(\.id) == [dialog])
            #expect(changed.chats.first?.newMessages == 2)
            #expect(changed.chats.first?.lastMessage?.text == "there")
        }
    }

    @Test("a delta brings what every kind of change changed")
    func everyChange() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, dialog in
            let sent = try alice.send("1", to: dialog, cid: 1).message
            let others = try bob.send("2", to: dialog, cid: 1).message
            let unread = try alice.send("3", to: dialog, cid: 2).message
            let changes: [(String, () throws -> Void)] = [
                (
                    "edit",
                    {
                        try alice.call(
                            MsgEditRequest(chatID: dialog, messageID: sent.id, text: "e")
                        )
                    }
                ),
                (
                    "mark",
                    {
                        try bob.call(
                            ChatMarkRequest(
                                type: .readMessage,
                                chatID: dialog,
                                messageID: unread.id
                            )
                        )
                    }
                ),
                ("hide", { try alice.delete([others.id], in: dialog, forMe: true) }),
                ("remove", { try alice.delete([sent.id], in: dialog) }),
                ("send", { try bob.send("4", to: dialog, cid: 2) }),
                ("group", { _ = try bob.createGroup("G", with: [alice], cid: 3) }),
            ]
            for (name, change) in changes {
                clock.advance(ms: 1_000)
                let mark = try server.reconnect(alice).login.time
                clock.advance(ms: 1_000)
                try change()
                clock.advance(ms: 1_000)
                #expect(try server.reconnect(alice, since: mark).login.chats.count == 1, "\(name)")
            }
        }
    }

    @Test("a big group is found through its own clock")
    func bigGroup() throws {
        let clock = ManualClock()
        try withPair(limits: ["fanOutMembers": 2], environment: clock.environment) {
            server,
            alice,
            bob,
            _ in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Big", with: [bob, carol], cid: 1)
            clock.advance(ms: 1_000)
            let mark = try server.reconnect(bob).login.time
            clock.advance(ms: 1_000)
            try carol.send("hi", to: group, cid: 1)
            let delta = try server.reconnect(bob, since: mark).login
            #expect(delta.chats.map(\.id) == [group])
            #expect(delta.chats.first?.newMessages == 2)
            #expect(delta.chats.first?.participants.pairs.map(\.0) == [bob.userID])
        }
    }

    @Test("a delta that does not fit one reply is answered in full, with a marker to go on")
    func overflow() throws {
        let clock = ManualClock()
        try withServer(limits: ["maxReplyBytes": 3_000], environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let mark = try server.reconnect(alice).login.time
            let text = String(repeating: "x", count: 300)
            let others = try (1...8).map { try server.signUp("User \($0)") }
            for other in others {
                clock.advance(ms: 1)
                try other.send(text, to: alice.dialog(with: other), cid: 1)
            }
            let (client, login) = try server.reconnect(alice, since: mark)
            #expect(!login.chats.isEmpty)
            var marker = try #require(login.chatMarker)
            #expect(marker > 0)
            var seen = login.chats.map(\.id)
            while marker != 0 {
                let page = try client.call(ChatsListRequest(marker: marker))
                seen += page.chats.map(\.id)
                marker = page.marker
            }
            #expect(seen == others.reversed().map { alice.dialog(with: $0) })
        }
    }

    @Test("the chats of a full login are a page, 50 unless asked otherwise")
    func page() throws {
        try withServer(limits: ["chatsPageSize": 3]) { server in
            let alice = try server.signUp("Alice")
            for number in 1...5 {
                let other = try server.signUp("User \(number)")
                try other.send("hi", to: alice.dialog(with: other), cid: 1)
            }
            let login = try server.login(alice)
            #expect(login.chats.count == 3)
            #expect(login.chatMarker == login.chats.last?.lastEventTime)
            let more = try alice.call(LoginRequest(token: alice.token, chatsCount: 4))
            #expect(more.chats.count == 4)
            let odd = try alice.call(LoginRequest(token: alice.token, chatsCount: .min))
            #expect(odd.chats.count == 1)
        }
    }

    @Test("settings come unless the client has them")
    func config() throws {
        try withPair { _, alice, _, _ in
            let first = try alice.call(LoginRequest(token: alice.token))
            let hash = try #require(first.config?.hash)
            let second = try alice.call(LoginRequest(token: alice.token, configHash: hash))
            #expect(second.config == nil)
            let other = try alice.call(
                LoginRequest(token: alice.token, configHash: "00000000-0000-0000")
            )
            #expect(other.config?.hash == hash)
        }
    }

    @Test("a dead token gets exactly the pair of words that clients look for")
    func deadToken() throws {
        try withServer { server in
            for token in ["", "x", String(repeating: "y", count: 512)] {
                let client = try server.connect()
                let refusal = try client.refusal(of: LoginRequest(token: token))
                #expect(refusal.code == .loginToken)
                #expect(refusal.message == "FAIL_LOGIN_TOKEN")
                try client.call(PingRequest())
            }
        }
    }

    @Test("a blocked account is told so, and its connections end")
    func blocked() throws {
        try withPair { server, alice, bob, _ in
            let token = alice.token
            try server.block(alice.userID)
            try alice.waitForClose()
            let client = try server.connect()
            #expect(
                [.loginBlocked, .loginToken].contains(
                    try client.code(of: LoginRequest(token: token))
                )
            )
            try bob.call(PingRequest())
        }
    }

    @Test("what is sent in trust of a login that is refused is refused too, and nobody is hurt")
    func pipelinedBehindRefusal() throws {
        try withPair { server, alice, bob, dialog in
            let client = try server.connect()
            let login = try client.send(LoginRequest(token: "x"))
            let numbers = [
                try client.send(ChatHistoryRequest(chatID: dialog, backward: 1)),
                try client.send(MsgSendRequest(chatID: dialog, message: NewMessage(cid: 1))),
                try client.send(LogoutRequest()),
                try client.send(ChatsListRequest()),
                try client.send(SessionsInfoRequest()),
            ]
            let second = try client.send(LoginRequest(token: alice.token))
            let after = try client.send(ChatsListRequest())
            #expect(try client.reply(to: login).header.command == PacketCommand.error.rawValue)
            for number in numbers {
                let packet = try client.reply(to: number)
                let error = try ErrorReply.decode(packet.payload, limits: .standard)
                #expect(error.error == "proto.state")
            }
            _ = try client.reply(to: second, as: LoginReply.self)
            _ = try client.reply(to: after, as: ChatsListReply.self)
            try bob.call(PingRequest())
        }
    }

    @Test("a long compressed request right behind LOGIN has the limits of a member")
    func compressedBehindLogin() throws {
        try withPair { server, alice, _, dialog in
            let text = String(repeating: "x", count: 4_000)
            let elements = (0..<500).map { Element(type: "STRONG", from: Int64($0), length: 1) }
            let payload = MsgSendRequest(
                chatID: dialog,
                message: NewMessage(cid: 1, text: Text(text), elements: elements)
            ).encoded()
            #expect(payload.count > Limits.standard.maxFrameBytesBeforeLogin)
            var packets: [UInt8] = []
            let requests = [
                (Opcode.login, LoginRequest(token: alice.token).encoded()), (.msgSend, payload),
            ]
            for (number, request) in requests.enumerated() {
                encodePacket(
                    command: .request,
                    sequence: UInt16(100 + number),
                    opcode: request.0.rawValue,
                    payload: request.1,
                    compression: .large,
                    into: &packets
                )
            }
            #expect(packets.count < payload.count)
            let client = try server.connect()
            try client.send(raw: packets)
            _ = try client.reply(to: 100, as: LoginReply.self)
            #expect(try client.reply(to: 101, as: MsgSendReply.self).message.text == Text(text))
        }
    }

    @Test("a PING right behind LOGIN has the last word on whether anybody is there")
    func backgroundBehindLogin() throws {
        try withPair(limits: ["presenceOfflineDelayMs": 20]) { server, alice, bob, dialog in
            try bob.send("hi", to: dialog, cid: 1)
            try alice.call(PingRequest(interactive: false))
            #expect(try bob.next(.notifPresence, as: NotifPresence.self).presence.status == 0)
            _ = try bob.takePushes()

            let client = try server.connect()
            var packets: [UInt8] = []
            let requests = [
                (Opcode.login, LoginRequest(token: alice.token, interactive: true).encoded()),
                (.ping, PingRequest(interactive: false).encoded()),
            ]
            for (number, request) in requests.enumerated() {
                encodePacket(
                    command: .request,
                    sequence: UInt16(100 + number),
                    opcode: request.0.rawValue,
                    payload: request.1,
                    into: &packets
                )
            }
            try client.send(raw: packets)
            _ = try client.reply(to: 100, as: LoginReply.self)
            _ = try client.reply(to: 101, as: PingReply.self)
            #expect(try bob.takePushes().isEmpty)
        }
    }

    @Test("a PING behind a second LOGIN counts though that one is refused")
    func backgroundBehindRefusal() throws {
        try withPair(limits: ["presenceOfflineDelayMs": 20]) { server, alice, bob, dialog in
            try bob.send("hi", to: dialog, cid: 1)
            _ = try alice.news()
            _ = try bob.takePushes()
            let login = try alice.send(LoginRequest(token: "dead"))
            try alice.call(PingRequest(interactive: false))
            #expect(
                try alice.reply(to: login).header.command == PacketCommand.error.rawValue
            )
            #expect(try bob.next(.notifPresence, as: NotifPresence.self).presence.status == 0)
        }
    }

    @Test("a second LOGIN on one connection is served; with another's token it is refused")
    func twice() throws {
        try withPair { server, alice, bob, dialog in
            for _ in 0..<2 { #expect(try server.login(alice).profile.contact.id == alice.userID) }
            #expect(try alice.code(of: LoginRequest(token: bob.token)) == .protoState)
            try bob.send("hi", to: dialog, cid: 1)
            #expect(try alice.news().map(\.opcode) == [.notifChat, .notifMessage])
            #expect(try alice.code(of: LoginRequest(token: "dead")) == .loginToken)
            #expect(try alice.texts(dialog) == ["hi"])
        }
    }

    @Test("the fifth connection of a token sends the first away")
    func tokenCap() throws {
        try withPair { server, alice, bob, dialog in
            var connections = [alice]
            for _ in 0..<3 { connections.append(try server.reconnect(alice).client) }
            for connection in connections { try connection.call(PingRequest()) }
            connections.append(try server.reconnect(alice).client)
            try alice.waitForClose()
            try bob.send("hi", to: dialog, cid: 1)
            for connection in connections[1...] {
                #expect(try connection.next(.notifMessage, as: NotifMessage.self).message.cid == 1)
            }
        }
    }

    @Test("LOGIN2 brings the contacts under both names, or none")
    func login2() throws {
        try withPair { _, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            let all = try alice.call(Login2Request(contactsSync: 0))
            #expect(all.contacts.map(\.id) == [bob.userID])
            #expect(all.contactInfos == all.contacts)
            #expect(all.profile?.contact.id == alice.userID)
            #expect(all.config != nil)
            #expect(try alice.call(Login2Request(contactsSync: -1)).contacts.isEmpty)
            #expect(try alice.call(Login2Request(contactsSync: .max)).contacts.isEmpty)
        }
    }

    @Test("a mark for the chats alone brings all contacts, one for the contacts alone all chats")
    func oneMark() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            clock.advance(ms: 1_000)
            let time = try server.login(alice).time
            for nothing in [nil, 0, -1] as [Int64?] {
                let contacts = try alice.call(
                    LoginRequest(token: alice.token, chatsSync: time, contactsSync: nothing)
                )
                #expect(contacts.chats.isEmpty)
                #expect(contacts.contacts.map(\.id) == [bob.userID])
                let chats = try alice.call(
                    LoginRequest(token: alice.token, chatsSync: nothing, contactsSync: time)
                )
                #expect(chats.chats.map(\.id) == [dialog])
                #expect(chats.contacts.isEmpty)
            }
        }
    }

    @Test("messages that arrive during a login are in its chats or follow it: none is missed")
    func race() throws {
        try withPair { server, alice, bob, dialog in
            try bob.send("0", to: dialog, cid: 1)
            let stop = Atomic<Bool>(false)
            let done = DispatchSemaphore(value: 0)
            let last = Atomic<Int64>(1)
            let sender = Unchecked(bob)
            DispatchQueue.global().async {
                var cid: Int64 = 1
                while !stop.load(ordering: .relaxed) {
                    cid += 1
                    guard (try? sender.value.send("\(cid)", to: dialog, cid: cid)) != nil else {
                        break
                    }
                    last.store(cid, ordering: .releasing)
                }
                done.signal()
            }
            defer {
                stop.store(true, ordering: .relaxed)
                done.wait()
            }
            for round in 0..<200 {
                let client = try hello(server, alice.token)
                let login = try server.login(client)
                let known = try #require(login.chats.first?.lastMessage?.cid)
                let committed = last.load(ordering: .acquiring)
                var cids: [Int64] = []
                // Every message that was acknowledged before this point must have arrived, either
                // in the login's chats or as a push.
                cids = try client.news().filter { $0.opcode == .notifMessage }
                    .compactMap { try $0.decode(as: NotifMessage.self).message.cid }
                let reached = max(known, cids.last ?? 0)
                #expect(reached >= committed, "round \(round)")
                #expect(cids == cids.sorted())
                if let first = cids.first(where: { $0 > known }) {
                    let missed = cids.filter { $0 > known } != Array(first...reached)
                    #expect(first == known + 1 && !missed, "round \(round): \(known), \(cids)")
                }
                client.close()
            }
        }
    }
}

/// Carries a client to another thread. From then on, only that thread uses the client.
struct Unchecked<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
