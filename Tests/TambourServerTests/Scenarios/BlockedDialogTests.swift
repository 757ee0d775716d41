import TambourMessenger
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

/// Two users who wrote to each other until one blocked the other.
private final class Fallout {
    let server: TestServer
    let blocker: WireClient
    let blocked: WireClient
    let chat: ChatID
    /// One message of each user, keyed by its sender.
    private var messages: [UserID: MessageID] = [:]
    private var pollID: Int64 = 0
    private var poll = MessageID(0)
    /// The time of the first message.
    private var begun: Int64 = 0

    init(_ server: TestServer) throws {
        self.server = server
        blocker = try server.signUp("Bob")
        blocked = try server.signUp("Alice")
        chat = blocked.dialog(with: blocker)
        for client in [blocker, blocked] {
            let sent = try client.send("hello", to: chat, cid: 1).message
            messages[client.userID] = sent.id
            if begun == 0 { begun = sent.time }
        }
        let ask = NewMessage(cid: 2, attaches: [.poll(settings: .mayRevote)])
        let asked = try blocker.call(MsgSendRequest(chatID: chat, message: ask)).message
        (poll, pollID) = (asked.id, try #require(asked.attaches.stored?.first?.pollID))
        for client in [blocker, blocked] {
            try client.call(
                MsgReactionRequest(chatID: chat, messageID: poll, reaction: NewReaction(id: "👍"))
            )
        }
        try blocker.call(ContactUpdateRequest(contactID: blocked.userID, action: .block))
    }

    /// A function that returns the requests with which a user tries to reach the other user.
    typealias Attempt = @Sendable (Fallout, WireClient) throws -> [any WireRequest]

    static let attempts: [Opcode: Attempt] = [
        .chatMark: { dialog, _ in
            let types: [MarkType] = [.readMessage, .setAsUnread, .readMessage, .readReaction]
            return types.map { ChatMarkRequest(type: $0, chatID: dialog.chat) }
        },
        .chatDelete: { dialog, _ in
            [true, false].map { ChatDeleteRequest(chatID: dialog.chat, forAll: $0) }
        },
        .chatClear: { dialog, _ in
            [true, false].map { ChatClearRequest(chatID: dialog.chat, forAll: $0) }
        },
        .chatJoin: { _, _ in [ChatJoinRequest(link: "https://example.org/join/x")] },
        .chatUpdate: { dialog, _ in
            [
                ChatUpdateRequest(chatID: dialog.chat, pinMessageID: dialog.poll),
                ChatUpdateRequest(chatID: dialog.chat, pinMessageID: MessageID(0)),
                ChatUpdateRequest(
                    chatID: dialog.chat,
                    pinMessageID: dialog.poll,
                    notifyPin: false
                ),
                ChatUpdateRequest(chatID: dialog.chat, theme: "A title"),
            ]
        },
        .chatLeave: { dialog, _ in [ChatLeaveRequest(chatID: dialog.chat)] },
        .chatMembersUpdate: { dialog, client in
            let group = try client.createGroup("Group", with: [], cid: 90)
            // A user may still invite users that they have blocked.
            let isBlocked = client === dialog.blocked
            let other = isBlocked ? dialog.blocker : dialog.blocked
            return (isBlocked ? [dialog.chat, group] : [dialog.chat]).map {
                ChatMembersUpdateRequest(chatID: $0, userIDs: [other.userID], operation: .add)
            }
        },
        .msgSend: { dialog, client in
            let link = { NewLink(type: $0, messageID: dialog.poll, chatID: dialog.chat) }
            let hour = DelayedAttributes(timeToFire: wallNow + 3_600_000)
            return [
                NewMessage(cid: 1, text: "hello"),
                NewMessage(cid: 3, text: "and another thing"),
                NewMessage(cid: 4, text: "answer me", link: link(.reply)),
                NewMessage(cid: 5, link: link(.forward)),
                NewMessage(cid: 6, text: "later", delayedAttributes: hour),
            ].map { MsgSendRequest(chatID: dialog.chat, message: $0) }
        },
        .msgTyping: { dialog, _ in [MsgTypingRequest(chatID: dialog.chat)] },
        .msgDelete: { dialog, client in
            dialog.messages.values.map { MsgDeleteRequest(chatID: dialog.chat, messageIDs: [$0]) }
        },
        .msgDeleteUserComments: { dialog, client in
            [MsgDeleteUserCommentsRequest(chatID: dialog.chat, userID: client.userID)]
        },
        .msgDeleteRange: { dialog, _ in
            [
                MsgDeleteRangeRequest(
                    chatID: dialog.chat,
                    startTime: dialog.begun,
                    endTime: wallNow + 60_000
                )
            ]
        },
        .msgEdit: { dialog, _ in
            dialog.messages.values.map {
                MsgEditRequest(chatID: dialog.chat, messageID: $0, text: "read this")
            }
        },
        .sendVote: { dialog, _ in
            [[1], [2], []].map {
                SendVoteRequest(
                    chatID: dialog.chat,
                    messageID: dialog.poll,
                    pollID: dialog.pollID,
                    answersIDs: $0
                )
            }
        },
        .msgReaction: { dialog, _ in
            [
                MsgReactionRequest(
                    chatID: dialog.chat,
                    messageID: dialog.poll,
                    reaction: NewReaction(id: "🔥")
                )
            ]
        },
        .msgCancelReaction: { dialog, _ in
            [MsgCancelReactionRequest(chatID: dialog.chat, messageID: dialog.poll)]
        },
        .chatReactionsSettingsSet: { dialog, _ in
            [ChatReactionsSettingsSetRequest(chatID: dialog.chat, isActive: false)]
        },
        .profile: { _, _ in
            [ProfileRequest(firstName: "Answer me"), ProfileRequest(description: "Answer me")]
        },
        .phoneBindConfirm: { dialog, client in
            let phone = dialog.server.freshPhone()
            let asked = try client.call(
                PhoneBindRequestRequest(phone: PhoneNumber.format(phone))
            )
            let code = try dialog.server.receivedCode(of: phone)
            return [PhoneBindConfirmRequest(token: asked.token, verifyCode: code)]
        },
    ]

    func ask(_ requests: [any WireRequest], by client: WireClient) throws {
        for request in requests { _ = try client.reply(to: client.send(request)) }
    }

    /// Logs in until nothing is new, and returns the mark of the last login.
    func mark(of client: WireClient) throws -> Int64 {
        var login = try server.login(client)
        while !login.chats.isEmpty || !login.contacts.isEmpty {
            login = try server.login(client, since: login.time)
        }
        return login.time
    }
}

@Suite("A dialog in which one has blocked the other")
struct BlockedDialogTests {
    /// Requests that cause pushes to other users.
    private static let told = ExampleRequests.requests.filter {
        [.members, .contacts].contains($0.cost?.tells)
            // A PING only changes presence, which the blocked user no longer follows.
            && $0.opcode != .ping
    }

