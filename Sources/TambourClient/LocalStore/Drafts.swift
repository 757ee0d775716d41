import GRDB
import TambourProtocol

/// The shown drafts, the server's drafts, and the drafts that were sent for saving and have no
/// reply yet.
extension StoreTransaction {
    // MARK: - The shown draft

    /// Stores a draft on this device.
    func putDraft(_ text: String, replyTo: MessageID?, in chat: ChatID) throws {
        try execute(
            """
            INSERT INTO draft VALUES (?, ?, ?)
            ON CONFLICT (chat) DO UPDATE SET text = excluded.text, replyTo = excluded.replyTo
            """,
            [chat.rawValue, text, replyTo?.rawValue]
        )
        changes.chats.insert(chat)
    }

    /// Deletes the shown draft. The server's draft stays.
    func hideDraft(of chat: ChatID) throws {
        try deleteShownDraft(of: chat)
        changes.chats.insert(chat)
    }

    /// Shows the server's draft of a chat. Does nothing while a change of the draft is queued or in
    /// flight on this device, or if the shown draft stays on this device only.
    func showDraft(of chat: ChatID) throws {
        guard try !isChangingDraft(in: chat) else { return }
        let before = try draft(of: chat)
        if let before, try isLocalDraft(before.text, in: chat) { return }
        try deleteShownDraft(of: chat)
        try execute(
            "INSERT INTO draft SELECT chat, text, replyTo FROM draft_saved WHERE chat = ?",
            [chat.rawValue]
        )
        try execute("UPDATE draft_saved SET isOwn = 1 WHERE chat = ?", [chat.rawValue])
        guard try before != draft(of: chat) else { return }
        changes.drafts.insert(chat)
        changes.chats.insert(chat)
    }

    private func deleteShownDraft(of chat: ChatID) throws {
        try execute("DELETE FROM draft WHERE chat = ?", [chat.rawValue])
    }

    // MARK: - Drafts in flight

    /// Records a draft that is sent for saving. Until the reply arrives, it is unknown whether the
    /// server has stored the draft.
    func noteSentDraft(_ text: String, replyTo: MessageID?, in chat: ChatID) throws {
        try execute(
            "INSERT INTO draft_sent VALUES (?, ?, ?)",
            [chat.rawValue, text, replyTo?.rawValue]
        )
    }

    private func forgetSentDrafts(of chat: ChatID) throws {
        try execute("DELETE FROM draft_sent WHERE chat = ?", [chat.rawValue])
    }

    // MARK: - The server's draft

    /// Records that the server has saved a draft of this device.
    func noteSavedDraft(_ text: String, replyTo: MessageID?, timeMs: Int64, in chat: ChatID) throws
    {
        try forgetSentDrafts(of: chat)
        // Set `isOwn` even if another device saved a draft at the same moment: the draft of this
        // device was on the server, too.
        try execute(
            """
            INSERT INTO draft_saved VALUES (?, ?, ?, ?, 1) ON CONFLICT (chat) DO UPDATE SET
              text = excluded.text, replyTo = excluded.replyTo, time = excluded.time, isOwn = 1
            WHERE excluded.time >= time
            """,
            [chat.rawValue, text, replyTo?.rawValue, timeMs]
        )
        changes.chats.insert(chat)
    }

    /// Records that the server has discarded the draft that was shown here.
    func noteDiscardedDraft(in chat: ChatID) throws {
        try execute("DELETE FROM draft_saved WHERE chat = ? AND isOwn", [chat.rawValue])
        try forgetSentDrafts(of: chat)
    }

    /// Deletes the shown draft and the server's draft.
    func forgetDraft(of chat: ChatID) throws {
        try deleteShownDraft(of: chat)
        try forgetSavedDraft(of: chat)
    }

    /// Records that the server has no draft of a chat. The shown draft stays.
    func forgetSavedDraft(of chat: ChatID) throws {
        try execute("DELETE FROM draft_saved WHERE chat = ?", [chat.rawValue])
        try forgetSentDrafts(of: chat)
    }

