import GRDB
import TambourProtocol

/// What was begun to be written, for the account's other devices. What the server refuses stays here.
struct SaveDraftTask: ClientTask {
    static let kind = "draft.save"

    let chat: Int64
    let text: String
    var replyTo: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }
    // It can only be thrown away by who knows whether it was saved.
    var mustBeAnswered: Bool { true }
    // It is still there.
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
        // Also when another device has saved one in the same moment: this one was there.
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
        // Of a group that the account is not in any more, nothing stays.
        if ChatID(chat).isGroup { try core.refresh(ChatID(chat), tx) }
    }
}

/// What was begun to be written is thrown away, or sent.
struct DiscardDraftTask: ClientTask {
    static let kind = "draft.discard"

    let chat: Int64
    /// Of tasks that were queued when nothing else told which draft is meant: up to which one, 0 for any.
    var time: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }
    var tellsRefusal: Bool { false }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute("DELETE FROM draft WHERE chat = ?", [chat])
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftDiscardRequest {
        // What another device has saved meanwhile, and was not shown here, is not meant.
        let meant = try tx.int("SELECT time FROM draft_saved WHERE chat = ? AND isOwn", [chat])
        // Before the first moment nobody has saved anything.
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
    /// Keeps a draft on this device.
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

    /// Shows what the server has as the draft of a chat, unless something is done to the draft here, or it is one
    /// that this device alone has.
    func showDraft(of chat: ChatID) throws {
        guard try !isChangingDraft(in: chat) else { return }
        let shown = "SELECT text, replyTo FROM draft WHERE chat = ?"
        let before = try row(shown, [chat.rawValue])
        if try before.map({ try isLocalDraft($0["text"], in: chat) }) == true { return }
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

    /// Whether a draft is kept on this device alone: a long one, and one in a group that was lost.
    func isLocalDraft(_ text: String, in chat: ChatID) throws -> Bool {
        try !Client.fitsMessage(text) || isGone(chat)
    }

    /// Whether a draft is saved or thrown away here, or still has to be.
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
