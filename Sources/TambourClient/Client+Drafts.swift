public import TambourProtocol

/// Drafts: messages that somebody began to write.
extension Client {
    /// A message that is not sent yet, as the account's devices share it.
    public struct Draft: Hashable, Sendable {
        /// Empty when there is no draft.
        public let text: String
        /// The message of the same chat that it will answer.
        public let replyTo: MessageID?

        public init(text: String, replyTo: MessageID? = nil) {
            self.text = text
            self.replyTo = text.isEmpty ? nil : replyTo
        }

        /// No draft.
        public static let empty = Draft(text: "")
    }

    /// The draft of a chat, begun here or on another device of the account.
    public func draft(in chat: ChatID) throws(ClientError) -> Draft {
        try store.read { try $0.draft(of: chat) ?? .empty }
    }

    /// Saves a draft, here and on the account's other devices; an empty text discards it.
    ///
    /// A draft longer than a message stays on this device only, and drafts that other devices save
    /// do not replace it: docs/decisions/0024-long-drafts.md. The same holds for a draft in a group
    /// that the account is no longer in, until it is let in again.
    public func saveDraft(
        _ text: String,
        in chat: ChatID,
        replyingTo message: MessageID? = nil
    ) async throws(ClientError) {
        let draft = Draft(text: text, replyTo: message)
        try await wish { core, tx in
            let known = try tx.draft(of: chat)
            guard draft != .empty else {
                if known != nil { try core.queue(DiscardDraftTask(chat: chat.rawValue), tx) }
                return
            }
            guard known != draft else { return }
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

    /// Discards a draft, unless another one has replaced it.
    public func discardDraft(_ draft: Draft, in chat: ChatID) async throws(ClientError) {
        try await wish { core, tx in try core.discardDraft(draft, in: chat, tx) }
    }
}

extension ClientCore {
    /// Discards a draft, unless another one has replaced it.
    func discardDraft(_ draft: Client.Draft, in chat: ChatID, _ tx: StoreTransaction) throws {
        guard try tx.draft(of: chat) == draft else { return }
        try queue(DiscardDraftTask(chat: chat.rawValue), tx)
    }
}