    /// Deletes the stored copies of the server's drafts of all chats, before a full set is stored.
    func forgetSavedDrafts() throws {
        let chats = try rows("SELECT chat FROM draft_saved")
        // With these rows, this device recognises its own drafts when the server sends them again.
        try execute(
            "INSERT INTO draft_sent SELECT chat, text, replyTo FROM draft_saved WHERE isOwn"
        )
        try execute("DELETE FROM draft_saved")
        for row in chats { try showDraft(of: ChatID(row[0])) }
    }

    /// Applies the drafts that the server has saved or discarded for the account's devices.
    ///
    /// - Parameter isWanted: whether to store the draft of a chat.
    func put(_ drafts: Drafts, me: UserID, where isWanted: (ChatID) -> Bool = { _ in true }) throws
    {
        func change(_ chat: ChatID, _ body: () throws -> Void) throws {
            let saved = "SELECT text, replyTo, time FROM draft_saved WHERE chat = ?"
            let before = try row(saved, [chat.rawValue])
            try body()
            // A draft that the server refused stays visible until the server's draft changes.
            if try before != row(saved, [chat.rawValue]) { try showDraft(of: chat) }
        }
        func put(_ draft: Draft, in chat: ChatID) throws {
            guard isWanted(chat) else { return }
            try change(chat) {
                try execute(
                    """
                    INSERT INTO draft_saved VALUES (?1, ?2, ?3, ?4, EXISTS (
                      SELECT 1 FROM draft_sent WHERE chat = ?1 AND text = ?2 AND replyTo IS ?3
                    )) ON CONFLICT (chat) DO UPDATE SET
                      isOwn = excluded.isOwn
                        OR isOwn AND text = excluded.text AND replyTo IS excluded.replyTo,
                      text = excluded.text, replyTo = excluded.replyTo, time = excluded.time
                    WHERE excluded.time >= time
                    """,
                    [chat.rawValue, "\(draft.text)", draft.replyTo?.rawValue, draft.time]
                )
            }
        }
        func discard(_ time: Int64, in chat: ChatID) throws {
            guard isWanted(chat) else { return }
            try change(chat) {
                try execute(
                    "DELETE FROM draft_saved WHERE chat = ? AND time <= ?",
                    [chat.rawValue, time]
                )
            }
        }
        // When a dialog begins, the server replaces the draft for the person by a draft in the
        // dialog. It reports both changes.
        for (chat, time) in drafts.chats?.discarded.pairs ?? [] { try discard(time, in: chat) }
        for (user, time) in drafts.users?.discarded.pairs ?? []
        where drafts.chats?.saved[.dialog(me, user)] == nil {
            try discard(time, in: .dialog(me, user))
        }
        for (chat, draft) in drafts.chats?.saved.pairs ?? [] { try put(draft, in: chat) }
        for (user, draft) in drafts.users?.saved.pairs ?? [] {
            try put(draft, in: .dialog(me, user))
        }
    }
}

extension StoreReading {
    /// Returns the shown draft of a chat, if any.
    func draft(of chat: ChatID) throws -> Client.Draft? {
        try row("SELECT text, replyTo FROM draft WHERE chat = ?", [chat.rawValue]).map { row in
            let replyTo: Int64? = row["replyTo"]
            return Client.Draft(text: row["text"], replyTo: replyTo.map(MessageID.init))
        }
    }

    /// Returns the time of the server's draft, if this device has shown or sent that draft.
    func timeOfOwnSavedDraft(in chat: ChatID) throws -> Int64? {
        try int("SELECT time FROM draft_saved WHERE chat = ? AND isOwn", [chat.rawValue])
    }

    /// Returns whether a draft is stored on this device only: a long draft, a draft of a comment,
    /// or a draft in a group that the account is no longer in.
    func isLocalDraft(_ text: String, in chat: ChatID) throws -> Bool {
        try !Client.fitsMessage(text) || isGone(chat) || commentThread(chat) != nil
    }

    /// Returns whether saving or discarding a draft is queued or in flight on this device.
    func isChangingDraft(in chat: ChatID) throws -> Bool {
        try !openTasks(inLane: draftLane(chat)).isEmpty
    }
}
