import Foundation
import GRDB
import TambourProtocol

/// The list of chats.
extension StoreTransaction {
    /// The source of a chat's description.
    enum ChatSource {
        /// The reply to a request of this account. All values apply to this account.
        case own
        /// A push with the same bytes for all members. It lacks the values that differ between
        /// members.
        case push
    }

    /// Stores the server's description of a chat.
    ///
    /// - Returns: false when the account is not in the chat: it left or was removed, or the chat
    ///   was deleted.
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
        // The push of a chat precedes the push of its newest message. The old `lastMessage` stays,
        // so that the message counts as new when its push arrives.
        let held = known.flatMap { $0["lastMessage"] as Int64? }
        let last = source == .own ? chat.lastMessage?.id.rawValue : held
        var readMark = chat.participants[me] ?? 0
        var unread = chat.newMessages ?? 0
        // A push to all members lacks this account's join time.
        if source == .push { merged.joinTime = 0 }
        if source == .push, let known {
            readMark = max(readMark, known["readMark"])
            unread = known["unread"]
            // A push says ACTIVE even if this account has hidden the chat, or is about to leave it.
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
              othersReadMark = excluded.othersReadMark,
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
        // The account is in the group again, and the server's draft replaces this device's draft.
        if known?["status"] == "\(ChatStatus.removed.name)" { try showDraft(of: chat.id) }
        return true
    }

    /// Handles the loss of a chat that the account is no longer in. The stored part of a group
    /// stays readable, with its draft, until the user leaves or hides the group on this device. If
    /// the user has already left the group on this device, the group is deleted. Any other chat is
    /// deleted, too.
    ///
    /// - Parameter keepsDraft: whether the server's draft stays. If the chat is deleted, the shown
    ///   draft then stays, too.
    func loseChat(_ chat: ChatID, keepsDraft: Bool = false) throws {
        let known = try row("SELECT status FROM chat WHERE id = ?", [chat.rawValue])
        let isLeft = known?["status"] == ChatStatus.left.name.description
        guard chat.isGroup, known != nil, !isLeft else {
            return try removeChat(chat, keepsDraft: keepsDraft)
        }
        changes.chats.insert(chat)
        // If the account joins again, the client requests the whole chat.
        try execute(
            "UPDATE chat SET status = ?, unread = 0, isStale = 1 WHERE id = ?",
            [ChatStatus.removed.name.description, chat.rawValue]
        )
        try forgetScheduled(in: chat)
        if !keepsDraft { try forgetSavedDraft(of: chat) }
    }

    /// - Throws: `ClientError.invalid` for a chat that the account is no longer in.
    func requireMembership(of chat: ChatID) throws {
        guard try isGone(place(of: chat).chat) else { return }
        throw ClientError.invalid(
            reason: "you are no longer in this chat, so nothing can be sent there"
        )
    }

    /// Deletes a chat and its data, except messages that are queued for the chat.
    ///
    /// - Parameter keepsDraft: whether the draft stays. Drafts are synchronised separately, so a
    ///   list that lacks the chat says nothing about its draft.
    func removeChat(_ chat: ChatID, keepsDraft: Bool = false) throws {
        for thread in try commentThreads(of: chat) { try removeComments(on: thread.post) }
        changes.chats.insert(chat)
        changes.histories.insert(chat)
        try execute("DELETE FROM chat WHERE id = ?", [chat.rawValue])
        try execute("DELETE FROM message WHERE chat = ?", [chat.rawValue])
        try execute("DELETE FROM history_chunk WHERE chat = ?", [chat.rawValue])
        try execute("DELETE FROM history_tomb WHERE chat = ?", [chat.rawValue])
        try forgetScheduled(in: chat)
        if !keepsDraft { try forgetDraft(of: chat) }
    }

