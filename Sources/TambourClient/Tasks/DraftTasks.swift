import GRDB
import TambourProtocol

/// Saves a draft for the account's other devices. A draft that the server refuses stays on this
/// device.
struct SaveDraftTask: ClientTask {
    static let kind = "draft.save"

    let chat: Int64
    let text: String
    var replyTo: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }
    // A draft can be discarded only when it is known whether it was saved.
    var mustBeAnswered: Bool { true }
    // The draft stays on this device.
    var tellsRefusal: Bool { false }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.putDraft(text, replyTo: replyTo.map(MessageID.init), in: ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftSaveRequest {
        try tx.execute("INSERT INTO draft_sent VALUES (?, ?, ?)", [chat, text, replyTo])
        let draft = NewDraft(text: Text(text), replyTo: replyTo.map(MessageID.init))
        return DraftSaveRequest(chatID: ChatID(chat), draft: draft)
    }

    func succeeded(_ reply: DraftSaveReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        let subject = Subject.draft(ChatID(chat))
        let isCurrent = core.isCurrent(subject, since: core.taskAsked.transactions, tx)
        try tx.forgetSentDrafts(of: ChatID(chat))
        // Even if another device saved one at the same moment: this draft was on the server.
        try tx.execute(
            """
            INSERT INTO draft_saved VALUES (?, ?, ?, ?, 1) ON CONFLICT (chat) DO UPDATE SET
              text = excluded.text, replyTo = excluded.replyTo, time = excluded.time, isOwn = 1
            WHERE excluded.time >= time
            """,
            [chat, text, replyTo, reply.time]
        )
        tx.learned.insert(subject)
        tx.changes.chats.insert(ChatID(chat))
        if !isCurrent { try core.askAnew(subject, tx) }
    }

    func ended(in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.showDraft(of: ChatID(chat))
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        // If the account is no longer in the group, nothing stays.
        if ChatID(chat).isGroup { try core.refresh(ChatID(chat), tx) }
    }
}

/// Discards a draft that was thrown away or sent.
struct DiscardDraftTask: ClientTask {
    static let kind = "draft.discard"

    let chat: Int64
    /// For tasks queued before `draft_saved` existed: the time up to which drafts are meant; 0 for
    /// any.
    var time: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }
    // The draft that the server still has is shown again.
    var tellsRefusal: Bool { false }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute("DELETE FROM draft WHERE chat = ?", [chat])
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftDiscardRequest {
        // A draft that another device saved, and that was not shown here, is not meant.
        let meant = try tx.int("SELECT time FROM draft_saved WHERE chat = ? AND isOwn", [chat])
        // 1 is before any draft, so nothing is discarded.
        return DraftDiscardRequest(chatID: ChatID(chat), time: meant ?? time ?? 1)
    }

    func succeeded(_ reply: DraftDiscardReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learn(.draft(ChatID(chat)), tx) {
            try tx.execute("DELETE FROM draft_saved WHERE chat = ? AND isOwn", [chat])
            try tx.forgetSentDrafts(of: ChatID(chat))
        }
    }

    func ended(in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.showDraft(of: ChatID(chat))
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.showDraft(of: ChatID(chat))
    }
}

extension StoreTransaction {
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

    /// Shows the server's draft of a chat, unless a change of the draft is queued or in flight
    /// here, or the draft is local to this device.
    func showDraft(of chat: ChatID) throws {
        guard try !isChangingDraft(in: chat) else { return }
        let shown = "SELECT text, replyTo FROM draft WHERE chat = ?"
        let before = try row(shown, [chat.rawValue])
        if let before, try isLocalDraft(before["text"], in: chat) { return }
        try execute("DELETE FROM draft WHERE chat = ?", [chat.rawValue])
        try execute(
            "INSERT INTO draft SELECT chat, text, replyTo FROM draft_saved WHERE chat = ?",
            [chat.rawValue]
        )
        try execute("UPDATE draft_saved SET isOwn = 1 WHERE chat = ?", [chat.rawValue])
        guard try before != row(shown, [chat.rawValue]) else { return }
        changes.drafts.insert(chat)
        changes.chats.insert(chat)
    }

    /// Whether a draft is stored on this device only: a long one, or one in a group that the
    /// account lost.
    func isLocalDraft(_ text: String, in chat: ChatID) throws -> Bool {
        try !Client.fitsMessage(text) || isGone(chat)
    }

    /// Whether saving or discarding a draft is queued or in flight here.
    func isChangingDraft(in chat: ChatID) throws -> Bool {
        try row(
            """
            SELECT 1 FROM task
            WHERE lane = ? AND state IN ('blocked', 'ready', 'waiting', 'running')
            """,
            [draftLane(chat)]
        ) != nil
    }
}

private func draftLane(_ chat: ChatID) -> String { "draft:\(chat)" }
