import GRDB
import TambourProtocol

/// What was begun to be written, for the account's other devices.
struct SaveDraftTask: ClientTask {
    static let kind = "draft.save"

    let chat: Int64
    let text: String
    var replyTo: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute(
            """
            INSERT INTO draft VALUES (?, ?, ?, -1)
            ON CONFLICT (chat) DO UPDATE SET text = excluded.text, replyTo = excluded.replyTo
            """,
            [chat, text, replyTo]
        )
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftSaveRequest {
        // Until the answer is here the server may hold it, under a time that is not known.
        try tx.execute("UPDATE draft SET time = 0 WHERE chat = ?", [chat])
        let draft = NewDraft(text: Text(text), replyTo: replyTo.map(MessageID.init))
        return DraftSaveRequest(chatID: ChatID(chat), draft: draft)
    }

    func succeeded(_ reply: DraftSaveReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // What was written since stays as it is; what another device said before this is over.
        if try tx.hasNewerDraft(in: ChatID(chat)) {
            return try tx.execute("UPDATE draft SET time = ? WHERE chat = ?", [reply.time, chat])
        }
        core.skippedDrafts.remove(ChatID(chat))
        try core.learn(.draft(ChatID(chat)), tx) {
            try tx.execute(
                """
                INSERT INTO draft VALUES (?, ?, ?, ?) ON CONFLICT (chat) DO UPDATE SET
                  text = excluded.text, replyTo = excluded.replyTo, time = excluded.time
                WHERE excluded.time >= time
                """,
                [chat, text, replyTo, reply.time]
            )
            tx.changes.chats.insert(ChatID(chat))
        }
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.askForSkippedDraft(in: ChatID(chat), tx)
    }
}

/// What was begun to be written is thrown away, or sent.
struct DiscardDraftTask: ClientTask {
    static let kind = "draft.discard"

    let chat: Int64
    /// The draft that is meant, a newer one of another device stays; 0 for whichever there is, -1 for one that was
    /// never sent.
    let time: Int64

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute("DELETE FROM draft WHERE chat = ?", [chat])
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftDiscardRequest {
        // Before the first moment nobody has saved anything.
        DraftDiscardRequest(chatID: ChatID(chat), time: time < 0 ? 1 : time)
    }

    func succeeded(_ reply: DraftDiscardReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // A login may have brought it back meanwhile. One without a time was not known to be saved.
        guard try !tx.hasNewerDraft(in: ChatID(chat)) else { return }
        try core.learn(.draft(ChatID(chat)), tx) {
            try tx.execute(
                "DELETE FROM draft WHERE chat = ? AND (time <= ? OR ? = 0)",
                [chat, time, time]
            )
            tx.changes.chats.insert(ChatID(chat))
        }
        try core.askForSkippedDraft(in: ChatID(chat), tx)
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.askForSkippedDraft(in: ChatID(chat), tx)
    }
}

extension ClientCore {
    /// What was written here has not taken the place of what another device saved meanwhile: that shows now.
    fileprivate func askForSkippedDraft(in chat: ChatID, _ tx: StoreTransaction) throws {
        if skippedDrafts.remove(chat) != nil { try askAnew(.draft(chat), tx) }
    }
}

extension StoreTransaction {
    /// Whether what is written here is saved or still has to be: then it is newer than what others have saved.
    func isSavingDraft(in chat: ChatID) throws -> Bool {
        try row(
            """
            SELECT 1 FROM task
            WHERE lane = ? AND kind = ? AND state IN ('blocked', 'ready', 'waiting', 'running')
            """,
            [draftLane(chat), SaveDraftTask.kind]
        ) != nil
    }

    /// Whether the draft was changed here again since the change that is under way.
    func hasNewerDraft(in chat: ChatID) throws -> Bool {
        try row(
            "SELECT 1 FROM task WHERE lane = ? AND state IN ('blocked', 'ready', 'waiting')",
            [draftLane(chat)]
        ) != nil
    }
}

private func draftLane(_ chat: ChatID) -> String { "draft:\(chat)" }
