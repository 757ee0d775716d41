import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// Runs `body` with Alice's channel, Bob, who reads the channel, and Carol, who does not. No pushes
/// are pending.
private func withChannel(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, WireClient, WireClient, WireClient, ChatID) throws -> Void
) throws {
    try withPair(limits: overrides) { server, alice, bob, _ in
        let carol = try server.signUp("Carol")
        let channel = try alice.createGroup("Drum news", with: [bob], type: "CHANNEL", cid: 1)
        _ = try (alice.takePushes(), bob.takePushes(), carol.takePushes())
        try body(server, alice, bob, carol, channel)
    }
}

extension WireClient {
    fileprivate func members(
        _ operation: MemberOperation,
        _ others: WireClient...,
        in chat: ChatID,
        type: MemberType? = nil,
        permissions: Int64? = nil
    ) -> ChatMembersUpdateRequest {
        ChatMembersUpdateRequest(
            chatID: chat,
            userIDs: others.map(\.userID),
            operation: operation,
            type: type,
            permissions: permissions
        )
    }

    fileprivate func publish(_ chat: ChatID, as name: Text) throws {
        try call(ChatUpdateRequest(chatID: chat, access: .public, link: name))
    }

    func ask(for chat: ChatID) throws {
        let options = NameMap([(Text("JOIN_REQUEST"), true)])
        try call(ChatUpdateRequest(chatID: chat, options: options))
    }

    fileprivate func waiting(in chat: ChatID) throws -> [UserID] {
        try call(ChatMembersRequest(chatID: chat, type: .joinRequest)).members.map(\.contact.id)
    }
}

@Suite("Channels")
struct ChannelTests {
    @Test("is made by a message, and says so to those who are in it")
    func made() throws {
        try withPair { _, alice, bob, _ in
            let control = NewAttach(
                type: .control,
                title: "Drum news",
                event: "new",
                chatType: "CHANNEL",
                userIDs: [bob.userID]
            )
            let request = MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
            let reply = try alice.call(request)
            let chat = try #require(reply.chat)
            #expect(chat.type == .channel)
            #expect(chat.access == .private)
            #expect(chat.participantsCount == 2)
            #expect(chat.participants.pairs.map(\.0) == [alice.userID])
            #expect(reply.message.sender == nil)
            let event = try reply.message.attaches.value(limits: .standard).first
            #expect(event?.chatType == .channel)
            #expect(event?.userIDs == nil)
            #expect(try alice.call(request).chatID == reply.chatID)
            let news = try bob.news()
            #expect(news.map(\.opcode) == [.notifChat, .notifMessage])
            #expect(try news[0].decode(as: NotifChat.self).chat.type == .channel)
            let wrong = NewAttach(type: .control, title: "x", event: "new", chatType: "DIALOG")
            let refused = MsgSendRequest(message: NewMessage(cid: 2, attaches: [wrong]))
            #expect(try alice.code(of: refused) == .errorMessageInvalid)
        }
    }

    @Test("posts reach everybody without a sender; who may not post is refused")
    func posts() throws {
        try withChannel { server, alice, bob, _, channel in
            let dave = try server.signUp("Dave")
            try alice.call(alice.members(.add, dave, in: channel))
            try alice.call(
                alice.members(.add, dave, in: channel, type: .admin, permissions: 256)
            )
            _ = try (alice.takePushes(), bob.takePushes(), dave.takePushes())
            for (author, cid) in [(alice, Int64(2)), (dave, 3)] {
                let sent = try author.send("tonight", to: channel, cid: cid).message
                #expect(sent.sender == nil)
                #expect(sent.type == "CHANNEL")
                for reader in [alice, bob, dave] where reader.userID != author.userID {
                    let heard = try reader.only(.notifMessage, as: NotifMessage.self)
                    #expect(heard.map(\.message.id) == [sent.id])
                    #expect(heard.map(\.message.sender) == [nil])
                }
            }
            let post = MsgSendRequest(chatID: channel, message: NewMessage(cid: 4, text: "me too"))
            #expect(try bob.code(of: post) == .notAllowed)
            #expect(try bob.history(channel).messages?.compactMap(\.sender) == [])
            #expect(try bob.chat(channel)?.newMessages == 3)
            // Typing shows that the user writes a post. Readers cannot post, so the server ignores
            // it.
            try bob.call(MsgTypingRequest(chatID: channel))
            try alice.expectSilence()
        }
    }

