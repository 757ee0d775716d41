import TambourProtocol

/// Pushes from the server, in the order in which the events happened.
extension ClientCore {
    /// Applies a push. Skips an unknown opcode; the next login returns the skipped changes.
    func push(_ opcode: Opcode, _ payload: [UInt8], _ tx: StoreTransaction) throws {
        guard let me = try tx.userID() else { return }
        func read<Push: WirePayload>(_ type: Push.Type) throws -> Push {
            try type.decode(payload, limits: .standard)
        }
        do {
            switch opcode {
            case .notifMessage:
                let push = try read(NotifMessage.self)
                if let post = push.postID { return try comment(push, on: post, tx) }
                try message(push, me, tx)
            case .notifMsgDelete:
                let push = try read(NotifMsgDelete.self)
                if let post = push.postID {
                    return try forgetComments(push.messageIDs, on: post, tx)
                }
                try forget(push.messageIDs, in: push.chatID, tx)
                try noteChanged(push.chatID, tx)
            case .notifMsgDeleteRange:
                let push = try read(NotifMsgDeleteRange.self)
                try empty(
                    push.chatID,
                    fromMs: push.startTime,
                    throughMs: push.endTime,
                    tx
                )
            case .notifChat:
                try chat(read(NotifChat.self).chat, me, tx)
            case .notifMark: try mark(read(NotifMark.self), me, tx)
            case .notifContact:
                let contact = try read(NotifContact.self).contact
                try tx.put(contact, isContact: true)
                tx.learned.insert(.person(contact.id))
            case .notifProfile:
                try tx.put(read(NotifProfile.self).profile.contact)
                tx.learned.insert(.person(me))
                tx.changes.account = true
            case .notifPresence:
                let push = try read(NotifPresence.self)
                try tx.put(push.presence, of: push.userID)
                tx.learned.insert(.presence(push.userID))
            case .notifTyping:
                let push = try read(NotifTyping.self)
                publish(.typing(push.postID.map { .comments(on: $0) } ?? push.chatID, push.userID))
            case .notifConfig: try config(read(NotifConfig.self).config, tx)
            case .notifDraft:
                let push = try read(NotifDraft.self)
                guard let chat = push.chatID ?? push.userID.map({ .dialog(me, $0) }) else { return }
                let saved = ChatDrafts(saved: IDMap([(chat, push.draft)]))
                try tx.put(Drafts(chats: saved), me: me)
                tx.learned.insert(.draft(chat))
            case .notifDraftDiscard:
                let push = try read(NotifDraftDiscard.self)
                guard let chat = push.chatID ?? push.userID.map({ .dialog(me, $0) }) else { return }
                let discarded = ChatDrafts(discarded: IDMap([(chat, push.time)]))
                try tx.put(Drafts(chats: discarded), me: me)
                tx.learned.insert(.draft(chat))
            case .notifMsgDelayed: try scheduled(read(NotifMsgDelayed.self), tx)
            case .notifFolders: try folders(read(NotifFolders.self), tx)
            case .notifObj: try entities.told(read(NotifObj.self), tx)
            case .notifMsgReactionsChanged: try reactions(read(NotifMsgReactionsChanged.self), tx)
            case .notifMsgYouReacted:
                let push = try read(NotifMsgYouReacted.self)
                let revision = try tx.nextRevision()
                if push.postID == nil { try noteChanged(push.chatID, tx) }
                let chat = push.postID.map { ChatID.comments(on: $0) } ?? push.chatID
                try tx.change(push.messageID, in: chat, revision: revision) {
                    $0.reactionInfo = Packed(push.reactionInfo)
                }
            default: break
            }
        } catch is PayloadError {
            // A push that cannot be decoded must not stop later pushes. The next login returns the
            // changes.
        }
    }

    private func chat(_ chat: Chat, _ me: UserID, _ tx: StoreTransaction) throws {
        let known = try tx.chatRow(chat.id)
        // Only a push to this account alone contains the unread count.
        let isOwn = chat.newMessages != nil
        if isOwn {
            guard try putOwn(chat, tx, me) else { return }
            // The push may mean that the history was cleared.
            try askChanges(of: chat.id, tx)
        } else if try !tx.put(chat, from: .push, me: me) {
            forgetHistory(of: chat.id)
        } else if known?.isStale != false || chat.mayChangePin {
            // A push to all members lacks this account's read mark and the pinned message.
            try refresh(chat.id, tx)
        } else {
            try noteChanged(chat.id, tx)
        }
    }

    /// Stores a chat from the reply to the task that has just ended.
    func learn(_ chat: Chat, _ tx: StoreTransaction) throws {
        guard let me = try tx.userID() else { return }
        try learn(.chat(chat.id), tx) { _ = try putOwn(chat, tx, me) }
    }

