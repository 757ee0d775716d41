import TambourFraming
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

/// A reply contains a copy of the message that it answers. If a user may not see the answered
/// message, the reply must not show it to this user.
@Suite("A reply to a message that somebody does not see")
struct WithheldReplyTests {
    /// The reasons why Carol does not see the answered message.
    enum Reason: CaseIterable {
        case addedWithoutHistory, cleared, deletedForHerself
    }

    /// The payloads in which Carol gets the reply.
    enum Path: CaseIterable {
        case push, editPush, votePush, pinnedPush
        case chatHistory, historyWithChat, chatInfo, chatPersonalConfig, chatsList, commonChats
        case login, loginDelta, syncMore, linkInfo
        case msgGet, chatChanges, pinned, reactions, polls, forward
        case msgSearch, chatSearch, chatMedia
    }

    /// A chat that contains the secret message, and the requests by which a reader gets the reply.
    private struct Scene {
        let server: TestServer
        let alice: WireClient
        let bob: WireClient
        let chat: ChatID
        let secret: Message
        var cid: Int64 = 100

        /// Sends Bob's reply to the secret message. The reply contains a poll and a location.
        mutating func answer() throws -> Message {
            cid += 1
            let place = NewAttach(type: .location, latitude: 1, longitude: 2)
            let message = NewMessage(
                cid: cid,
                text: "answer",
                attaches: [.poll("Yes?", settings: [.mayRevote, .mayForward]), place],
                link: NewLink(type: .reply, messageID: secret.id)
            )
            return try bob.call(MsgSendRequest(chatID: chat, message: message)).message
        }

        func vote(on answer: Message) throws -> SendVoteRequest {
            let poll = try #require(answer.attaches.stored?.first { $0.type == .poll }?.pollID)
            return SendVoteRequest(
                chatID: chat,
                messageID: answer.id,
                pollID: poll,
                answersIDs: [1]
            )
        }

