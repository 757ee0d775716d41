import Foundation
import GRDB
import TambourProtocol

/// The list of chats.
extension StoreTransaction {
    /// Where a chat's description comes from.
    enum ChatSource {
        /// Asked for by this account: everything in it is meant for it.
        case own
        /// Pushed to all members in the same bytes: what differs between them is missing.
        case push
    }

    /// Stores a chat as the server describes it.
    ///
    /// - Returns: whether it is the account's: not when it was left or deleted, or somebody was taken out of it.
    @discardableResult
    func put(_ chat: Chat, from source: ChatSource, me: UserID) throws -> Bool {
        changes.chats.insert(chat.id)
        switch chat.status {
        case .removed, .left:
            try loseChat(chat.id)
            return false
        default: break
        }
        let known = try row(
            "SELECT status, readMark, unread, lastMessage, data FROM chat WHERE id = ?",
            [chat.id.rawValue]
        )
        var merged = chat
        // A push of a chat comes before the push of its newest message, which is new then.
        let held = known.flatMap { $0["lastMessage"] as Int64? }
        let last = source == .own ? chat.lastMessage?.id.rawValue : held
        var readMark = chat.participants[me] ?? 0
        var unread = chat.newMessages ?? 0
        // When this account joined is not in what is pushed to all.
        if source == .push { merged.joinTime = 0 }
        if source == .push, let known {
            readMark = max(readMark, known["readMark"])
            unread = known["unread"]
            // A push says ACTIVE of a chat that only its receiver has put away, or is about to leave.
            for status in [ChatStatus.hidden, .left] where known["status"] == "\(status.name)" {
                merged.status = status
            }
            if let old = Chat(stored: known["data"]) { merged.keepOwn(of: old) }
        }
        let others = chat.participants.pairs.lazy.filter { $0.0 != me }.map(\.1).max() ?? 0
        merged.lastMessage = nil
        if let partner = chat.id.partner(of: me) { strangers.insert(partner) }
        for (user, _) in chat.participants.pairs { strangers.insert(user) }
        try execute(
            """
            INSERT INTO chat (
              id, type, status, title, lastEventTime, lastMessage, readMark, othersReadMark, unread, data
            ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET
              type = excluded.type, status = excluded.status, title = excluded.title,
              lastEventTime = max(lastEventTime, excluded.lastEventTime),
              lastMessage = excluded.lastMessage,
              readMark = excluded.readMark,
              othersReadMark = max(othersReadMark, excluded.othersReadMark),
              unread = excluded.unread, isStale = 0, data = excluded.data
            """,
            [
                chat.id.rawValue, chat.type.name.description, merged.status.name.description,
                chat.title?.description, chat.lastEventTime, last,
                readMark,
                others, unread, merged.storedBytes,
            ]
        )
        if known == nil { try applySettings(of: [chat.id]) }
        // What was kept of a draft meanwhile was this device's alone.
        if known?["status"] == "\(ChatStatus.removed.name)" { try showDraft(of: chat.id) }
        return true
    }

    /// The chat is not the account's any more. A group stays readable, as far as it is held, and its draft with it,
    /// until somebody puts it away here; what was left here goes.
    ///
    /// - Parameter keepsDraft: as in `removeChat`.
    func loseChat(_ chat: ChatID, keepsDraft: Bool = false) throws {
        let known = try row("SELECT status FROM chat WHERE id = ?", [chat.rawValue])
        let isLeft = known?["status"] == ChatStatus.left.name.description
        guard chat.isGroup, known != nil, !isLeft else {
            return try removeChat(chat, keepsDraft: keepsDraft)
        }
        changes.chats.insert(chat)
        // Should it be the account's again, all of it is asked for.
        try execute(
            "UPDATE chat SET status = ?, unread = 0, isStale = 1 WHERE id = ?",
            [ChatStatus.removed.name.description, chat.rawValue]
        )
        if !keepsDraft { try forgetSavedDraft(of: chat) }
    }

    /// Whether a chat is held that is not the account's any more.
    func isGone(_ chat: ChatID) throws -> Bool {
        try row(
            "SELECT 1 FROM chat WHERE id = ? AND status = ?",
            [chat.rawValue, ChatStatus.removed.name.description]
        ) != nil
    }

    /// - Throws: `ClientError.invalid` for a chat in which the account cannot write any more.
    func requireMembership(of chat: ChatID) throws {
        guard try isGone(chat) else { return }
        throw ClientError.invalid(
            reason: "you are no longer in this chat, so nothing can be sent there"
        )
    }

    /// Forgets a chat and all that is held of it but what waits to be sent there.
    ///
    /// - Parameter keepsDraft: where a login tells of the chat, for drafts have a mark and a resync of their own.
    func removeChat(_ chat: ChatID, keepsDraft: Bool = false) throws {
        changes.chats.insert(chat)
        changes.histories.insert(chat)
        try execute("DELETE FROM chat WHERE id = ?", [chat.rawValue])
        try execute("DELETE FROM message WHERE chat = ?", [chat.rawValue])
        try execute("DELETE FROM history_chunk WHERE chat = ?", [chat.rawValue])
        try execute("DELETE FROM history_tomb WHERE chat = ?", [chat.rawValue])
        if !keepsDraft { try forgetDraft(of: chat) }
    }

