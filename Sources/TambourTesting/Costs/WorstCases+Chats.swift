import TambourProtocol
import TambourServer
import TambourStore

extension WorstCases {
    // MARK: - Reading chats

    static let chats: [Opcode: Maker] = [
        .chatInfo: { world in
            let ids = [world.crowd, world.circle] + world.dialogs
            return WorstCase(ChatInfoRequest(chatIDs: Array(ids.prefix(1_000))), by: world.alice)
        },
        .chatHistory: { world in
            let middle = world.messages[world.messages.count / 2].timeMs
            return WorstCase(
                ChatHistoryRequest(
                    chatID: world.crowd,
                    from: middle,
                    forward: 200,
                    backward: 200,
                    getChat: true
                ),
                by: world.alice
            )
        },
        .chatChanges: { world in
            for id in world.newest.suffix(200) where id.rawValue % 2 == 0 {
                _ = try? world.alice.call(
                    MsgReactionRequest(
                        chatID: world.crowd,
                        messageID: id,
                        reaction: NewReaction(id: "👍")
                    )
                )
            }
            return WorstCase(
                ChatChangesRequest(chatID: world.crowd, since: 1, count: 200),
                by: world.alice
            )
        },
        .chatMark: { world in
            // Marking a chat as read in the middle: what is unread is counted anew.
            let middle = world.messages[world.messages.count / 2]
            return WorstCase(
                ChatMarkRequest(type: .setAsUnread, chatID: world.crowd, messageID: middle),
                by: world.alice
            )
        },
        .chatsList: { WorstCase(ChatsListRequest(count: 200), by: $0.alice) },
        .chatPersonalConfig: {
            WorstCase(ChatPersonalConfigRequest(chatID: $0.crowd), by: $0.alice)
        },
        .chatPinSetVisibility: {
            WorstCase(ChatPinSetVisibilityRequest(chatID: $0.crowd, show: false), by: $0.alice)
        },
        .chatHide: { WorstCase(ChatHideRequest(chatID: $0.dialogs[1]), by: $0.alice) },
        .chatSubscribe: { WorstCase(ChatSubscribeRequest(chatID: $0.crowd), by: $0.alice) },
        .chatMedia: { world in
            // Half of the history has attachments, and none is of this kind.
            WorstCase(
                ChatMediaRequest(chatID: world.crowd, attachTypes: [.photo], backward: 200),
                by: world.alice
            )
        },
        .publicSearch: {
            WorstCase(PublicSearchRequest(query: "user", count: 100), by: $0.alice)
        },
        .chatSearch: {
            WorstCase(ChatSearchRequest(query: Text(query), count: 100), by: $0.alice)
        },
        .msgSearch: {
            WorstCase(
                MsgSearchRequest(chatID: $0.crowd, query: Text(query), count: 100),
                by: $0.alice
            )
        },
        .msgSearchTouch: { WorstCase(MsgSearchTouchRequest(), by: $0.alice) },
        .msgGetStat: {
            WorstCase(
                MsgGetStatRequest(chatID: $0.crowd, messageIDs: $0.newest),
                by: $0.alice
            )
        },
    ]

    /// Beginnings of words that every message of the crowd has.
    private static let query = "lo ip do si am co"

    // MARK: - Messages