    @Test("a post of others is edited by who has the permission")
    func edited() throws {
        try withChannel { _, alice, bob, carol, channel in
            try alice.call(alice.members(.add, carol, in: channel))
            let post = try alice.send("first", to: channel, cid: 2).message.id
            func edit(_ text: Text) -> MsgEditRequest {
                MsgEditRequest(chatID: channel, messageID: post, text: text)
            }
            #expect(try bob.code(of: edit("mine")) == .notAllowed)
            try alice.call(
                alice.members(.add, carol, in: channel, type: .admin, permissions: 512)
            )
            _ = try (alice.takePushes(), bob.takePushes())
            try carol.call(edit("second"))
            let heard = try bob.only(.notifMessage, as: NotifMessage.self)
            #expect(heard.map(\.message.text) == ["second"])
            #expect(heard.map(\.message.status) == [.edited])
            try alice.call(
                alice.members(.add, carol, in: channel, type: .admin, permissions: 256)
            )
            #expect(try carol.code(of: edit("third")) == .notAllowed)
        }
    }

    @Test("who comes and who goes is told, and nobody else")
    func members() throws {
        try withChannel { server, alice, bob, carol, channel in
            let (laptop, login) = try server.reconnect(bob, device: "laptop")
            let before = try alice.history(channel).messages?.count
            let chat = try alice.call(alice.members(.add, carol, in: channel)).chat
            #expect(chat.participantsCount == 3)
            let told = try carol.only(.notifChat, as: NotifChat.self)
            #expect(told.map(\.chat.id) == [channel])
            #expect(told.map(\.chat.participants.count) == [0])
            try bob.expectSilence()
            #expect(try carol.code(of: ChatMembersRequest(chatID: channel)) == .notAllowed)
            let all = try alice.call(ChatMembersRequest(chatID: channel)).members
            #expect(all.map(\.contact.id) == [alice.userID, bob.userID, carol.userID])

            try alice.call(alice.members(.remove, carol, in: channel))
            let gone = try carol.only(.notifChat, as: NotifChat.self)
            #expect(gone.map(\.chat.status) == [.removed])
            #expect(gone.map(\.chat.type) == [.channel])
            #expect(try carol.code(of: ChatHistoryRequest(chatID: channel)) == .chatNotFound)
            try bob.call(ChatLeaveRequest(chatID: channel))
            let left = try laptop.only(.notifChat, as: NotifChat.self)
            #expect(left.map(\.chat.status) == [.removed])
            try alice.expectSilence()
            #expect(try alice.history(channel).messages?.count == before)
            #expect(try alice.chat(channel)?.participantsCount == 1)
            let delta = try server.reconnect(bob, since: login.time).login.chats
            #expect(delta.map(\.status) == [.removed])
            #expect(try alice.code(of: ChatLeaveRequest(chatID: channel)) == .notAllowed)
        }
    }

    @Test("has more members than a group may have")
    func large() throws {
        try withChannel(limits: ["maxGroupMembers": 2]) { _, alice, _, carol, channel in
            let chat = try alice.call(alice.members(.add, carol, in: channel)).chat
            #expect(chat.participantsCount == 3)
        }
    }

    @Test("a post finds the few who are online among many readers, once each")
    func fewOnline() throws {
        try withChannel { server, alice, bob, carol, channel in
            var readers: [UserID] = []
            let isDone = try AdminClient(dataDirectory: server.dataDirectory).run(
                .createUsers(count: 300, firstPhone: 79_100_000_000)
            ) { line in
                readers.append(UserID(Int64(String(line.split(separator: " ")[1])) ?? 0))
            }
            #expect(isDone)
            for some in [readers.prefix(150), readers.suffix(150)] {
                server.server.messenger.foundPeople.note(some, by: alice.userID)
                try alice.call(
                    ChatMembersUpdateRequest(
                        chatID: channel,
                        userIDs: Array(some),
                        operation: .add
                    )
                )
            }
            let laptop = try server.reconnect(bob, device: "laptop").client
            _ = try (alice.takePushes(), bob.takePushes())
            let post = try alice.send("tonight", to: channel, cid: 2).message.id
            for device in [bob, laptop] {
                let heard = try device.only(.notifMessage, as: NotifMessage.self)
                #expect(heard.map(\.message.id) == [post])
            }
            try alice.expectSilence()
            try carol.expectSilence()
        }
    }

