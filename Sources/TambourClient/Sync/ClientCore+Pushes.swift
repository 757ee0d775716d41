import GRDB
import TambourProtocol

/// What the server tells by itself, in the order in which it happened.
extension ClientCore {
    /// Takes a push over. What this build does not know is skipped: the next login brings what it changed.
    func push(_ opcode: Opcode, _ payload: [UInt8], _ tx: StoreTransaction) throws {
        guard let me = try tx.userID() else { return }
        func read<Push: WirePayload>(_ type: Push.Type) throws -> Push {
            try type.decode(payload, limits: .standard)
        }
        do {
            switch opcode {
            case .notifMessage: try message(read(NotifMessage.self), me, tx)
            case .notifMsgDelete:
                let push = try read(NotifMsgDelete.self)
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
            case .notifTyping:
                let push = try read(NotifTyping.self)
                publish(.typing(push.chatID, push.userID))
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
            case .notifObj: try entitiesTold(read(NotifObj.self), tx)
            case .notifMsgReactionsChanged: try reactions(read(NotifMsgReactionsChanged.self), tx)
            case .notifMsgYouReacted:
                let push = try read(NotifMsgYouReacted.self)
                let revision = try tx.nextRevision()
                try noteChanged(push.chatID, tx)
                try tx.change(push.messageID, in: push.chatID, revision: revision) {
                    $0.reactionInfo = Packed(push.reactionInfo)
                }
            default: break
            }
        } catch is PayloadError {
            // One push that cannot be read must not cost those behind it; its chat is asked for at the next login.
        }
    }

    private func chat(_ chat: Chat, _ me: UserID, _ tx: StoreTransaction) throws {
        let known = try tx.row("SELECT isStale FROM chat WHERE id = ?", [chat.id.rawValue])
        // How much of it was not read is said where a push is meant for one account alone.
        let isOwn = chat.newMessages != nil
        if isOwn {
            guard try putOwn(chat, tx, me) else { return }
            // Its history may have been cleared.
            try askChanges(of: chat.id, tx)
        } else if try !tx.put(chat, from: .push, me: me) {
            forgetHistory(of: chat.id)
        } else if known?["isStale"] != false {
            // What is pushed to all does not say what this account has read of it.
            try refresh(chat.id, tx)
        } else {
            try noteChanged(chat.id, tx)
        }
    }

    /// Takes over a chat as the answer to the task describes it that has just ended.
    func learn(_ chat: Chat, _ tx: StoreTransaction) throws {
        guard let me = try tx.userID() else { return }
        try learn(.chat(chat.id), tx) { _ = try putOwn(chat, tx, me) }
    }