    /// Stores this account's view of a chat, with its newest message. Replies are stored this way
    /// too, because the server does not push the account's own actions to the session that
    /// performed them.
    ///
    /// - Returns: whether the chat is now in the list.
    func putOwn(_ chat: Chat, _ tx: StoreTransaction, _ me: UserID) throws -> Bool {
        let known = try tx.describedChat(chat.id)
        // Pushes do not contain the join time, so the stored time is 0 while only pushes have
        // described the group. These pushes may belong to an earlier membership.
        let joined = known?.joinTime
        let hasRejoined =
            joined != nil && joined != chat.joinTime && (joined != 0 || chat.id.isGroup)
        let generation = try hasRejoined ? tx.chatRow(chat.id)?.historyGeneration : nil
        if hasRejoined {
            // The account left and joined again in the meantime. It may now see other messages than
            // before.
            try tx.removeChat(chat.id, keepsDraft: true)
            histories.forget(chat.id)
        }
        guard try tx.put(chat, from: .own, me: me) else {
            forgetHistory(of: chat.id)
            return false
        }
        if known == nil, let partner = chat.id.partner(of: me), try tx.isKnown(partner) {
            askPresence(of: [partner])
        }
        if subjects.lacksSettings(of: chat.id) {
            askSettings(of: chat.id)
            whenCommitted { [self] in subjects.setLacksSettings(of: chat.id, false) }
        }
        let hasFailed = try noteScheduled(
            in: chat.id,
            changedMs: chat.lastDelayedUpdateTime,
            failedMs: chat.lastFireDelayedErrorTime,
            tx
        )
        if hasFailed { try readScheduled(of: chat.id, tx) }
        if let generation { try tx.put(historyGeneration: generation + 1, of: chat.id) }
        // While the account was not a member, this device's draft was kept. The server's draft now
        // replaces it.
        if hasRejoined { try tx.showDraft(of: chat.id) }
        try learnNewest(chat.lastMessage, after: chat.prevMessageID, in: chat.id, tx)
        return true
    }

    private func message(_ push: NotifMessage, _ me: UserID, _ tx: StoreTransaction) throws {
        let chat = push.chatID
        try noteChanged(chat, tx)
        if let described = push.chat {
            try self.chat(described, me, tx)
            if described.status == .left || described.status == .removed { return }
        } else {
            try noteMoved(chat, tx)
        }
        switch push.message.status {
        case .removed: try forget([push.message.id], in: chat, tx)
        case .edited: try learnEdit(of: push.message, in: chat, tx)
        default:
            let isNew = try learn(
                push.message,
                after: .known(push.prevMessageID),
                in: chat,
                isPushed: true,
                tx
            )
            // If a page contained the message before this push, the message is stored but not
            // counted.
            let isUnclear = try tx.noteNew(push.message, in: chat, me: me)
            if isNew || !isUnclear, try isUnclear || mayBeOwnPost(in: chat, me, tx) {
                try refresh(chat, tx)
            }
        }
        if let mark = push.mark {
            _ = try tx.put(mark: mark, of: me, in: chat, isLowered: false, me: me)
        }
        if let unread = push.unread {
            try tx.put(unread: unread, in: chat)
        }
    }

    /// Refreshes a chat that changed while ranges of a delta are still missing. The change moves
    /// the chat out of these ranges, so they would not return it.
    func noteChanged(_ chat: ChatID, _ tx: StoreTransaction) throws {
        guard try tx.hasRanges(of: .chats) else { return }
        try tx.noteMissingChanges(of: chat)
        if try !tx.isDoubtful(chat) { try refresh(chat, tx) }
    }

    /// Refreshes a chat if a new message moved it into the part of the list that has been received
    /// so far.
    func noteMoved(_ chat: ChatID, _ tx: StoreTransaction) throws {
        if try tx.chatRow(chat)?.isStale != false { try refresh(chat, tx) }
        try tx.noteListed(chat)
    }

    /// Returns whether this account may have written a post of a channel on another device. Posts
    /// do not name their author.
    private func mayBeOwnPost(in chat: ChatID, _ me: UserID, _ tx: StoreTransaction) throws -> Bool
    {
        guard chat.isChannel, let channel = try tx.describedChat(chat) else { return false }
        return channel.owner == me || channel.admins?.contains(me) == true
    }

    private func mark(_ push: NotifMark, _ me: UserID, _ tx: StoreTransaction) throws {
        let isUnknown = try tx.put(
            mark: push.mark,
            of: push.userID,
            in: push.chatID,
            isLowered: push.setAsUnread,
            me: me
        )
        if isUnknown { try refresh(push.chatID, tx) } else { try noteChanged(push.chatID, tx) }
    }

    private func config(_ config: LoginConfig, _ tx: StoreTransaction) throws {
        // The push contains only changes. The hash of all settings is therefore unknown until the
        // next login.
        try tx.set(.configHash, nil)
        if let settings = config.chats {
            try tx.put(chatSettings: settings)
            tx.learned.formUnion(settings.pairs.map { .settings($0.0) })
        }
        tx.changes.account = true
    }