    @Test("the key of a post is for its author alone")
    func keys() throws {
        try withChannel { server, alice, bob, _, channel in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let reply = try alice.send("tonight", to: channel, cid: 4_242)
            #expect(reply.message.cid == 4_242)
            #expect(
                try tablet.only(.notifMessage, as: NotifMessage.self).map(\.message.cid) == [4_242]
            )
            #expect(try bob.only(.notifMessage, as: NotifMessage.self).map(\.message.cid) == [nil])
            let post = reply.message.id
            func keys(_ client: WireClient) throws -> Set<Int64?> {
                let history = try client.history(channel).messages ?? []
                let got = try client.call(MsgGetRequest(chatID: channel, messageIDs: [post]))
                return [
                    history.last?.cid, got.messages.first?.cid,
                    try client.chat(channel)?.lastMessage?.cid,
                ]
            }
            #expect(try keys(alice) == [4_242])
            #expect(try keys(bob) == [nil])
            #expect(try alice.send("tonight", to: channel, cid: 4_242).message.cid == 4_242)
            let link = NewLink(type: .forward, messageID: post, chatID: channel)
            let forward = NewMessage(cid: 5, link: link)
            let copy = try bob.call(MsgSendRequest(chatID: ChatID(0), message: forward)).message
            let original = try #require(try copy.link?.value(limits: .standard).message)
            #expect(original.text == "tonight")
            #expect(original.cid == nil)
            let edit = MsgEditRequest(chatID: channel, messageID: post, text: "tomorrow")
            #expect(try alice.call(edit).message.cid == 4_242)
            #expect(try bob.only(.notifMessage, as: NotifMessage.self).map(\.message.cid) == [nil])
        }
    }

    @Test("what was posted while one was away is in the delta, read or not")
    func away() throws {
        try withChannel { server, alice, bob, _, channel in
            let mark = try server.reconnect(bob).login.time
            try alice.send("one", to: channel, cid: 2)
            let second = try alice.send("two", to: channel, cid: 3).message.id
            let delta = try server.reconnect(bob, since: mark)
            #expect(delta.login.chats.map(\.id) == [channel])
            #expect(delta.login.chats.first?.newMessages == 3)
            try bob.call(
                ChatMarkRequest(type: .readMessage, chatID: channel, messageID: second)
            )
            // The server tells nobody else what the reader has read.
            try alice.expectSilence()
            #expect(try alice.chat(channel)?.participants.pairs.map(\.0) == [alice.userID])
            #expect(try bob.chat(channel)?.newMessages == 0)
            let stats = try alice.call(MsgGetStatRequest(chatID: channel, messageIDs: [second]))
            #expect(stats.stats.pairs.map(\.1.views) == [1])
        }
    }
}

