public import TambourProtocol

/// Drafts: messages that the user has begun to write.
extension Client {
    /// An unsent message, which all devices of the account share.
    public struct Draft: Hashable, Sendable {
        /// Empty when there is no draft.
        public let text: String
        /// The message of the same chat that the draft answers.
        public let replyTo: MessageID?

        public init(text: String, replyTo: MessageID? = nil) {
            self.text = text
            self.replyTo = text.isEmpty ? nil : replyTo
        }

        /// No draft.
        public static let empty = Draft(text: "")
    }

    /// Returns the draft of a chat, from this device or another device of the account.
    public func draft(in chat: ChatID) throws(ClientError) -> Draft {
        try store.read { try $0.draft(of: chat) ?? .empty }
    }

    /// Saves a draft on this device and on the account's other devices. An empty text discards the
    /// draft.
    ///
    /// Three kinds of drafts stay on this device only, and drafts from other devices do not replace
    /// them: a draft longer than the longest allowed message, a draft of a comment, and a draft in
    /// a group while the account is no longer in the group. See docs/decisions/0024-long-drafts.md.
    public func saveDraft(
        _ text: String,
        in chat: ChatID,
        replyingTo message: MessageID? = nil
    ) async throws(ClientError) {
        let draft = Draft(text: text, replyTo: message)
        try await wish { core, tx in
            let known = try tx.draft(of: chat)
            guard draft != .empty else {
                if let known { try core.discardDraft(known, in: chat, tx) }
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

    /// Discards a draft, unless another draft has replaced it.
    public func discardDraft(_ draft: Draft, in chat: ChatID) async throws(ClientError) {
        try await wish { core, tx in try core.discardDraft(draft, in: chat, tx) }
    }
}

extension ClientCore {
    /// Discards a draft, unless another draft has replaced it.
    func discardDraft(_ draft: Client.Draft, in chat: ChatID, _ tx: StoreTransaction) throws {
        guard try tx.draft(of: chat) == draft else { return }
        // The server stores no drafts of comments.
        if try tx.commentThread(chat) != nil { return try tx.hideDraft(of: chat) }
        try queue(DiscardDraftTask(chat: chat.rawValue), tx)
    }
}
