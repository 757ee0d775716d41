import TambourProtocol
import TambourTesting

extension CommandPlay {
    /// Plays CHAT_DELETE, CHAT_UPDATE, CHAT_CLEAR, CHAT_JOIN, CHAT_LEAVE, CHAT_MEMBERS_UPDATE,
    /// CHAT_MARK, CHAT_PIN_SET_VISIBILITY, CHAT_HIDE, CHAT_REACTIONS_SETTINGS_SET and
    /// CHAT_COMPLAIN.
    static let chats: [Maker] = [
        groups, updating, clearing, joining, members, marking, hidingPinned, hiding,
        choosingReactions, reportingChats,
    ]

    /// Creates groups and deletes each.
    private static let groups: Maker = { player, mark in
        let partner = player.partner.id
        var last = ChatID(0)
        return CommandPlay(
            "groups",
            mark,
            change: { number in
                guard number % 2 == 1 else {
                    return ChangeRequest(ChatDeleteRequest(chatID: last, forAll: true))
                }
                let control = NewAttach(
                    type: .control,
                    title: mark.text(number),
                    event: "new",
                    chatType: "CHAT",
                    userIDs: [partner]
                )
                let message = NewMessage(cid: mark.cid(number), attaches: [control])
                return ChangeRequest(MsgSendRequest(message: message))
            },
            learn: { number, payload in
                guard number % 2 == 1 else { return }
                last = try MsgSendReply.decode(payload, limits: .standard).chatID
            },
            read: { player in
                // The partner must see the same groups.
                let lists = try [player.own, player.other].map { client in
                    try client.call(ChatsListRequest(count: 200)).chats
                        .filter { $0.status == .active }
                        .flatMap { mark.numbers(in: String(describing: $0.title ?? "")) }
                }
                return lists[0] == lists[1] ? lists[0] : lists[0] + [-1] + lists[1]
            },
            after: { $0 % 2 == 1 ? [$0] : [] }
        )
    }

    /// Changes the title, the description and the pinned message in turn.
    private static let updating: Maker = { player, mark in
        let chat = try player.group()
        let messages = try player.messages(10, in: chat, by: player.own)
        return CommandPlay(
            "changes of a group",
            mark,
            change: { number in
                switch number % 3 {
                case 0: ChangeRequest(ChatUpdateRequest(chatID: chat, theme: mark.text(number)))
                case 1:
                    ChangeRequest(ChatUpdateRequest(chatID: chat, description: mark.text(number)))
                default:
                    ChangeRequest(
                        ChatUpdateRequest(chatID: chat, pinMessageID: messages[number / 3 % 10])
                    )
                }
            },
            read: { player in
                let found = try player.own.call(ChatInfoRequest(chatIDs: [chat])).chats.first
                let texts = [found?.title, found?.description].map {
                    mark.numbers(in: String(describing: $0 ?? "")).first ?? 0
                }
                let pinned = found?.pinnedMessage.flatMap { messages.firstIndex(of: $0.id) }
                return texts + [pinned.map { $0 + 1 } ?? 0]
            },
            after: { inTurn(3, $0) { $0 % 3 == 2 ? $0 / 3 % 10 + 1 : $0 } }
        )
    }

    /// Clears the chat after each message, every second time for everybody.
    private static let clearing: Maker = { player, mark in
        let chat = try player.group()
        return CommandPlay(
            "cleared chats",
            mark,
            change: { number in
                guard number % 2 == 0 else { return mark.message(number, to: chat) }
                return ChangeRequest(ChatClearRequest(chatID: chat, forAll: number % 4 == 0))
            },
            read: { try mark.numbers(in: chat, $0.own) },
            after: { $0 % 2 == 1 ? [$0] : [] }
        )
    }

    /// Joins a group of the partner and leaves it.
    private static let joining: Maker = { player, mark in
        let chat = try player.other.createGroup("Open", with: [], cid: player.nextCID())
        let update = ChatUpdateRequest(chatID: chat, revokePrivateLink: true)
        let link = try player.other.call(update).chat.link ?? ""
        let user = player.user.id
        return CommandPlay(
            "joins",
            mark,
            change: { number in
                number % 2 == 1
                    ? ChangeRequest(ChatJoinRequest(link: link))
                    : ChangeRequest(ChatLeaveRequest(chatID: chat))
            },
            read: { player in
                try members(of: chat, player.other).filter { $0 == user }.map { _ in 1 }
            },
            after: { $0 % 2 == 1 ? [1] : [] }
        )
    }