    /// Stores the reactions to a message from a reply. If the stored message has changed since the
    /// request, requests them again, because another user may have reacted after the server built
    /// the reply.
    ///
    /// - Parameter asked: the last revision at the time of the request.
    func learn(
        _ reactions: ReactionInfo,
        to message: MessageID,
        in chat: ChatID,
        since asked: Int64,
        _ tx: StoreTransaction
    ) throws {
        let isCurrent = try isCurrent(message, in: chat, since: asked, tx)
        try tx.change(message, in: chat, revision: tx.nextRevision()) {
            $0.reactionInfo = Packed(reactions)
        }
        if !isCurrent { try askReactions(to: message, in: chat, tx) }
    }

    /// Returns whether the stored version of a message is older than a request; also true if the
    /// message is not stored.
    ///
    /// - Parameter asked: the last revision at the time of the request.
    func isCurrent(
        _ message: MessageID,
        in chat: ChatID,
        since asked: Int64,
        _ tx: StoreTransaction
    ) throws -> Bool {
        (try tx.revision(of: message, in: chat) ?? 0) <= asked
    }

    /// Requests the reactions to a message, unless that request is in flight. After a failure,
    /// marks the chat so that its changes are requested later.
    func askReactions(to message: MessageID, in chat: ChatID, _ tx: StoreTransaction) throws {
        guard !wire.requests.isOpen(.reactions(message)) else { return }
        let asked = try tx.lastRevision()
        let place = try tx.place(of: chat)
        let request = MsgGetReactionsRequest(
            chatID: place.chat,
            postID: place.post,
            messageIDs: [message]
        )
        call(request, as: .reactions(message)) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                guard let info = reply.messagesReactions[message] else { return }
                try learn(info, to: message, in: chat, since: asked, tx)
            case .failure: try tx.noteMissingChanges(of: chat)
            }
        }
    }

    private func reactions(_ push: NotifMsgReactionsChanged, _ tx: StoreTransaction) throws {
        let revision = try tx.nextRevision()
        if push.postID == nil { try noteChanged(push.chatID, tx) }
        let chat = push.postID.map { ChatID.comments(on: $0) } ?? push.chatID
        try tx.change(push.messageID, in: chat, revision: revision) { message in
            message.reactionInfo = Packed(
                ReactionInfo(
                    totalCount: push.totalCount,
                    counters: push.counters,
                    yourReaction: message.reactionInfo?.stored?.yourReaction
                )
            )
        }
    }

    /// Requests this account's view of a chat, now and after each login until a reply arrives.
    func refresh(_ chat: ChatID, _ tx: StoreTransaction) throws {
        try tx.doubt(chat)
        ask(about: chat)
    }

    /// Requests the chats that were in doubt when the last connection or process ended.
    func refreshDoubtful(_ tx: StoreTransaction) throws {
        for chat in try tx.doubtfulChats() { ask(about: chat) }
    }

    private func ask(about chat: ChatID) {
        let asked = subjects.transactions
        call(ChatInfoRequest(chatIDs: [chat])) { [self] answer, tx in
            let chats: [Chat]
            switch answer {
            case .success(let reply): chats = reply.chats
            case .failure(let error): return try refreshFailed(of: chat, error, tx)
            }
            guard let me = try tx.userID() else { return }
            try tx.settleDoubt(about: chat)
            // If the reply lacks the chat, the account is not in the chat.
            if !chats.contains(where: { $0.id == chat }) {
                guard isCurrent(.chat(chat), since: asked, tx) else { return try refresh(chat, tx) }
                try tx.loseChat(chat, keepsDraft: !chat.isGroup)
                forgetHistory(of: chat)
            }
            for chat in chats {
                guard isCurrent(.chat(chat.id), since: asked, tx) else {
                    try refresh(chat.id, tx)
                    continue
                }
                // The server describes the chat of saved messages even before its first message.
                // The list does not show the empty chat.
                if chat.id.partner(of: me) == me, chat.participants[me] == 0 {
                    try tx.removeChat(chat.id, keepsDraft: true)
                    forgetHistory(of: chat.id)
                    continue
                }
                _ = try putOwn(chat, tx, me)
            }
        }
    }

    /// Handles a failed refresh. A refusal proves nothing about the chat. A temporary refusal is
    /// retried after the next login.
    private func refreshFailed(of chat: ChatID, _ error: ClientError, _ tx: StoreTransaction) throws
    {
        guard case .refused(_, _, nil) = error else { return try syncFailed(error, tx) }
        switch error.code?.retry {
        case .later, .afterLogin, nil: return
        case .never, .refresh: try tx.settleDoubt(about: chat)
        }
    }
}

extension Chat {
    /// Whether the pinned message may have changed. The push of a changed chat omits the pinned
    /// message, because some members may not see it. `lastMessage` is nil unless the push follows
    /// an event or a new message.
    fileprivate var mayChangePin: Bool {
        guard let lastMessage else { return true }
        let event = lastMessage.shownAttaches.first?.event
        return event == "pin" || event == "unpin"
    }
}
