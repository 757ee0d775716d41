import TambourProtocol
import TambourTesting
import Testing

extension WireClient {
    fileprivate func showReadMarks(_ shows: Bool) throws {
        let user = NameMap([(Text("SHOW_READ_MARK"), AnyValue(shows))])
        try call(ConfigRequest(settings: SettingsChange(user: user)))
    }

    @discardableResult
    fileprivate func read(_ message: Message, in chat: ChatID) throws -> ChatMarkReply {
        try call(ChatMarkRequest(type: .readMessage, chatID: chat, messageID: message.id))
    }

    /// Returns the read marks that different opcodes report to this client for a user.
    fileprivate func marks(of user: UserID, in chat: ChatID) throws -> Set<Int64?> {
        let history = try call(ChatHistoryRequest(chatID: chat, getChat: true)).chat
        let listed = try call(ChatsListRequest()).chats.first { $0.id == chat }
        let members = try call(ChatMembersRequest(chatID: chat)).members
        let login = try call(LoginRequest(token: token)).chats.first { $0.id == chat }
        return [
            try self.chat(chat)?.participants[user], history?.participants[user],
            listed?.participants[user], login?.participants[user],
            members.first { $0.contact.id == user }?.readMark,
        ]
    }

    fileprivate func views(_ message: Message, in chat: ChatID) throws -> Int64? {
        try call(MsgGetStatRequest(chatID: chat, messageIDs: [message.id])).stats[message.id]?.views
    }
}

@Suite("SHOW_READ_MARK of CONFIG (22)")
struct ReadMarkTests {
    /// Runs `body` with a group in which Alice has sent three messages. Bob has a phone and a
    /// tablet, and has read the first message.
    private func withGroup(
        limits: [String: Int] = [:],
        _ body: (
            TestServer, _ alice: WireClient, _ bob: WireClient, _ tablet: WireClient,
            ChatID, [Message]
        ) throws -> Void
    ) throws {
        try withPair(limits: limits) { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Three", with: [bob, carol], cid: 1)
            let sent = try (2...4).map { try alice.send("\($0)", to: group, cid: $0).message }
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            try bob.read(sent[0], in: group)
            _ = try (alice.takePushes(), bob.takePushes(), tablet.takePushes())
            try body(server, alice, bob, tablet, group, sent)
        }
    }

    @Test("a hidden mark is told and shown to the own devices, and to nobody else")
    func hidden() throws {
        try withGroup { server, alice, bob, tablet, group, sent in
            try bob.showReadMarks(false)
            _ = try tablet.next(.notifConfig, as: NotifConfig.self)
            let since = try server.reconnect(alice).login.time

            let reply = try bob.read(sent[1], in: group)

            #expect(reply.mark == sent[1].time)
            #expect(reply.unread == 1)
            let pushes = try tablet.only(.notifMark, as: NotifMark.self)
            #expect(pushes.map(\.mark) == [sent[1].time])
            try alice.expectSilence()
            #expect(try server.reconnect(alice, since: since).login.chats.isEmpty)
            let own = try server.reconnect(tablet, since: since).login.chats
            #expect(own.map { $0.participants[bob.userID] } == [sent[1].time])
            #expect(try alice.marks(of: bob.userID, in: group) == [sent[0].time])
            #expect(try bob.marks(of: bob.userID, in: group) == [sent[1].time])
            #expect(try [alice, bob].map { try $0.views(sent[0], in: group) } == [1, 1])
            #expect(try [alice, bob].map { try $0.views(sent[1], in: group) } == [0, 1])
        }
    }

    @Test("what was read in hiding shows with the next mark, up to that, and not before")
    func shownAgain() throws {
        try withGroup { server, alice, bob, tablet, group, sent in
            try bob.showReadMarks(false)
            try bob.read(sent[2], in: group)
            let since = try server.reconnect(alice).login.time
            try bob.showReadMarks(true)
            try alice.expectSilence()
            #expect(try server.reconnect(alice, since: since).login.chats.isEmpty)
            #expect(try alice.marks(of: bob.userID, in: group) == [sent[0].time])
            _ = try tablet.takePushes()

            let reply = try bob.read(sent[1], in: group)

            #expect(reply.mark == sent[2].time)
            let pushes = try alice.only(.notifMark, as: NotifMark.self)
            #expect(pushes.map(\.mark) == [sent[1].time])
            #expect(pushes.map(\.userID) == [bob.userID])
            try tablet.expectSilence()
            let delta = try server.reconnect(alice, since: since).login.chats
            #expect(delta.map { $0.participants[bob.userID] } == [sent[1].time])
            #expect(try alice.marks(of: bob.userID, in: group) == [sent[1].time])
            #expect(try bob.marks(of: bob.userID, in: group) == [sent[2].time])
            try bob.read(sent[1], in: group)
            try alice.expectSilence()
        }
    }