    private static func members(of chat: ChatID, _ client: WireClient) throws -> [UserID] {
        try client.call(ChatMembersRequest(chatID: chat, count: 50)).members.map(\.contact.id)
    }

    /// Adds and removes two users in turn.
    private static let members: Maker = { player, mark in
        let chat = try player.group()
        let users = [player.strangers[4].id, player.strangers[5].id]
        return CommandPlay(
            "members",
            mark,
            change: { number in
                ChangeRequest(
                    ChatMembersUpdateRequest(
                        chatID: chat,
                        userIDs: [users[number % 2]],
                        operation: number / 2 % 2 == 0 ? .add : .remove
                    )
                )
            },
            read: { player in
                let found = try members(of: chat, player.own)
                return users.map { user in found.count { $0 == user } }
            },
            after: { inTurn(2, $0) { $0 / 2 % 2 == 0 ? 1 : 0 } }
        )
    }

    /// Marks messages as read one after another, then marks the first one as unread.
    private static let marking: Maker = { player, mark in
        let chat = try player.group()
        let messages = try player.messages(30, in: chat, by: player.other)
        func request(_ number: Int) -> ChatMarkRequest {
            ChatMarkRequest(
                type: number % 30 == 0 ? .setAsUnread : .readMessage,
                chatID: chat,
                messageID: messages[number % 30]
            )
        }
        try player.own.call(request(0))
        return CommandPlay(
            "read marks",
            mark,
            change: { ChangeRequest(request($0)) },
            read: { player in
                let request = ChatMarkRequest(type: .readReaction, chatID: chat)
                return [Int(try player.own.call(request).mark)]
            },
            after: { [Int(messages[$0 % 30].timeMs) - ($0 % 30 == 0 ? 1 : 0)] }
        )
    }

    /// Hides and shows the pinned messages of three chats.
    private static let hidingPinned: Maker = { player, mark in
        let chats = try (0..<3).map { _ in try player.group() }
        return CommandPlay(
            "pinned messages out of sight",
            mark,
            change: {
                ChangeRequest(
                    ChatPinSetVisibilityRequest(chatID: chats[$0 % 3], show: $0 / 3 % 2 == 1)
                )
            },
            read: { player in
                let nothing = chats.map { ($0, NameMap<AnyValue>()) }
                let request = ConfigRequest(settings: SettingsChange(chats: IDMap(nothing)))
                let reply = try player.own.call(request)
                let hidden = AnyValue(NameMap([(Text("hidePinned"), AnyValue(true))]))
                return chats.map { reply.chats?[$0] == hidden ? 1 : 0 }
            },
            after: { inTurn(3, $0) { $0 / 3 % 2 == 0 ? 1 : 0 } }
        )
    }

    /// Hides a dialog after each message.
    private static let hiding: Maker = { player, mark in
        let chat = ChatID.dialog(player.user.id, player.strangers[4].id)
        return CommandPlay(
            "chats put away",
            mark,
            change: { number in
                guard number % 2 == 0 else { return mark.message(number, to: chat) }
                return ChangeRequest(ChatHideRequest(chatID: chat))
            },
            read: { player in
                try player.own.call(ChatsListRequest(count: 200)).chats
                    .filter { $0.id == chat && $0.status == .active }
                    .flatMap { mark.numbers(in: String(describing: $0.lastMessage?.text ?? "")) }
            },
            after: { $0 % 2 == 1 ? [$0] : [] }
        )
    }

    private static let choosingReactions: Maker = { player, mark in
        let chat = try player.group()
        return CommandPlay(
            "reactions that a chat allows",
            mark,
            change: {
                ChangeRequest(
                    ChatReactionsSettingsSetRequest(chatID: chat, count: Int64($0 % 7 + 1))
                )
            },
            read: { player in
                let request = ChatReactionsSettingsGetByChatIdRequest(chatIDs: [chat])
                return try player.own.call(request).chatReactionsSettings.map { Int($0.count) }
            },
            after: { [$0 == 0 ? 8 : $0 % 7 + 1] }
        )
    }

    private static let reportingChats: Maker = { player, mark in
        let chat = try player.group()
        return CommandPlay(
            "reports of chats",
            mark,
            change: {
                ChangeRequest(
                    ChatComplainRequest(chatID: chat, reason: AnyValue(mark.text($0)))
                )
            },
            read: { try reports($0, mark) },
            after: { $0 == 0 ? [] : [$0] }
        )
    }
}