    static let messages: [Opcode: Maker] = [
        .msgSend: { world in
            WorstCase(
                MsgSendRequest(chatID: world.crowd, message: try world.largest()),
                by: world.alice
            )
        },
        .msgEdit: { world in
            let id = try world.send(to: world.crowd)
            let large = try world.largest()
            return WorstCase(
                MsgEditRequest(
                    chatID: world.crowd,
                    messageID: id,
                    text: large.text,
                    elements: large.elements
                ),
                by: world.alice
            )
        },
        .msgTyping: { WorstCase(MsgTypingRequest(chatID: $0.crowd, type: "TEXT"), by: $0.alice) },
        .msgDelete: {
            WorstCase(
                MsgDeleteRequest(chatID: $0.crowd, messageIDs: Array($0.messages.prefix(500))),
                by: $0.alice
            )
        },
        .msgDeleteRange: { world in
            WorstCase(
                MsgDeleteRangeRequest(
                    chatID: world.crowd,
                    startTime: world.messages[500].timeMs,
                    endTime: world.messages[699].timeMs
                ),
                by: world.alice
            )
        },
        .msgSharePreview: { world in
            let text = String(repeating: "http://a.example/b ", count: 200)
            return WorstCase(MsgSharePreviewRequest(text: Text(text)), by: world.alice)
        },
        .msgGet: {
            WorstCase(MsgGetRequest(chatID: $0.crowd, messageIDs: $0.newest), by: $0.alice)
        },
        .msgGetCommentsInfo: {
            WorstCase(
                MsgGetCommentsInfoRequest(chatID: $0.crowd, postIDs: $0.newest),
                by: $0.alice
            )
        },
        .msgReaction: { world in
            WorstCase(
                MsgReactionRequest(
                    chatID: world.crowd,
                    messageID: world.messages[world.messages.count - 1],
                    reaction: NewReaction(id: "🔥")
                ),
                by: world.alice
            )
        },
        .msgCancelReaction: { world in
            let id = world.messages[world.messages.count - 3]
            let reaction = NewReaction(id: "👍")
            try world.alice.call(
                MsgReactionRequest(chatID: world.crowd, messageID: id, reaction: reaction)
            )
            return WorstCase(
                MsgCancelReactionRequest(chatID: world.crowd, messageID: id),
                by: world.alice
            )
        },
        .msgGetReactions: {
            WorstCase(
                MsgGetReactionsRequest(chatID: $0.crowd, messageIDs: $0.newest),
                by: $0.alice
            )
        },
        .msgGetDetailedReactions: { world in
            let id = world.messages[world.messages.count - 2]
            try world.react(to: id)
            return WorstCase(
                MsgGetDetailedReactionsRequest(chatID: world.crowd, messageID: id, count: 1_000),
                by: world.alice
            )
        },
        .sendVote: { world in
            WorstCase(
                SendVoteRequest(
                    chatID: world.crowd,
                    messageID: world.poll.message,
                    pollID: world.poll.id,
                    answersIDs: (1...12).map { Int64($0) }
                ),
                by: world.alice
            )
        },
        .votersListByAnswer: { world in
            WorstCase(
                VotersListByAnswerRequest(
                    chatID: world.crowd,
                    messageID: world.poll.message,
                    pollID: world.poll.id,
                    answerID: 1,
                    count: 1_000
                ),
                by: world.alice
            )
        },
        .getPollUpdates: { world in
            let reference = PollReference(messageID: world.poll.message, pollID: world.poll.id)
            return WorstCase(
                GetPollUpdatesRequest(
                    chatID: world.crowd,
                    polls: .init(repeating: reference, count: 100)
                ),
                by: world.alice
            )
        },
        .chatComplain: { world in
            WorstCase(
                ChatComplainRequest(
                    ids: [world.crowd, world.circle] + world.dialogs.prefix(58),
                    reason: AnyValue(Text(String(repeating: "r", count: 500)))
                ),
                by: world.alice
            )
        },
        .complain: { world in
            WorstCase(
                ComplainRequest(
                    ids: world.users.prefix(100).map(\.rawValue),
                    reason: AnyValue(Text(String(repeating: "r", count: 500)))
                ),
                by: world.alice
            )
        },
        .complainReasonsGet: { WorstCase(ComplainReasonsGetRequest(), by: $0.alice) },
    ]

    // MARK: - Groups

    static let groups: [Opcode: Maker] = [
        .chatUpdate: { world in
            WorstCase(
                ChatUpdateRequest(
                    chatID: world.crowd,
                    theme: Text(String(repeating: "t", count: 100)),
                    description: Text(String(repeating: "d", count: 400)),
                    pinMessageID: world.messages[world.messages.count - 1]
                ),
                by: world.alice
            )
        },
        .chatMembers: {
            WorstCase(ChatMembersRequest(chatID: $0.crowd, count: 200), by: $0.alice)
        },
        .chatMembersUpdate: { world in
            let group = try world.alice.createGroup("Dear", with: [world.bob], cid: world.nextCID())
            return WorstCase(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: Array(world.users.prefix(1_000)),
                    operation: .add
                ),
                by: world.alice
            )
        },
        .chatLeave: { WorstCase(ChatLeaveRequest(chatID: $0.crowd), by: try $0.newMember()) },
        .chatDelete: { world in
            let group = try world.filledGroup()
            return WorstCase(ChatDeleteRequest(chatID: group, forAll: true), by: world.alice)
        },
        .chatClear: { world in
            let group = try world.filledGroup()
            return WorstCase(ChatClearRequest(chatID: group, forAll: true), by: world.alice)
        },
        .chatCheckLink: {
            WorstCase(ChatCheckLinkRequest(link: try $0.crowdLink()), by: $0.alice)
        },
        .linkInfo: { WorstCase(LinkInfoRequest(link: try $0.crowdLink()), by: $0.alice) },
        .chatJoin: { world in
            WorstCase(
                ChatJoinRequest(link: try world.crowdLink()),
                by: try world.server.signUp("Joining")
            )
        },
        .chatSuggest: { WorstCase(ChatSuggestRequest(count: 100), by: $0.alice) },
        .chatReactionsSettingsSet: { world in
            let emojis = ["👍", "🔥", "❤️", "😂"].map { Text($0) }
            return WorstCase(
                ChatReactionsSettingsSetRequest(
                    chatID: world.crowd,
                    isActive: true,
                    count: 8,
                    reactionIDs: emojis
                ),
                by: world.alice
            )
        },
        .chatReactionsSettingsGetByChatId: { world in
            WorstCase(
                ChatReactionsSettingsGetByChatIdRequest(
                    chatIDs: [world.crowd, world.circle] + world.dialogs
                ),
                by: world.alice
            )
        },
    ]

    // MARK: - Drafts, folders, objects

    static let own: [Opcode: Maker] = [
        .draftSave: { world in
            let text = Text(String(repeating: "d", count: 4_000))
            return WorstCase(
                DraftSaveRequest(chatID: world.crowd, draft: NewDraft(text: text)),
                by: world.alice
            )
        },
        .draftDiscard: { world in
            try world.alice.call(DraftSaveRequest(chatID: world.circle, text: "a"))
            return WorstCase(DraftDiscardRequest(chatID: world.circle), by: world.alice)
        },
        .foldersGet: { world in
            try world.makeFolders()
            return WorstCase(FoldersGetRequest(), by: world.alice)
        },
        .foldersGetById: { world in
            let ids = (0..<1_000).map { Text("folder-\($0 % 25)") }
            return WorstCase(FoldersGetByIdRequest(folderIDs: ids), by: world.alice)
        },
        .foldersUpdate: { world in
            WorstCase(
                FoldersUpdateRequest(
                    id: "large",
                    title: "Large",
                    include: Array(world.dialogs.prefix(400))
                ),
                by: world.alice
            )
        },
        .foldersReorder: { world in
            try world.makeFolders()
            let ids = try world.alice.call(FoldersGetRequest()).foldersOrder
            return WorstCase(
                FoldersReorderRequest(foldersOrder: ids.reversed()),
                by: world.alice
            )
        },
        .foldersDelete: { world in
            try world.makeFolders()
            let ids = (0..<20).map { Text("folder-\($0)") }
            return WorstCase(FoldersDeleteRequest(folderIDs: ids), by: world.alice)
        },
        .objPush: { world in
            WorstCase(
                ObjPushRequest(clientNow: 1, ops: try world.operations(200)),
                by: world.alice
            )
        },
        .objPull: { world in
            for _ in 0..<5 {
                try world.alice.call(
                    ObjPushRequest(clientNow: 1, ops: try world.operations(200))
                )
            }
            return WorstCase(ObjPullRequest(since: 0, count: 1_000), by: world.alice)
        },
    ]
}

