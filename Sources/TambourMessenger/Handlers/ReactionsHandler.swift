import TambourEvents
import TambourProtocol
import TambourStore

/// Family `reactions`: emojis below messages. Wire: protocol-spec/opcodes/reactions.yaml
struct ReactionsHandler: Sendable {
    let limits: Limits

    /// Answers `MSG_REACTION` (178): sets the caller's reaction to a message. A user has at most
    /// one reaction to each message, so a new reaction replaces the old one.
    ///
    /// - Throws: `chat.not.found`, `not.found` for a message that the caller does not see,
    ///   `not.allowed` in a dialog with a user whom the caller has blocked,
    ///   `error.message.like.unknown.reaction`, `error.reactions.not.allowed`,
    ///   `error.too-many-likes`.
    /// - Note: A command.
    func msgReaction(
        _ request: MsgReactionRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgReactionReply {
        let chat = try tx.known(request.chatID, request.postID, to: caller.userID)
        try ChatRules.require(.react, of: caller.userID, in: chat, tx)
        let record = try message(request.messageID, in: chat, caller, tx)
        try ChatRules.requireOpen(chat, for: caller.userID)
        let reaction = request.reaction.id
        guard request.reaction.reactionType == "EMOJI", ReactionRules.isEmoji(reaction) else {
            throw RequestError.errorMessageLikeUnknownReaction
        }
        let settings =
            try chat.details.reactions?.value(limits: limits)
            ?? ReactionRules.standard(of: chat.wireID, limits)
        guard ReactionRules.allows(reaction, settings) else {
            throw RequestError.errorReactionsNotAllowed
        }
        let before = try tx.reader.reaction(of: caller.userID, to: record)
        let counters = try record.counters(limits: limits)
        let after = ReactionRules.counters(counters, replacing: before, by: reaction)
        let isNewKind = !counters.counters.contains { $0.reaction == reaction }
        guard !isNewKind || after.counters.count <= settings.count else {
            throw RequestError.errorTooManyLikes
        }
        return MsgReactionReply(
            reactionInfo: try set(reaction, before: before, after, to: record, chat, caller, tx)
        )
    }

    /// Answers `MSG_CANCEL_REACTION` (179): removes the caller's reaction, if there is one.
    ///
    /// - Throws: `chat.not.found`, `not.found`.
    /// - Note: A command.
    func msgCancelReaction(
        _ request: MsgCancelReactionRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgCancelReactionReply {
        // Do not check the right to react, because users who have lost it can still withdraw their
        // reactions.
        let chat = try tx.known(request.chatID, request.postID, to: caller.userID)
        let record = try message(request.messageID, in: chat, caller, tx)
        let before = try tx.reader.reaction(of: caller.userID, to: record)
        let counters = try record.counters(limits: limits)
        let after = ReactionRules.counters(counters, replacing: before, by: nil)
        return MsgCancelReactionReply(
            reactionInfo: try set(nil, before: before, after, to: record, chat, caller, tx)
        )
    }

    private func message(
        _ id: MessageID,
        in chat: ChatState,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) throws -> MessageRecord {
        guard let record = try tx.message(id, in: chat, visibleTo: caller.userID) else {
            throw RequestError.notFound
        }
        return record
    }

    /// Stores a changed reaction and pushes the new counters. The caller's devices also receive the
    /// caller's own reaction.
    private func set(
        _ reaction: Text?,
        before: Text?,
        _ counters: ReactionInfo,
        to record: MessageRecord,
        _ chat: ChatState,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) throws -> ReactionInfo {
        var seen = counters
        seen.yourReaction = reaction
        guard reaction != before else { return seen }
        try tx.setReaction(
            reaction,
            of: caller.userID,
            to: record,
            in: chat,
            leaving: counters
        )
        try tx.tell(counters, of: record, in: chat, but: caller.userID)
        let reacted = NotifMsgYouReacted(
            chatID: chat.wireID,
            messageID: record.id,
            postID: chat.post?.id,
            reactionInfo: seen
        )
        tx.emit(
            .push(.notifMsgYouReacted(reacted), to: [caller.userID], except: caller.connectionID)
        )
        return seen
    }

    // MARK: - Reading

    /// Answers `MSG_GET_REACTIONS` (180): returns the reactions to the requested messages. Omits
    /// messages that the caller does not see.
    ///
    /// - Throws: `chat.not.found`; `not.found` for a post that the caller does not see.
    /// - Note: A query.
    func msgGetReactions(
        _ request: MsgGetReactionsRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> MsgGetReactionsReply {
        let view = try snapshot.known(request.chatID, request.postID, of: caller.userID)
        var infos: [(MessageID, ReactionInfo)] = []
        for id in Set(request.messageIDs).sorted() {
            guard let record = try visible(id, in: view, snapshot) else { continue }
            infos.append((id, try snapshot.reactionInfo(of: record, for: caller.userID)))
        }
        return MsgGetReactionsReply(messagesReactions: IDMap(infos))
    }

    /// Answers `MSG_GET_DETAILED_REACTIONS` (181): returns a page of the users who reacted, in the
    /// order of their ids.
    ///
    /// - Throws: `chat.not.found`, `not.found`, `not.allowed` when the caller may not see who
    ///   reacted in this chat.
    /// - Note: A query.
    func msgGetDetailedReactions(
        _ request: MsgGetDetailedReactionsRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> MsgGetDetailedReactionsReply {
        let view = try snapshot.knownView(request.chatID, of: caller.userID)
        try ChatRules.require(.seeReactions, of: view)
        guard let record = try visible(request.messageID, in: view, snapshot) else {
            throw RequestError.notFound
        }
        let asked = request.count ?? Int64(limits.reactionsPageSize)
        let page = try snapshot.reactions(
            to: record,
            after: UserID(request.marker ?? 0),
            limit: Int(clamping: min(max(1, asked), Int64(limits.maxReactionsPage)))
        )
        return MsgGetDetailedReactionsReply(
            reactions: page.reactions,
            reactionInfo: try snapshot.reactionInfo(of: record, for: caller.userID),
            marker: page.next?.rawValue
        )
    }

    private func visible(
        _ id: MessageID,
        in view: ChatView,
        _ snapshot: ReadTransaction
    ) throws -> MessageRecord? {
        try snapshot.visibleRecord(id, in: view.key, for: view.viewer, above: view.floor)
    }

    // MARK: - Settings

    /// Answers `CHAT_REACTIONS_SETTINGS_SET` (257): sets the reactions that a chat allows. Existing
    /// reactions stay.
    ///
    /// - Throws: `chat.not.found`, `not.allowed`, `error.message.like.unknown.reaction`.
    /// - Note: A command.
    func chatReactionsSettingsSet(
        _ request: ChatReactionsSettingsSetRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatReactionsSettingsSetReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        try ChatRules.require(.changeReactions, of: caller.userID, in: chat, tx)
        guard request.reactionIDs.allSatisfy(ReactionRules.isEmoji) else {
            throw RequestError.errorMessageLikeUnknownReaction
        }
        let most = Int64(limits.maxReactionKinds)
        let asked = request.count ?? most
        let before = try chat.details.reactions?.value(limits: limits)
        var settings = ChatReactionsSettings(
            chatID: chat.wireID,
            isActive: request.isActive ?? request.value ?? true,
            count: asked < 1 ? most : min(asked, most),
            reactionIDs: request.reactionIDs,
            included: request.included,
            updateTime: before?.updateTime
        )
        guard settings != before else {
            return ChatReactionsSettingsSetReply(chatReactionsSettings: settings)
        }
        settings.updateTime = tx.ct
        var details = chat.details
        details.reactions = Packed(settings)
        try tx.set(details, of: chat)
        try tx.announce(chat, last: nil, except: caller.connectionID)
        return ChatReactionsSettingsSetReply(chatReactionsSettings: settings)
    }

    /// Answers `CHAT_REACTIONS_SETTINGS_GET_BY_CHAT_ID` (258): returns the reaction settings of the
    /// requested chats. Omits chats of which the caller is not a member, and chats that do not fit
    /// the reply.
    ///
    /// - Note: A query.
    func chatReactionsSettingsGetByChatId(
        _ request: ChatReactionsSettingsGetByChatIdRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatReactionsSettingsGetByChatIdReply {
        var seen: Set<ChatID> = []
        var settings: [ChatReactionsSettings] = []
        var budget = caller.replyBudget
        for id in request.chatIDs where seen.insert(id).inserted {
            guard let view = try snapshot.view(id, for: caller.userID) else { continue }
            budget -= 100 + (view.reactions?.bytes.count ?? 0)
            if budget < 0 { break }
            settings.append(
                try view.reactions?.value(limits: limits)
                    ?? ReactionRules.standard(of: view.wireID, limits)
            )
        }
        return ChatReactionsSettingsGetByChatIdReply(chatReactionsSettings: settings)
    }
}