    /// Requests that undo an action of the caller. The server pushes their effect to other users,
    /// and each works only once.
    private static let takingBack: [Opcode] = [
        .msgDelete, .msgDeleteRange, .msgDeleteUserComments, .msgCancelReaction,
    ]

    @Test("every request that others are told of is tried")
    func complete() {
        #expect(Self.told.map(\.opcode).filter { Fallout.attempts[$0] == nil } == [])
    }

    @Test(
        "nothing new reaches the other, by whichever request",
        arguments: Array(Fallout.attempts.keys),
        [true, false]
    )
    func silent(opcode: Opcode, byBlocked: Bool) throws {
        // A user who blocks another user still shows that user their profile. So skip these
        // requests.
        if !byBlocked, [.profile, .phoneBindConfirm].contains(opcode) { return }
        try withServer { server in
            let dialog = try Fallout(server)
            let (speaker, other) =
                byBlocked ? (dialog.blocked, dialog.blocker) : (dialog.blocker, dialog.blocked)
            let attempt = try #require(Fallout.attempts[opcode])
            let requests = try attempt(dialog, speaker)
            if Self.takingBack.contains(opcode) { try dialog.ask(requests, by: speaker) }
            let mark = try dialog.mark(of: other)
            _ = try other.takePushes()
            try dialog.ask(requests, by: speaker)
            try other.expectSilence()
            #expect(try server.login(other, since: mark).chats.map(\.id) == [])
        }
    }

    @Test(
        "the blocked user does not follow the presence of the other",
        arguments: Array(Fallout.attempts.keys)
    )
    func presence(opcode: Opcode) throws {
        try withServer(limits: ["presenceOfflineDelayMs": 20]) { server in
            let dialog = try Fallout(server)
            let carol = try server.signUp("Carol")
            try carol.send("hi", to: carol.dialog(with: dialog.blocker), cid: 1)
            _ = try carol.takePushes()
            let attempt = try #require(Fallout.attempts[opcode])
            for client in [dialog.blocked, dialog.blocker] {
                try dialog.ask(attempt(dialog, client), by: client)
            }
            try dialog.ask(
                [ChatSubscribeRequest(chatID: dialog.chat, subscribe: true)],
                by: dialog.blocked
            )
            _ = try dialog.blocked.takePushes()
            // The server has sent all other pushes of this change when Carol gets her push that the
            // blocker is offline.
            try dialog.blocker.call(PingRequest(interactive: false))
            while true {
                let told = try carol.next(.notifPresence, as: NotifPresence.self)
                if told.userID == dialog.blocker.userID, told.presence.status == 0 { break }
            }
            let heard = try dialog.blocked.takePushes().filter { $0.opcode == .notifPresence }
                .map { try $0.decode(as: NotifPresence.self).userID }
            #expect(!heard.contains(dialog.blocker.userID))
        }
    }
}
