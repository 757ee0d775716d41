import GRDB
public import TambourProtocol

/// What was begun to be written.
extension Client {
    /// A message that is not sent yet, as the account's devices share it.
    public struct Draft: Hashable, Sendable {
        /// Empty where nothing was begun.
        public let text: String
        /// What it will answer, of the same chat.
        public let replyTo: MessageID?

        public init(text: String, replyTo: MessageID? = nil) {
            self.text = text
            self.replyTo = text.isEmpty ? nil : replyTo
        }

        /// Nothing was begun.
        public static let empty = Draft(text: "")
    }

    /// What was begun to be written in a chat, here or on another device of the account.
    public func draft(in chat: ChatID) throws(ClientError) -> Draft {
        try store.read { db in
            let row = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT text, replyTo FROM draft WHERE chat = ?"),
                arguments: [chat.rawValue]
            )
            return row.map(Draft.init) ?? .empty
        }
    }

    /// Keeps what was begun to be written, here and on the account's other devices; an empty text throws it away.
    ///
    /// What is longer than a message stays on this device alone, and whatever other devices save meanwhile does not take
    /// its place: docs/decisions/0024-long-drafts.md. So does what is for a group that the account is not in any more,
    /// until it is let in again.
    public func saveDraft(
        _ text: String,
        in chat: ChatID,
        replyingTo message: MessageID? = nil
    ) async throws(ClientError) {
        let draft = Draft(text: text, replyTo: message)
        try await wish { core, tx in
            let known = try tx.row("SELECT * FROM draft WHERE chat = ?", [chat.rawValue])
            guard draft != .empty else {
                if known != nil { try core.queue(DiscardDraftTask(chat: chat.rawValue), tx) }
                return
            }
            guard known.map(Draft.init) != draft else { return }
            guard try !tx.isLocalDraft(draft.text, in: chat) else {
                return try tx.putDraft(draft.text, replyTo: draft.replyTo, in: chat)
            }
            try core.queue(
                SaveDraftTask(
                    chat: chat.rawValue,
                    text: draft.text,
                    replyTo: draft.replyTo?.rawValue
                ),
                tx
            )
        }
    }

    /// Throws a draft away, unless another one has taken its place: that one stays.
    public func discardDraft(_ draft: Draft, in chat: ChatID) async throws(ClientError) {
        try await wish { core, tx in try core.discardDraft(draft, in: chat, tx) }
    }
}

extension Client.Draft {
    fileprivate init(_ row: Row) {
        self.init(text: row["text"], replyTo: (row["replyTo"] as Int64?).map(MessageID.init))
    }
}

extension ClientCore {
    /// Throws a draft away, unless another one has taken its place.
    func discardDraft(_ draft: Client.Draft, in chat: ChatID, _ tx: StoreTransaction) throws {
        let known = try tx.row("SELECT * FROM draft WHERE chat = ?", [chat.rawValue])
        guard let known, Client.Draft(known) == draft else { return }
        try queue(DiscardDraftTask(chat: chat.rawValue), tx)
    }
}