// MARK: - Steps before a case

extension WorstCaseWorld {
    /// A message that holds almost as much as `maxMessageContentBytes` allows.
    func largest() throws -> NewMessage {
        let elements = (0..<800).map { Element(type: "STRONG", from: Int64($0 * 4), length: 3) }
        return NewMessage(
            cid: nextCID(),
            // As many words as fit: each is indexed.
            text: Text((0..<800).map { "w\(1_000 + $0 % 999)" }.joined(separator: "")),
            elements: elements,
            link: NewLink(type: .reply, messageID: messages[messages.count - 1])
        )
    }

    /// Has everybody react to a message of the crowd.
    func react(to id: MessageID) throws {
        let (crowd, me, everybody) = (crowd, alice.userID, users)
        try run { tx in
            guard let chat = try tx.chat(crowd, visibleTo: me),
                let record = try tx.record(id, in: chat)
            else { return }
            for user in everybody {
                try tx.setReaction(
                    "👍",
                    of: user,
                    to: record,
                    in: chat,
                    leaving: ReactionInfo(
                        totalCount: 1,
                        counters: [ReactionCounter(count: 1, reaction: "👍")]
                    )
                )
            }
        }
    }

    func newMember() throws -> WireClient {
        let client = try server.signUp("Passing")
        try client.call(ChatJoinRequest(link: try crowdLink()))
        return client
    }

    func crowdLink() throws -> Text {
        let chat = try alice.call(ChatUpdateRequest(chatID: crowd, revokePrivateLink: true)).chat
        guard let link = chat.link else { throw WireClient.Failure.unexpected("no link") }
        return link
    }

    /// A group of all users with some hundred messages, which may be destroyed.
    func filledGroup() throws -> ChatID {
        let group = try alice.createGroup("Short-lived", with: [bob], cid: nextCID())
        let (me, everybody) = (alice.userID, users)
        try run { tx in
            guard let chat = try tx.chat(group, visibleTo: me) else { return }
            try tx.add(everybody, to: chat, showingHistory: true)
            for index in 0..<500 {
                let draft = MessageDraft(cid: Int64(index), text: "gone soon")
                _ = try tx.append(draft, to: chat, from: me, on: DeviceID(1))
            }
        }
        advance(ms: 600)
        return group
    }

    func makeFolders() throws {
        for index in 0..<25 {
            try alice.call(
                FoldersUpdateRequest(
                    id: Text("folder-\(index)"),
                    title: "Folder",
                    include: Array(dialogs.prefix(20))
                )
            )
        }
    }

    /// Operations that each create an account object.
    func operations(_ count: Int) throws -> [ObjectOperation] {
        (0..<count).map { _ in
            ObjectOperation(
                opID: nextCID(),
                op: .create,
                id: AnyValue("#l\(nextCID())"),
                type: "account",
                modified: 1,
                fields: NameMap([("name", AnyValue(Text("Home \(nextCID())")))])
            )
        }
    }
}