    /// Stores a chat as it is for this account, with its newest message: nobody pushes the account's own acts to
    /// the session that has done them.
    ///
    /// - Returns: whether it is in the list now.
    func putOwn(_ chat: Chat, _ tx: StoreTransaction, _ me: UserID) throws -> Bool {
        let known = try tx.row(
            "SELECT historyGeneration, data FROM chat WHERE id = ?",
            [chat.id.rawValue]
        )
        let joined = known.flatMap { Chat(stored: $0["data"]) }?.joinTime ?? 0
        let hasRejoined = joined > 0 && joined != chat.joinTime
        if hasRejoined {
            // Left and joined anew meanwhile: other messages may be seen than before.
            try tx.removeChat(chat.id, keepsDraft: true)
            histories[chat.id] = nil
        }
        guard try tx.put(chat, from: .own, me: me) else {
            forgetHistory(of: chat.id)
            return false
        }
        if settingsInDoubt.contains(chat.id) {
            askSettings(of: chat.id)
            whenCommitted { [self] in settingsInDoubt.remove(chat.id) }
        }
        if hasRejoined, let generation = known?["historyGeneration"] as Int64? {
            try tx.execute(
                "UPDATE chat SET historyGeneration = ? WHERE id = ?",
                [generation + 1, chat.id.rawValue]
            )
        }
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
            // A page may have brought it before: then it is held, and not counted.
            let isUnclear = try tx.noteNew(push.message, in: chat, me: me)
            if isNew || !isUnclear, try isUnclear || mayBeOwnPost(in: chat, me, tx) {
                try refresh(chat, tx)
            }
        }
        if let mark = push.mark {
            _ = try tx.put(mark: mark, of: me, in: chat, isLowered: false, me: me)
        }
        if let unread = push.unread {
            try tx.execute("UPDATE chat SET unread = ? WHERE id = ?", [unread, chat.rawValue])
        }
    }

    /// What changes now in a chat takes it out of the parts of a delta that are still to be asked for.
    func noteChanged(_ chat: ChatID, _ tx: StoreTransaction) throws {
        let isPartial = try tx.row("SELECT 1 FROM sync_range WHERE kind = 'CHATS'") != nil
        guard isPartial else { return }
        try tx.execute("UPDATE chat SET changesWanted = 1 WHERE id = ?", [chat.rawValue])
        let isAsked = try tx.row("SELECT 1 FROM chat_refresh WHERE chat = ?", [chat.rawValue])
        if isAsked == nil { try refresh(chat, tx) }
    }

    /// What is said in it now moves a chat to the part of the list that was read already.
    func noteMoved(_ chat: ChatID, _ tx: StoreTransaction) throws {
        let known = try tx.row("SELECT isStale FROM chat WHERE id = ?", [chat.rawValue])
        if known?["isStale"] != false { try refresh(chat, tx) }
        try tx.execute("UPDATE chat SET isStale = 0 WHERE id = ?", [chat.rawValue])
    }

    /// A post of a channel does not say who wrote it: this account may have, on another device.
    private func mayBeOwnPost(in chat: ChatID, _ me: UserID, _ tx: StoreTransaction) throws -> Bool
    {
        guard chat.isChannel,
            let row = try tx.row("SELECT data FROM chat WHERE id = ?", [chat.rawValue]),
            let channel = Chat(stored: row[0])
        else { return false }
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
        // It holds what has changed, so the hash of the whole is not known until the next login.
        try tx.set(.configHash, nil)
        if let settings = config.chats {
            try tx.put(chatSettings: settings)
            tx.learned.formUnion(settings.pairs.map { .settings($0.0) })
        }
        tx.changes.account = true
    }

    /// Takes over the reactions to a message as an answer tells them, and asks anew when more was learned
    /// of it since: others may have reacted behind what is answered.
    ///
    /// - Parameter asked: the last revision at the time of the question.
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

    /// Whether nothing was learned of a message since something was asked; so it is of one that is not held.
    ///
    /// - Parameter asked: the last revision at the time of the question.
    func isCurrent(
        _ message: MessageID,
        in chat: ChatID,
        since asked: Int64,
        _ tx: StoreTransaction
    ) throws -> Bool {
        let held = try tx.row(
            "SELECT revision FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        )
        return (held?[0] ?? 0) <= asked
    }

    /// Asks for the reactions to a message, once at a time. When nobody answers, the next login does.
    func askReactions(to message: MessageID, in chat: ChatID, _ tx: StoreTransaction) throws {
        guard !requests.isOpen(.reactions(message)) else { return }
        let asked = try tx.lastRevision()
        let request = MsgGetReactionsRequest(chatID: chat, messageIDs: [message])
        call(request, as: .reactions(message)) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                guard let info = reply.messagesReactions[message] else { return }
                try learn(info, to: message, in: chat, since: asked, tx)
            case .failure:
                try tx.execute("UPDATE chat SET changesWanted = 1 WHERE id = ?", [chat.rawValue])
            }
        }
    }

    private func reactions(_ push: NotifMsgReactionsChanged, _ tx: StoreTransaction) throws {
        let revision = try tx.nextRevision()
        try noteChanged(push.chatID, tx)
        try tx.change(push.messageID, in: push.chatID, revision: revision) { message in
            message.reactionInfo = Packed(
                ReactionInfo(
                    totalCount: push.totalCount,
                    counters: push.counters,
                    yourReaction: message.reactionInfo?.stored?.yourReaction
                )
            )
        }
    }

    /// Asks for a chat as it is for this account, now and after each login until it has come.
    func refresh(_ chat: ChatID, _ tx: StoreTransaction) throws {
        try tx.execute("INSERT OR IGNORE INTO chat_refresh VALUES (?)", [chat.rawValue])
        ask(about: chat)
    }

    /// Asks for the chats that were in doubt when the connection or the program before ended.
    func refreshDoubtful(_ tx: StoreTransaction) throws {
        for row in try tx.rows("SELECT chat FROM chat_refresh ORDER BY chat") {
            ask(about: ChatID(row[0]))
        }
    }

    private func ask(about chat: ChatID) {
        let asked = transactions
        call(ChatInfoRequest(chatIDs: [chat])) { [self] answer, tx in
            let chats: [Chat]
            switch answer {
            case .success(let reply): chats = reply.chats
            case .failure(let error): return try refreshFailed(of: chat, error, tx)
            }
            guard let me = try tx.userID() else { return }
            try tx.execute("DELETE FROM chat_refresh WHERE chat = ?", [chat.rawValue])
            // It is not this account's.
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
                // Saved messages are described before there are any, never read; the list does not have them.
                if chat.id.partner(of: me) == me, chat.participants[me] == 0 {
                    try tx.removeChat(chat.id, keepsDraft: true)
                    forgetHistory(of: chat.id)
                    continue
                }
                _ = try putOwn(chat, tx, me)
            }
        }
    }

    /// A refusal says nothing of the chat: what may pass is asked again after the next login.
    private func refreshFailed(of chat: ChatID, _ error: ClientError, _ tx: StoreTransaction) throws
    {
        guard case .refused(_, _, nil) = error else { return try syncFailed(error, tx) }
        switch error.code?.retry {
        case .later, .afterLogin, nil: return
        case .never, .refresh:
            try tx.execute("DELETE FROM chat_refresh WHERE chat = ?", [chat.rawValue])
        }
    }
}