        /// Returns the undecoded payloads that `reader` gets on `path`.
        mutating func payloads(on path: Path, to reader: WireClient) throws -> [[UInt8]] {
            func reply(_ request: some WireRequest) throws -> [[UInt8]] {
                let packet = try reader.reply(to: reader.send(request))
                try #require(packet.header.command == PacketCommand.ok.rawValue)
                return [packet.payload]
            }
            func pushes() throws -> [[UInt8]] {
                try reader.news().filter { $0.opcode == .notifMessage || $0.opcode == .notifChat }
                    .map(\.payload)
            }
            func login(since mark: Int64, capabilities: [String]? = nil) throws -> [[UInt8]] {
                let client = try server.connect(device: "again", capabilities: capabilities)
                let request = LoginRequest(
                    token: reader.token,
                    chatsSync: mark,
                    contactsSync: mark,
                    chatsCount: 1
                )
                return [try client.reply(to: client.send(request)).payload]
            }
            if path == .linkInfo {
                try alice.call(ChatUpdateRequest(chatID: chat, revokePrivateLink: true))
            }
            let time = try server.login(reader).time
            _ = try reader.news()
            let answer = try answer()
            switch path {
            case .push: return try pushes()
            case .editPush:
                _ = try reader.news()
                try bob.call(
                    MsgEditRequest(chatID: chat, messageID: answer.id, text: "better answer")
                )
                return try pushes()
            case .votePush:
                _ = try reader.news()
                try alice.call(vote(on: answer))
                let ofAlice = try pushes()
                try reader.call(vote(on: answer))
                let tablet = try server.reconnect(reader).client
                let second = SendVoteRequest(
                    chatID: chat,
                    messageID: answer.id,
                    pollID: try vote(on: answer).pollID,
                    answersIDs: [2]
                )
                try tablet.call(second)
                return try ofAlice + pushes()
            case .pinnedPush:
                try alice.call(ChatUpdateRequest(chatID: chat, pinMessageID: answer.id))
                return try pushes()
            case .chatHistory: return try reply(ChatHistoryRequest(chatID: chat, backward: 50))
            case .historyWithChat:
                return try reply(
                    ChatHistoryRequest(chatID: chat, getMessages: false, getChat: true)
                )
            case .chatInfo: return try reply(ChatInfoRequest(chatIDs: [chat]))
            case .chatPersonalConfig: return try reply(ChatPersonalConfigRequest(chatID: chat))
            case .chatsList: return try reply(ChatsListRequest())
            case .commonChats:
                return try reply(ChatSearchCommonParticipantsRequest(userIDs: [alice.userID]))
            case .login: return try login(since: -1)
            case .loginDelta: return try login(since: time)
            case .syncMore:
                return try reply(SyncMoreRequest(kind: .chats, since: time, upTo: .max >> 16))
            case .linkInfo:
                let link = try #require(alice.chat(chat)?.link)
                return try reply(LinkInfoRequest(link: link))
            case .msgGet: return try reply(MsgGetRequest(chatID: chat, messageIDs: [answer.id]))
            case .chatChanges:
                try bob.call(
                    MsgEditRequest(chatID: chat, messageID: answer.id, text: "better answer")
                )
                return try reply(ChatChangesRequest(chatID: chat, since: time))
            case .pinned:
                try alice.call(
                    ChatUpdateRequest(chatID: chat, pinMessageID: answer.id, notifyPin: false)
                )
                _ = try bob.send("something else", to: chat, cid: 1)
                return try reply(ChatInfoRequest(chatIDs: [chat]))
            case .reactions:
                try alice.call(
                    MsgReactionRequest(
                        chatID: chat,
                        messageID: answer.id,
                        reaction: NewReaction(id: "👍")
                    )
                )
                return try reply(
                    MsgGetReactionsRequest(chatID: chat, messageIDs: [answer.id, secret.id])
                ) + reply(MsgGetRequest(chatID: chat, messageIDs: [answer.id]))
            case .polls:
                let poll = PollReference(
                    messageID: answer.id,
                    pollID: try vote(on: answer).pollID
                )
                let hidden = PollReference(
                    messageID: secret.id,
                    pollID: try #require(secret.attaches.stored?.first?.pollID)
                )
                return try reply(GetPollUpdatesRequest(chatID: chat, polls: [poll, hidden]))
            case .forward:
                let link = NewLink(type: .forward, messageID: answer.id, chatID: chat)
                let message = NewMessage(cid: 1, link: link)
                return try reply(MsgSendRequest(userID: reader.userID, message: message))
            case .msgSearch: return try reply(MsgSearchRequest(chatID: chat, query: "answer"))
            case .chatSearch: return try reply(ChatSearchRequest(query: "answer"))
            case .chatMedia: return try reply(ChatMediaRequest(chatID: chat, backward: 9))
            }
        }
    }

    private func withScene(
        _ reason: Reason,
        isBig: Bool,
        _ body: (inout Scene, _ carol: WireClient) throws -> Void
    ) throws {
        // With the lower limit, the server treats a group of three members as a big group.
        try withServer(limits: isBig ? ["fanOutMembers": 2] : [:]) { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let carol = try server.signUp("Carol")
            let isLate = reason == .addedWithoutHistory
            let chat = try alice.createGroup("Band", with: isLate ? [bob] : [bob, carol], cid: 1)
            let message = NewMessage(cid: 2, text: "TOP SECRET", attaches: [.poll("TOP SECRET?")])
            let secret = try alice.call(MsgSendRequest(chatID: chat, message: message)).message
            switch reason {
            case .addedWithoutHistory:
                try alice.call(
                    ChatMembersUpdateRequest(
                        chatID: chat,
                        userIDs: [carol.userID],
                        operation: .add,
                        showHistory: false
                    )
                )
            case .cleared: try carol.call(ChatClearRequest(chatID: chat))
            case .deletedForHerself: try carol.delete([secret.id], in: chat, forMe: true)
            }
            var scene = Scene(server: server, alice: alice, bob: bob, chat: chat, secret: secret)
            try body(&scene, carol)
        }
    }

