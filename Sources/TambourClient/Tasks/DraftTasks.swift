import GRDB
import TambourProtocol

/// What was begun to be written, for the account's other devices.
struct SaveDraftTask: ClientTask {
    static let kind = "draft.save"

    let chat: Int64
    let text: String
    var replyTo: Int64?

    var lane: String? { "draft:\(chat)" }
    var coalescingKey: String? { "draft" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute(
            """
            INSERT INTO draft VALUES (?, ?, ?, 0)
            ON CONFLICT (chat) DO UPDATE SET text = excluded.text, replyTo = excluded.replyTo
            """,
            [chat, text, replyTo]
        )
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftSaveRequest {
        let draft = NewDraft(text: Text(text), replyTo: replyTo.map(MessageID.init))
        return DraftSaveRequest(chatID: ChatID(chat), draft: draft)
    }

    func succeeded(_ reply: DraftSaveReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute(
            "UPDATE draft SET time = max(time, ?) WHERE chat = ? AND text = ?",
            [reply.time, chat, text]
        )
    }
}

/// What was begun to be written is thrown away, or sent.
struct DiscardDraftTask: ClientTask {
    static let kind = "draft.discard"

    let chat: Int64
    /// The draft that is meant; a newer one of another device stays.
    let time: Int64

    var lane: String? { "draft:\(chat)" }
    var coalescingKey: String? { "draft" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute("DELETE FROM draft WHERE chat = ?", [chat])
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftDiscardRequest {
        DraftDiscardRequest(chatID: ChatID(chat), time: time)
    }

    func succeeded(_ reply: DraftDiscardReply, in core: ClientCore, _ tx: StoreTransaction) throws {
    }
}