@Suite("Public names and links")
struct PublicNameTests {
    @Test("a chat gets a name, is joined by it in all its forms, and gives it up")
    func named() throws {
        try withChannel { server, alice, bob, carol, channel in
            try alice.call(ChatUpdateRequest(chatID: channel, revokePrivateLink: true))
            _ = try bob.takePushes()
            try alice.publish(channel, as: "https://example.org/Drum_News")
            let seen = try #require(try bob.chat(channel))
            #expect(seen.access == .public)
            #expect(seen.link == "drum_news")
            let told = try bob.only(.notifChat, as: NotifChat.self)
            #expect(told.map(\.chat.link) == ["drum_news"])
            #expect(told.map(\.chat.access) == [.public])
            let again = ChatUpdateRequest(chatID: channel, revokePrivateLink: true)
            #expect(try alice.code(of: again) == .protoPayload)

            let look = try #require(try carol.call(LinkInfoRequest(link: "@drum_news")).chat)
            #expect(look.title == "Drum news")
            #expect(look.access == .public)
            #expect(look.lastMessage == nil)
            #expect(look.participants.isEmpty)
            #expect(look.participantsCount == 2)
            for link in ["drum_news", "@DRUM_NEWS", "https://example.org/drum_news/"] as [Text] {
                try carol.call(ChatCheckLinkRequest(link: link))
                #expect(try carol.call(ChatJoinRequest(link: link)).chat.id == channel)
                try carol.call(ChatLeaveRequest(chatID: channel))
            }
            try alice.call(ChatUpdateRequest(chatID: channel, access: .private))
            #expect(try alice.chat(channel)?.access == .private)
            #expect(try alice.chat(channel)?.link == nil)
            #expect(try carol.code(of: ChatJoinRequest(link: "drum_news")) == .notFound)
        }
    }

    @Test("a name is one chat's, and has a form")
    func taken() throws {
        try withChannel { _, alice, bob, _, channel in
            try alice.publish(channel, as: "drum_news")
            let group = try bob.createGroup("Others", with: [], cid: 1)
            func name(_ link: Text, _ access: ChatAccess? = .public) -> ChatUpdateRequest {
                ChatUpdateRequest(chatID: group, access: access, link: link)
            }
            #expect(try bob.code(of: name("Drum_News")) == .linkTaken)
            #expect(try bob.chat(group)?.access == .private)
            for wrong in ["drum", "9drums", "drum news", "барабан", "a.b.c.d", "https://drummers"]
                as [Text]
            {
                #expect(try bob.code(of: name(wrong)) == .protoPayload, "\(wrong)")
            }
            let long = Text(String(repeating: "a", count: 33))
            #expect(try bob.code(of: name(long)) == .protoPayload)
            #expect(try bob.code(of: name("drummers", .private)) == .protoPayload)
            #expect(try bob.code(of: name("drummers", .secret)) == .protoPayload)
            #expect(
                try bob.code(of: ChatUpdateRequest(chatID: group, access: .public)) == .protoPayload
            )
            try bob.call(name("drummers", nil))
            #expect(try bob.chat(group)?.link == "drummers")
            try alice.call(ChatDeleteRequest(chatID: channel, forAll: true))
            try bob.call(name("drum_news"))
            #expect(try alice.call(ChatJoinRequest(link: "drum_news")).chat.id == group)
        }
    }

    @Test("the invitation is shown to those who may make one, or to all")
    func invitation() throws {
        try withPair { _, alice, bob, _ in
            let group = try alice.createGroup("Picnic", with: [bob], cid: 1)
            let link = try alice.call(ChatUpdateRequest(chatID: group, revokePrivateLink: true))
                .chat.link
            #expect(try bob.chat(group)?.link == nil)
            let options = NameMap([(Text("MEMBERS_CAN_SEE_PRIVATE_LINK"), true)])
            try alice.call(ChatUpdateRequest(chatID: group, options: options))
            #expect(link != nil)
            #expect(try bob.chat(group)?.link == link)
        }
    }

    @Test("public chats are found by title and name and suggested, the largest first")
    func found() throws {
        try withChannel { _, alice, bob, carol, channel in
            let small = try alice.createGroup("Drum talk", with: [], cid: 2)
            func found(_ query: Text) throws -> [ChatID] {
                try carol.call(PublicSearchRequest(query: query)).result.compactMap(\.chat?.id)
            }
            #expect(try found("drum").isEmpty)
            try alice.publish(channel, as: "daily_beat")
            try alice.publish(small, as: "drum_talk")
            #expect(try Set(found("DRU")) == [channel, small])
            #expect(try found("beat news") == [channel])
            #expect(try found("beat talk").isEmpty)
            let page = try carol.call(PublicSearchRequest(query: "drum", count: 1))
            #expect(page.result.count == 1)
            #expect(page.total == 2)
            let next = try carol.call(
                PublicSearchRequest(query: "drum", count: 1, marker: page.marker)
            )
            #expect(next.marker == nil)
            #expect(Set((page.result + next.result).compactMap(\.chat?.id)) == [channel, small])

            #expect(try carol.call(ChatSuggestRequest()).chats.map(\.id) == [channel, small])
            #expect(try bob.call(ChatSuggestRequest()).chats.map(\.id) == [small])
            #expect(try alice.call(ChatSuggestRequest()).chats.isEmpty)
            #expect(try carol.call(ChatSuggestRequest(count: 1)).chats.map(\.id) == [channel])
            try alice.call(ChatUpdateRequest(chatID: channel, access: .private))
            #expect(try found("news").isEmpty)
        }
    }
}