    /// Stores settings of chats, such as muted and pinned. Settings may arrive before their chats.
    func put(chatSettings: IDMap<ChatID, AnyValue>) throws {
        var changed: Set<ChatID> = []
        for (chat, settings) in chatSettings.pairs {
            guard let names = NameMap<AnyValue>(stored: Data(settings.bytes.array)) else {
                continue
            }
            // A missing name means that the setting was removed or never set.
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

    /// Deletes the settings of all chats, before a full set is stored.
    func forgetChatSettings() throws {
        let chats = try rows("SELECT chat FROM chat_setting")
        try execute("DELETE FROM chat_setting")
        try applySettings(of: Set(chats.map { ChatID($0[0]) }))
    }

    /// Applies the server's settings to chats, then the queued changes of this device.
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

    /// Stores the read mark of a user in a chat.
    ///
    /// - Returns: whether the unread count is now unknown.
    func put(mark: Int64, of user: UserID, in chat: ChatID, isLowered: Bool, me: UserID) throws
        -> Bool
    {
        changes.chats.insert(chat)
        changes.histories.insert(chat)
        if user != me {
            guard try isListed(user, in: chat) else { return false }
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

    /// Handles a new message in a chat. The chat moves up in the list. A sender who is a member is
    /// assumed to have read all earlier messages.
    ///
    /// - Returns: whether the unread count is now unknown.
    @discardableResult
    func noteNew(_ message: Message, in chat: ChatID, me: UserID) throws -> Bool {
        changes.chats.insert(chat)
        let isOwn = message.sender == me
        let isReader = try message.sender.map { try isListed($0, in: chat) } ?? false
        try execute(
            """
            UPDATE chat SET
              unread = CASE WHEN ? THEN 0 WHEN ? <= readMark THEN unread ELSE unread + 1 END,
              readMark = CASE WHEN ? THEN max(readMark, ?) ELSE readMark END,
              othersReadMark = CASE WHEN ? THEN max(othersReadMark, ?) ELSE othersReadMark END,
              lastMessage = ?, lastEventTime = max(lastEventTime, ?),
              status = CASE WHEN status = 'HIDDEN' THEN 'ACTIVE' ELSE status END
            WHERE id = ? AND coalesce(lastMessage, 0) < ?
            """,
            [
                isOwn, message.time, isOwn, message.time, isReader && !isOwn, message.time,
                message.id.rawValue, message.time,
                chat.rawValue, message.id.rawValue,
            ]
        )
        return db.changesCount == 0
    }

    /// Returns whether the server's description of a chat lists a user. Read marks of unlisted
    /// users are ignored. For example, the event that a user has left comes from that user, who is
    /// no longer listed.
    private func isListed(_ user: UserID, in chat: ChatID) throws -> Bool {
        try describedChat(chat)?.participants.pairs.contains { $0.0 == user } ?? false
    }

    /// Stores the unread count of a chat.
    func put(unread: Int64, in chat: ChatID) throws {
        try execute("UPDATE chat SET unread = ? WHERE id = ?", [unread, chat.rawValue])
    }

    /// Stores the unread count and the account's read mark of a chat.
    func put(unread: Int64, readMark: Int64, in chat: ChatID) throws {
        try execute(
            "UPDATE chat SET unread = ?, readMark = ? WHERE id = ?",
            [unread, readMark, chat.rawValue]
        )
        changes.chats.insert(chat)
    }

    /// Shows a chat as left or hidden, even before the server confirms it.
    func show(_ status: ChatStatus, of chat: ChatID) throws {
        try execute(
            "UPDATE chat SET status = ? WHERE id = ?",
            [status.name.description, chat.rawValue]
        )
        changes.chats.insert(chat)
    }

    // MARK: - The list

    /// Marks all chats as possibly missing from a full list. Called before that list is stored.
    func distrustList() throws {
        try execute("UPDATE chat SET isStale = 1")
    }

    /// Records that the part of the list that has been received so far contains a chat.
    func noteListed(_ chat: ChatID) throws {
        try execute("UPDATE chat SET isStale = 0 WHERE id = ?", [chat.rawValue])
    }

    // MARK: - Chats in doubt

    /// Records that a chat must be requested until a reply arrives.
    func doubt(_ chat: ChatID) throws {
        try execute("INSERT OR IGNORE INTO chat_refresh VALUES (?)", [chat.rawValue])
    }

    /// Records that a chat no longer needs to be requested: a reply or a final refusal has arrived.
    func settleDoubt(about chat: ChatID) throws {
        try execute("DELETE FROM chat_refresh WHERE chat = ?", [chat.rawValue])
    }
}

extension Chat {
    /// Copies from an older description the values that a push to all members lacks.
    fileprivate mutating func keepOwn(of old: Chat) {
        joinTime = old.joinTime
        newMessages = old.newMessages
        pinnedMessage = old.pinnedMessage
        lastDelayedUpdateTime = max(lastDelayedUpdateTime, old.lastDelayedUpdateTime)
        lastFireDelayedErrorTime = max(lastFireDelayedErrorTime, old.lastFireDelayedErrorTime)
    }
}