    func forgetDraft(of chat: ChatID) throws {
        try execute("DELETE FROM draft WHERE chat = ?", [chat.rawValue])
        try forgetSavedDraft(of: chat)
    }

    /// The server has no draft of a chat; what is shown stays.
    private func forgetSavedDraft(of chat: ChatID) throws {
        try execute("DELETE FROM draft_saved WHERE chat = ?", [chat.rawValue])
        try forgetSentDrafts(of: chat)
    }

    func forgetSentDrafts(of chat: ChatID) throws {
        try execute("DELETE FROM draft_sent WHERE chat = ?", [chat.rawValue])
    }

    /// All settings of chats, as who is muted and what is pinned to the top of the list; a chat may not be in the list yet.
    func put(chatSettings: IDMap<ChatID, AnyValue>) throws {
        var changed: Set<ChatID> = []
        for (chat, settings) in chatSettings.pairs {
            guard let names = NameMap<AnyValue>(stored: Data(settings.bytes.array)) else {
                continue
            }
            // What is not named was taken away, or never set.
            let muted = names["dontDisturbUntil"]?.int ?? 0
            let favourite = names["favIndex"]?.int ?? 0
            try execute(
                "INSERT OR REPLACE INTO chat_setting VALUES (?, ?, ?)",
                [chat.rawValue, muted, favourite]
            )
            changed.insert(chat)
        }
        try applySettings(of: changed)
    }

    /// No chat has settings but those that are put next.
    func forgetChatSettings() throws {
        let chats = try rows("SELECT chat FROM chat_setting")
        try execute("DELETE FROM chat_setting")
        try applySettings(of: Set(chats.map { ChatID($0[0]) }))
    }

    /// Has chats be as the server has them set, and then as they will be set from here.
    func applySettings(of chats: Set<ChatID>) throws {
        let underWay = Dictionary(grouping: try settingsUnderWay()) { ChatID($0.chat) }
        for chat in chats {
            let held = try row(
                "SELECT mutedUntil, favourite FROM chat_setting WHERE chat = ?",
                [chat.rawValue]
            )
            var (mutedUntil, favourite): (Int64, Int64) = (held?[0] ?? 0, held?[1] ?? 0)
            for change in underWay[chat] ?? [] {
                mutedUntil = change.mutedUntil ?? mutedUntil
                favourite = change.favourite ?? favourite
            }
            try execute(
                "UPDATE chat SET mutedUntil = ?, favourite = ? WHERE id = ?",
                [mutedUntil, favourite, chat.rawValue]
            )
            changes.chats.insert(chat)
        }
    }

    /// Somebody has read a chat up to a time.
    ///
    /// - Returns: whether the number of unread messages is not known any more.
    func put(mark: Int64, of user: UserID, in chat: ChatID, isLowered: Bool, me: UserID) throws
        -> Bool
    {
        changes.chats.insert(chat)
        changes.histories.insert(chat)
        if user != me {
            try execute(
                "UPDATE chat SET othersReadMark = max(othersReadMark, ?) WHERE id = ?",
                [mark, chat.rawValue]
            )
            return false
        }
        try execute(
            "UPDATE chat SET readMark = \(isLowered ? "?" : "max(readMark, ?)") WHERE id = ?",
            [mark, chat.rawValue]
        )
        let last = try row("SELECT lastMessage, readMark FROM chat WHERE id = ?", [chat.rawValue])
        guard let last, let newest = last["lastMessage"] as Int64? else { return false }
        guard !isLowered, MessageID(newest).timeMs <= last["readMark"] else { return true }
        try execute("UPDATE chat SET unread = 0 WHERE id = ?", [chat.rawValue])
        return false
    }

    /// A message is new in a chat: its line moves up. Who writes has read what is before it.
    ///
    /// - Returns: whether the number of unread messages is not known any more.
    @discardableResult
    func noteNew(_ message: Message, in chat: ChatID, me: UserID) throws -> Bool {
        changes.chats.insert(chat)
        let isOwn = message.sender == me
        try execute(
            """
            UPDATE chat SET
              unread = CASE WHEN ? THEN 0 WHEN ? <= readMark THEN unread ELSE unread + 1 END,
              readMark = CASE WHEN ? THEN max(readMark, ?) ELSE readMark END,
              othersReadMark = CASE WHEN ? THEN othersReadMark ELSE max(othersReadMark, ?) END,
              lastMessage = ?, lastEventTime = max(lastEventTime, ?),
              status = CASE WHEN status = 'HIDDEN' THEN 'ACTIVE' ELSE status END
            WHERE id = ? AND coalesce(lastMessage, 0) < ?
            """,
            [
                isOwn, message.time, isOwn, message.time, isOwn, message.time, message.id.rawValue,
                message.time,
                chat.rawValue, message.id.rawValue,
            ]
        )
        return db.changesCount == 0
    }
}

extension Chat {
    /// Takes over from an older description what a push to all members does not say.
    fileprivate mutating func keepOwn(of old: Chat) {
        joinTime = old.joinTime
        newMessages = old.newMessages
        lastDelayedUpdateTime = max(lastDelayedUpdateTime, old.lastDelayedUpdateTime)
        lastFireDelayedErrorTime = max(lastFireDelayedErrorTime, old.lastFireDelayedErrorTime)
    }
}