    @Test("a message of one's own shows that one was there")
    func message() throws {
        try withGroup { _, alice, bob, _, group, _ in
            try bob.showReadMarks(false)
            let own = try bob.send("mine", to: group, cid: 1).message
            #expect(try alice.marks(of: bob.userID, in: group) == [own.time])
        }
    }

    @Test("what is put back while marks are hidden stays read for others")
    func putBack() throws {
        try withGroup { _, alice, bob, tablet, group, sent in
            try bob.showReadMarks(false)
            _ = try tablet.takePushes()
            let request = ChatMarkRequest(
                type: .setAsUnread,
                chatID: group,
                messageID: sent[0].id
            )
            #expect(try bob.call(request).mark == sent[0].time - 1)
            #expect(try tablet.only(.notifMark, as: NotifMark.self).map(\.setAsUnread) == [true])
            try alice.expectSilence()
            #expect(try alice.marks(of: bob.userID, in: group) == [sent[0].time])
            #expect(try bob.marks(of: bob.userID, in: group) == [sent[0].time - 1])
        }
    }

    @Test("a chat that has changed is pushed with the own mark to who hides it")
    func announced() throws {
        try withGroup { server, alice, bob, tablet, group, sent in
            let desk = try server.signIn(phoneOf: alice, device: "desk")
            try bob.showReadMarks(false)
            try bob.read(sent[2], in: group)
            _ = try (alice.takePushes(), bob.takePushes(), tablet.takePushes())
            let reply = try alice.call(ChatUpdateRequest(chatID: group, theme: "Four"))
            #expect(reply.chat.participants[bob.userID] == sent[0].time)
            for (device, mark) in [(bob, sent[2]), (tablet, sent[2]), (desk, sent[0])] {
                let told = try device.takePushes().filter { $0.opcode == .notifChat }
                let marks = try told.map {
                    try $0.decode(as: NotifChat.self).chat.participants[bob.userID]
                }
                #expect(marks == [mark.time])
            }
            try bob.call(ChatUpdateRequest(chatID: group, theme: "Three"))
            let told = try alice.takePushes().filter { $0.opcode == .notifChat }
            #expect(told.count == 1)
        }
    }

    @Test("in a chat above the threshold everybody counts as a reader")
    func big() throws {
        try withGroup(limits: ["fanOutMembers": 2]) { _, alice, bob, tablet, group, sent in
            try bob.showReadMarks(false)
            _ = try tablet.takePushes()
            try bob.read(sent[1], in: group)
            #expect(try tablet.only(.notifMark, as: NotifMark.self).count == 1)
            try alice.expectSilence()
            #expect(try alice.views(sent[1], in: group) == 1)
            #expect(try alice.marks(of: bob.userID, in: group) == [nil])
        }
    }

    @Test("a hidden mark is in no number over a few, whatever the chat is or was")
    func few() throws {
        try withServer(limits: ["fanOutMembers": 3]) { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let others = try (0..<3).map { try server.signUp("Reader \($0)") }
            let channel = try alice.createGroup("News", with: [bob], type: "CHANNEL", cid: 1)
            let group = try alice.createGroup("Shrunk", with: [bob] + others, cid: 2)
            let remove = ChatMembersUpdateRequest(
                chatID: group,
                userIDs: others.map(\.userID),
                operation: .remove
            )
            try alice.call(remove)
            let crowd = try alice.createGroup(
                "Crowd",
                with: [bob] + others,
                type: "CHANNEL",
                cid: 3
            )
            for (chat, cid) in [(channel, Int64(4)), (group, 5)] {
                let sent = try (0...1).map {
                    try alice.send("\($0)", to: chat, cid: 10 * cid + $0).message
                }
                try bob.showReadMarks(true)
                try bob.read(sent[0], in: chat)
                try bob.showReadMarks(false)
                try bob.read(sent[1], in: chat)
                #expect(try sent.map { try alice.views($0, in: chat) } == [1, 0])
                #expect(try sent.map { try bob.views($0, in: chat) } == [1, 1])
            }
            let post = try alice.send("to many", to: crowd, cid: 6).message
            try bob.read(post, in: crowd)
            #expect(try alice.views(post, in: crowd) == 1)
        }
    }

    @Test("what is no boolean is refused, and null shows the marks again")
    func values() throws {
        try withGroup { _, alice, bob, _, group, sent in
            try bob.showReadMarks(false)
            for value in [AnyValue(Text("true")), AnyValue(Int64(1))] {
                let user = NameMap([(Text("SHOW_READ_MARK"), value)])
                let request = ConfigRequest(settings: SettingsChange(user: user))
                #expect(try bob.code(of: request) == .protoPayload)
            }
            try bob.read(sent[1], in: group)
            #expect(try alice.marks(of: bob.userID, in: group) == [sent[0].time])
            let null = NameMap([(Text("SHOW_READ_MARK"), AnyValue(unchecked: Bytes([0xC0])))])
            try bob.call(ConfigRequest(settings: SettingsChange(user: null)))
            try bob.read(sent[2], in: group)
            #expect(try alice.marks(of: bob.userID, in: group) == [sent[2].time])
        }
    }
}