@Suite("Asking to be let in")
struct JoinRequestTests {
    @Test("who follows the link waits, once, until somebody decides")
    func asked() throws {
        try withPair { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            let dave = try server.signUp("Dave")
            let group = try alice.createGroup("Picnic", with: [bob], cid: 1)
            let link = try #require(
                try alice.call(ChatUpdateRequest(chatID: group, revokePrivateLink: true)).chat.link
            )
            try alice.ask(for: group)
            _ = try (alice.takePushes(), bob.takePushes())
            for client in [carol, carol, dave] {
                let reply = try client.call(ChatJoinRequest(link: link)).chat
                #expect(reply.id == group)
                #expect(reply.participants.isEmpty)
                #expect(reply.lastMessage == nil)
            }
            try alice.expectSilence()
            #expect(try carol.chat(group) == nil)
            #expect(try alice.waiting(in: group) == [carol.userID, dave.userID])
            let look = ChatMembersRequest(chatID: group, type: .joinRequest)
            #expect(try bob.code(of: look) == .notAllowed)
            let some = try alice.call(
                ChatMembersRequest(chatID: group, type: .joinRequest, count: 1)
            )
            #expect(some.members.map(\.contact.id) == [carol.userID])
            #expect(some.marker == carol.userID.rawValue)
            let named = ChatMembersRequest(chatID: group, type: .joinRequest, query: "da")
            #expect(try alice.call(named).members.map(\.contact.id) == [dave.userID])

            let letIn = alice.members(.add, carol, in: group, type: .joinRequest)
            #expect(try bob.code(of: letIn) == .notAllowed)
            #expect(try alice.call(letIn).chat.participantsCount == 3)
            #expect(try carol.news().map(\.opcode) == [.notifChat, .notifMessage])
            #expect(try bob.news().map(\.opcode) == [.notifChat, .notifMessage])
            try alice.call(letIn)
            try bob.expectSilence()
            try alice.call(alice.members(.remove, dave, in: group, type: .joinRequest))
            try dave.expectSilence()
            #expect(try alice.waiting(in: group).isEmpty)
            // Accepting has no effect on a user without an open join request.
            let late = alice.members(.add, dave, in: group, type: .joinRequest)
            #expect(try alice.call(late).chat.participantsCount == 3)
            #expect(try dave.chat(group) == nil)
        }
    }

    @Test("who asks to be let in takes it back by leaving")
    func takenBack() throws {
        try withChannel { server, alice, bob, carol, channel in
            try alice.publish(channel, as: "drum_news")
            try alice.ask(for: channel)
            try carol.call(ChatJoinRequest(link: "drum_news"))
            _ = try (alice.takePushes(), bob.takePushes())
            try carol.call(ChatLeaveRequest(chatID: channel))
            #expect(try carol.code(of: ChatLeaveRequest(chatID: channel)) == .chatNotFound)
            #expect(try alice.waiting(in: channel).isEmpty)
            let late = alice.members(.add, carol, in: channel, type: .joinRequest)
            try alice.call(late)
            #expect(try carol.chat(channel) == nil)
            for client in [alice, bob, carol] { try client.expectSilence() }
        }
    }

    @Test("who is added meanwhile waits no more, and neither does anybody in a chat that ended")
    func overtaken() throws {
        try withChannel { server, alice, _, carol, channel in
            let dave = try server.signUp("Dave")
            try alice.publish(channel, as: "drum_news")
            try alice.ask(for: channel)
            for client in [carol, dave] { try client.call(ChatJoinRequest(link: "drum_news")) }
            try alice.call(alice.members(.add, carol, in: channel))
            #expect(try alice.waiting(in: channel) == [dave.userID])
            #expect(try carol.only(.notifChat, as: NotifChat.self).count == 1)
            try alice.call(alice.members(.add, dave, in: channel, type: .joinRequest))
            #expect(try dave.only(.notifChat, as: NotifChat.self).map(\.chat.id) == [channel])
            try alice.call(ChatDeleteRequest(chatID: channel, forAll: true))
            let gone = alice.members(.add, dave, in: channel, type: .joinRequest)
            #expect(try alice.code(of: gone) == .chatNotFound)
        }
    }
}

