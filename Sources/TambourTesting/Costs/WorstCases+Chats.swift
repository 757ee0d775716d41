import Synchronization
import TambourEvents
import TambourProtocol
import TambourStore

extension WorstCases {
    // MARK: - Reading chats

    static let chats: [Opcode: Maker] = [
        .chatInfo: { world in
            let ids = Array(world.chats.prefix(limits.maxIDsPerRequest))
            return WorstCase(ChatInfoRequest(chatIDs: ids), by: world.alice)
        },
        .chatHistory: { world in
            let middle = world.messages[world.messages.count / 2].timeMs
            return WorstCase(
                ChatHistoryRequest(
                    chatID: world.crowd,
                    from: middle,
                    forward: Int64(limits.maxHistoryPage),
                    backward: Int64(limits.maxHistoryPage),
                    getChat: true
                ),
                by: world.alice
            )
        },
        .chatChanges: { world in
            // Alice's reactions count as changes of the messages. The request therefore finds a
            // full page of changes.
            let count = Int64(limits.maxHistoryPage)
            return WorstCase(
                ChatChangesRequest(chatID: world.crowd, since: 1, count: count),
                by: world.alice
            )
        },
        .chatMark: { world in
            // Marks a chat as unread from its first message. The server must count the unread
            // messages again, without the removed messages.
            let (group, messages) = try world.filledGroup(of: world.size.messages)
            let me = world.alice.userID
            try world.run { tx in
                guard let chat = try tx.chat(group, visibleTo: me) else { return }
                _ = try tx.remove(
                    after: messages[0],
                    upTo: messages[messages.count - 1],
                    sentBy: nil,
                    in: chat
                )
            }
            return WorstCase(
                ChatMarkRequest(type: .setAsUnread, chatID: group, messageID: messages[0]),
                by: world.alice
            )
        },
        .chatsList: {
            WorstCase(ChatsListRequest(count: Int64(limits.maxChatsPage)), by: $0.alice)
        },
        .chatPersonalConfig: {
            WorstCase(ChatPersonalConfigRequest(chatID: $0.crowd), by: $0.alice)
        },
        .chatPinSetVisibility: {
            WorstCase(ChatPinSetVisibilityRequest(chatID: $0.crowd, show: false), by: $0.alice)
        },
        .chatHide: { world in
            _ = try world.send(world.largest(embedding: nil), to: world.dialogs[1])
            return WorstCase(ChatHideRequest(chatID: world.dialogs[1]), by: world.alice)
        },
        .chatSubscribe: { WorstCase(ChatSubscribeRequest(chatID: $0.crowd), by: $0.alice) },
        .chatMedia: { world in
            // Half of the messages have attachments, but none of these attachments is a photo.
            let count = Int64(limits.maxHistoryPage)
            return WorstCase(
                ChatMediaRequest(chatID: world.crowd, attachTypes: [.photo], backward: count),
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

    /// A query with a prefix of each word that occurs in all messages of the crowd.
    private static let query = "lo ip do si am co"

    // MARK: - Messages

    static let messages: [Opcode: Maker] = [
        .msgSend: { world in
            let link = NewLink(type: .reply, messageID: world.large)
            let message = world.largest(embedding: link)
            return WorstCase(MsgSendRequest(chatID: world.crowd, message: message), by: world.alice)
        },
        .msgEdit: { world in
            let message = NewMessage(
                cid: world.nextCID(),
                text: "a",
                link: NewLink(type: .reply, messageID: world.large)
            )
            let large = world.largest(embedding: nil)
            return WorstCase(
                MsgEditRequest(
                    chatID: world.crowd,
                    messageID: try world.send(message, to: world.crowd),
                    text: large.text,
                    elements: large.elements
                ),
                by: world.alice
            )
        },
        .msgTyping: { WorstCase(MsgTypingRequest(chatID: $0.crowd, type: "TEXT"), by: $0.alice) },
        .msgDelete: { world in
            let most = limits.maxIDsPerRequest
            // Removes one message in each of many blocks of the word index, if there are enough
            // blocks.
            let count = max(1_200, min(world.size.messages, most * 16))
            let (group, messages) = try world.filledGroup(of: count)
            let step = max(1, count / most)
            let ids = stride(from: 0, to: messages.count, by: step).map { messages[$0] }.suffix(
                most
            )
            try world.react(to: Array(ids), by: Array(world.users.prefix(10)), in: group)
            return WorstCase(
                MsgDeleteRequest(chatID: group, messageIDs: Array(ids)),
                by: world.alice
            )
        },
        .msgDeleteRange: { world in
            let count = min(world.size.messages, limits.maxDeletedRange)
            let (group, messages) = try world.filledGroup(of: count)
            return WorstCase(
                MsgDeleteRangeRequest(
                    chatID: group,
                    startTime: messages[0].timeMs,
                    endTime: messages[count - 1].timeMs
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
                MsgGetCommentsInfoRequest(chatID: $0.channel, postIDs: $0.posts),
                by: $0.alice
            )
        },
        .msgDeleteUserComments: { world in
            let count = min(world.size.messages, 2 * limits.purgedRowsPerStep)
            let post = try world.commentedPost(with: count)
            return WorstCase(
                MsgDeleteUserCommentsRequest(
                    chatID: world.channel,
                    postID: post,
                    userID: world.bob.userID
                ),
                by: world.alice
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
            try world.react(to: [id], by: world.users, in: world.crowd)
            let count = Int64(limits.maxReactionsPage)
            return WorstCase(
                MsgGetDetailedReactionsRequest(chatID: world.crowd, messageID: id, count: count),
                by: world.alice
            )
        },
        .sendVote: { world in
            WorstCase(
                SendVoteRequest(
                    chatID: world.crowd,
                    messageID: world.polls[0].messageID,
                    pollID: world.polls[0].pollID,
                    answersIDs: (1...limits.maxPollAnswers).map { Int64($0) }
                ),
                by: world.alice
            )
        },
        .votersListByAnswer: { world in
            WorstCase(
                VotersListByAnswerRequest(
                    chatID: world.crowd,
                    messageID: world.polls[0].messageID,
                    pollID: world.polls[0].pollID,
                    answerID: 1,
                    count: Int64(limits.maxVotersPage)
                ),
                by: world.alice
            )
        },
        .getPollUpdates: {
            WorstCase(GetPollUpdatesRequest(chatID: $0.crowd, polls: $0.polls), by: $0.alice)
        },
        .chatComplain: { world in
            WorstCase(
                ChatComplainRequest(
                    ids: Array(world.chats.prefix(limits.maxReportedIDs)),
                    reason: longestReason
                ),
                by: world.alice
            )
        },
        .complain: { world in
            WorstCase(
                ComplainRequest(
                    ids: world.newest.prefix(limits.maxReportedIDs).map(\.rawValue),
                    parentID: world.crowd,
                    reason: longestReason
                ),
                by: world.alice
            )
        },
        .complainReasonsGet: { WorstCase(ComplainReasonsGetRequest(), by: $0.alice) },
    ]

    private static let longestReason = AnyValue(
        Text(String(repeating: "r", count: limits.maxReportBytes - 3))
    )

    /// A forward of the largest message. The new message itself also has the largest content.
    static let largestForward: Maker = { world in
        let link = NewLink(type: .forward, messageID: world.large, chatID: world.crowd)
        let message = world.largest(embedding: link)
        return WorstCase(MsgSendRequest(chatID: world.crowd, message: message), by: world.alice)
    }

    /// A reply to a message that most members cannot see. For each of these members, the server
    /// stores a row.
    static let answerAboveFloors: Maker = { world in
        let message = NewMessage(
            cid: world.nextCID(),
            text: "a",
            link: NewLink(type: .reply, messageID: world.veiled.message)
        )
        return WorstCase(
            MsgSendRequest(chatID: world.veiled.chat, message: message),
            by: world.alice
        )
    }

    /// A message with contact cards. The sender knows these users only because they are members of
    /// the same group.
    static let contactCards: Maker = { world in
        let cards = world.users.prefix(limits.maxAttaches).map {
            NewAttach(type: .contact, contactID: $0)
        }
        let message = NewMessage(cid: world.nextCID(), attaches: cards)
        return WorstCase(
            MsgSendRequest(chatID: world.crowd, message: message),
            by: try world.newMember()
        )
    }

    /// The first comment on a post. It creates the rows for the comments on this post.
    static let firstComment: Maker = { world in
        let post = try world.send(to: world.channel)
        let message = world.largest(embedding: nil)
        return WorstCase(
            MsgSendRequest(chatID: world.channel, postID: post, message: message),
            by: world.alice
        )
    }

    // MARK: - Groups

    static let groups: [Opcode: Maker] = [
        .chatUpdate: { world in
            WorstCase(
                ChatUpdateRequest(
                    chatID: world.crowd,
                    theme: .longest(units: limits.maxTitleUnits),
                    description: .longest(units: limits.maxDescriptionUnits),
                    pinMessageID: try world.send(
                        world.largest(
                            embedding: NewLink(type: .reply, messageID: world.large)
                        ),
                        to: world.crowd
                    )
                ),
                by: world.alice
            )
        },
        .chatMembers: {
            let count = Int64(limits.maxMembersPage)
            return WorstCase(ChatMembersRequest(chatID: $0.crowd, count: count), by: $0.alice)
        },
        .chatMembersUpdate: { world in
            let group = try world.alice.createGroup("Dear", with: [world.bob], cid: world.nextCID())
            return WorstCase(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: Array(world.users.prefix(limits.maxIDsPerRequest)),
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
        .chatSuggest: {
            WorstCase(ChatSuggestRequest(count: Int64(limits.maxSearchPage)), by: $0.alice)
        },
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
                    chatIDs: Array(world.chats.prefix(limits.maxIDsPerRequest))
                ),
                by: world.alice
            )
        },
    ]

    // MARK: - Drafts, folders, entities

    static let own: [Opcode: Maker] = [
        .draftSave: { world in
            let draft = NewDraft(text: .longest(units: limits.maxTextUnits))
            return WorstCase(
                DraftSaveRequest(chatID: world.crowd, draft: draft),
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
            let ids = (0..<limits.maxIDsPerRequest).map { Text("folder-\($0 % 25)") }
            return WorstCase(FoldersGetByIdRequest(folderIDs: ids), by: world.alice)
        },
        .foldersUpdate: { world in
            WorstCase(
                FoldersUpdateRequest(
                    id: "large",
                    title: .longest(units: limits.maxTitleUnits),
                    include: Array(world.chats.prefix(900))
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
                ObjPushRequest(
                    clientNow: 1,
                    ops: try world.operations(limits.maxObjectOperations)
                ),
                by: world.alice
            )
        },
        .objPull: { world in
            for _ in 0..<5 {
                try world.alice.call(
                    ObjPushRequest(clientNow: 1, ops: try world.operations(200))
                )
            }
            let count = Int64(limits.maxObjectsPage)
            return WorstCase(ObjPullRequest(since: 0, count: count), by: world.alice)
        },
    ]
}

// MARK: - Steps before a case

extension WorstCaseWorld {
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

    /// Creates a group of all users for cases that destroy the group. The group has as many
    /// messages as one step of a purge removes.
    func filledGroup() throws -> ChatID {
        try filledGroup(of: Limits.standard.purgedRowsPerStep).chat
    }

    /// Creates a group of all users with `count` messages, for cases that destroy the group.
    func filledGroup(of count: Int) throws -> (chat: ChatID, messages: [MessageID]) {
        let group = try alice.createGroup("Short-lived", with: [bob], cid: nextCID())
        let (me, everybody) = (alice.userID, users)
        let found = Mutex<[MessageID]>([])
        for first in stride(from: 0, to: count, by: 1_000) {
            try run { tx in
                guard let chat = try tx.chat(group, visibleTo: me) else { return }
                if first == 0 { try tx.add(everybody, to: chat, showingHistory: true) }
                for index in first..<min(first + 1_000, count) {
                    let content = MessageContent(cid: Int64(index), text: "gone soon")
                    let id = try tx.append(content, to: chat, from: me, on: DeviceID(1)).record.id
                    found.withLock { $0.append(id) }
                }
            }
            advance(ms: 1_001)
        }
        return (group, found.withLock { $0 })
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

    /// Returns `count` operations. Each operation creates an entity of type `account`.
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

    /// Returns as many operations as one push request may contain. Each operation creates an
    /// entity, and together they fill a frame.
    func largestCreations() throws -> [ObjectOperation] {
        let limits = Limits.standard
        let bytes = limits.maxFrameBytes / limits.maxObjectOperations - 256
        let text = AnyValue(Text(String(repeating: "x", count: bytes)))
        return try operations(limits.maxObjectOperations).map {
            var operation = $0
            operation.fields?.pairs.append(
                (Text("settings"), AnyValue(NameMap([(Text("x"), text)])))
            )
            return operation
        }
    }

    /// Returns as many deletions as one push request may contain. The first deleted entity has as
    /// many descendants as one step deletes.
    func deletions() throws -> [ObjectOperation] {
        let limits = Limits.standard
        func push(_ operations: [ObjectOperation]) throws -> [ObjectResult] {
            try alice.call(ObjPushRequest(clientNow: 1, ops: operations)).results
        }
        let results = try push(operations(limits.maxObjectOperations))
        let parent = results[0].id.map { AnyValue($0) }
        for first in stride(from: 0, to: limits.purgedRowsPerStep, by: limits.maxObjectOperations) {
            let count = min(limits.maxObjectOperations, limits.purgedRowsPerStep - first)
            _ = try push(
                operations(count).map {
                    var operation = $0
                    operation.type = "profile"
                    operation.parent = parent
                    return operation
                }
            )
        }
        return results.map { result in
            ObjectOperation(
                opID: nextCID(),
                op: .delete,
                id: AnyValue(result.id ?? 0),
                type: "account",
                base: result.version ?? 0,
                modified: 1
            )
        }
    }
}