    private func holds(_ payloads: [[UInt8]], _ text: String) -> Bool {
        let words = Array(text.utf8)
        return payloads.contains { payload in
            payload.indices.contains { payload[$0...].starts(with: words) }
        }
    }

    @Test(
        "does not bring it, whichever way the reply is met",
        arguments: Path.allCases,
        Reason.allCases
    )
    func withheld(path: Path, reason: Reason) throws {
        for isBig in [false, true] {
            try withScene(reason, isBig: isBig) { scene, carol in
                let payloads = try scene.payloads(on: path, to: carol)
                #expect(holds(payloads, "SECRET") == false, "big: \(isBig)")
                // Carol still gets the reply, but without the answered message.
                let known = path == .polls ? "Yes?" : path == .pinnedPush ? "pin" : "answer"
                #expect(holds(payloads, known), "big: \(isBig)")
            }
        }
    }

    @Test("brings it to everybody else", arguments: Path.allCases)
    func shown(path: Path) throws {
        // For every user, these payloads omit the answered message. So skip them.
        if [.pinnedPush, .forward].contains(path) { return }
        for isBig in [false, true] {
            try withScene(.addedWithoutHistory, isBig: isBig) { scene, _ in
                let dave = try scene.server.signUp("Dave")
                try scene.alice.call(
                    ChatMembersUpdateRequest(
                        chatID: scene.chat,
                        userIDs: [dave.userID],
                        operation: .add
                    )
                )
                let payloads = try scene.payloads(on: path, to: dave)
                #expect(holds(payloads, "SECRET"), "big: \(isBig)")
            }
        }
    }

    @Test("of one's own that waits for its time is listed without it after a clearing")
    func scheduled() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let chat = alice.dialog(with: bob)
            let secret = try bob.send("TOP SECRET", to: chat, cid: 1).message
            let message = NewMessage(
                cid: 2,
                text: "answer",
                link: NewLink(type: .reply, messageID: secret.id),
                delayedAttributes: DelayedAttributes(timeToFire: wallNow + 3_600_000)
            )
            try alice.call(MsgSendRequest(chatID: chat, message: message))
            let list = ChatHistoryRequest(chatID: chat, itemType: .delayed)
            func payload() throws -> [[UInt8]] {
                [try alice.reply(to: alice.send(list)).payload]
            }
            #expect(try holds(payload(), "SECRET"))
            try alice.call(ChatClearRequest(chatID: chat))
            #expect(try !holds(payload(), "SECRET"))
            #expect(try holds(payload(), "answer"))
        }
    }

    @Test("a retry of one's own reply brings no more than is there now")
    func retry() throws {
        try withScene(.cleared, isBig: false) { scene, _ in
            let request = MsgSendRequest(
                chatID: scene.chat,
                message: NewMessage(
                    cid: 7,
                    text: "answer",
                    link: NewLink(type: .reply, messageID: scene.secret.id)
                )
            )
            #expect(try scene.bob.call(request).message.link != nil)
            try scene.bob.delete([scene.secret.id], in: scene.chat, forMe: true)
            let again = try scene.bob.call(request).message
            #expect(again.link == nil && again.text == "answer")
        }
    }

    @Test("an edit is not told to who has deleted the message for themselves")
    func editOfHidden() throws {
        try withScene(.deletedForHerself, isBig: false) { scene, carol in
            _ = try carol.news()
            try scene.alice.call(
                MsgEditRequest(chatID: scene.chat, messageID: scene.secret.id, text: "SECRET 2")
            )
            try carol.expectSilence()
            _ = try scene.bob.next(.notifMessage, as: NotifMessage.self)
        }
    }
}