@Suite("CHAT_PERSONAL_CONFIG (61), CHAT_PIN_SET_VISIBILITY (86), CHAT_HIDE (196)")
struct ChatOfOnesOwnTests {
    @Test("one chat as one has it")
    func personal() throws {
        try withChannel { _, _, bob, carol, channel in
            let request = ChatPersonalConfigRequest(chatID: channel)
            let seen = try bob.call(request).chat
            #expect(try bob.chat(channel) == seen)
            #expect(try carol.code(of: request) == .chatNotFound)
            let own = ChatPersonalConfigRequest(chatID: ChatID(0))
            #expect(try carol.call(own).chat.id == ChatID(0))
        }
    }

    @Test("what is pinned is hidden on all of one's devices")
    func pins() throws {
        try withChannel { server, _, bob, carol, channel in
            let laptop = try server.reconnect(bob, device: "laptop").client
            func hidden(_ show: Bool) throws -> [AnyValue?] {
                try bob.call(ChatPinSetVisibilityRequest(chatID: channel, show: show))
                return try laptop.only(.notifConfig, as: NotifConfig.self).map {
                    $0.config.chats?[channel]
                }
            }
            let away = NameMap([(Text("hidePinned"), AnyValue(true))])
            #expect(try hidden(false) == [AnyValue(away)])
            #expect(try hidden(false).isEmpty)
            #expect(try hidden(true) == [AnyValue(NameMap<AnyValue>([]))])
            let stranger = ChatPinSetVisibilityRequest(chatID: channel, show: false)
            #expect(try carol.code(of: stranger) == .chatNotFound)
        }
    }

    @Test("a chat is away until something new is said in it")
    func hide() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            try alice.send("hi", to: dialog, cid: 1)
            let (laptop, login) = try server.reconnect(bob, device: "laptop")
            _ = try bob.takePushes()
            try bob.call(ChatHideRequest(chatID: dialog))
            #expect(try laptop.only(.notifChat, as: NotifChat.self).map(\.chat.status) == [.hidden])
            try bob.call(ChatHideRequest(chatID: dialog))
            try laptop.expectSilence()
            try alice.expectSilence()
            #expect(try bob.chat(dialog)?.status == .hidden)
            #expect(try alice.chat(dialog)?.status == .active)
            let delta = try server.reconnect(bob, since: login.time).login
            #expect(delta.chats.map(\.status) == [.hidden])
            try alice.send("are you there?", to: dialog, cid: 2)
            #expect(try bob.chat(dialog)?.status == .active)
            let after = try server.reconnect(bob, since: delta.time).login
            #expect(after.chats.map(\.status) == [.active])
            try bob.call(ChatHideRequest(chatID: dialog))
            _ = try laptop.takePushes()
            try bob.call(ChatHideRequest(chatID: dialog, hide: false))
            #expect(try laptop.only(.notifChat, as: NotifChat.self).map(\.chat.status) == [.active])
            #expect(try bob.chat(dialog)?.status == .active)
            try bob.call(ChatHideRequest(chatID: dialog, hide: false))
            try laptop.expectSilence()
            let back = try server.reconnect(bob, since: after.time).login
            #expect(back.chats.map(\.status) == [.active])
            #expect(try carol.code(of: ChatHideRequest(chatID: ChatID(-1))) == .chatNotFound)
            try carol.call(ChatHideRequest(chatID: carol.dialog(with: alice)))
        }
    }
}
