import TambourEvents
import TambourProtocol
import TambourStore

/// Family `drafts`: unsent messages. Wire: protocol-spec/opcodes/drafts.yaml
struct DraftsHandler: Sendable {
    let limits: Limits
    let clock: CommitClock

    /// Identifies a draft: its key in the store, and the chat or user id that its owner sees.
    private struct Target {
        let place: ChatPlace
        /// Nil for a dialog that has not begun.
        let chatID: ChatID?
        let userID: UserID?
    }

    /// Answers `DRAFT_SAVE` (176): replaces the draft of a chat. If the request has no text and
    /// answers no message, it discards the draft.
    ///
    /// - Throws: `chat.not.found`, `user.not.found`. Throws `proto.payload` if the request names no
    ///   chat, or for too many drafts. Throws `too.many.requests` if the drafts of one millisecond
    ///   would not fit a LOGIN.
    /// - Note: A command.
    func draftSave(
        _ request: DraftSaveRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> DraftSaveReply {
        let text = request.draft?.text ?? request.text ?? .empty
        let replyTo = request.draft?.replyTo.flatMap { $0.rawValue == 0 ? nil : $0 }
        let target = try target(
            request.chatID,
            request.userID,
            isDiscarding: text.isEmpty && replyTo == nil,
            caller,
            tx
        )
        let before = try tx.reader.draft(of: caller.userID, for: target.place)
        if text.isEmpty, replyTo == nil {
            if before?.isSaved == true { try discard(target, caller, tx) }
            return DraftSaveReply(time: tx.ct)
        }
        let elements = try ElementRules.packed(
            request.draft?.elements ?? [],
            for: text,
            limits: limits,
            at: "/draft/elements"
        )
        try MessageSizeRules.requireFits(
            text: text,
            elements: elements,
            limits: limits,
            at: "/draft"
        )
        if let before, before.isSaved {
            if before.text == text, before.elements == elements, before.replyTo == replyTo {
                return DraftSaveReply(time: before.saved)
            }
        } else {
            guard try tx.reader.draftCount(of: caller.userID) < limits.maxDrafts else {
                throw RequestError.protoPayload("/draft: limit \(limits.maxDrafts) drafts")
            }
        }
        try requireRoomInCommit(for: caller, tx)
        try tx.saveDraft(
            text: text,
            elements: elements,
            replyTo: replyTo,
            of: caller.userID,
            for: target.place
        )
        let push = NotifDraft(
            chatID: target.chatID,
            userID: target.userID,
            draft: Draft(
                text: text,
                elements: elements,
                replyTo: replyTo,
                time: tx.ct,
                saveTime: tx.ct
            )
        )
        tx.emit(.push(.notifDraft(push), to: [caller.userID], except: caller.connectionID))
        return DraftSaveReply(time: tx.ct)
    }

    /// Answers `DRAFT_DISCARD` (177): discards the draft of a chat, unless it was saved after
    /// `time`.
    ///
    /// - Throws: `chat.not.found`, `user.not.found`, `proto.payload` if the request names no chat.
    /// - Note: A command.
    func draftDiscard(
        _ request: DraftDiscardRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> DraftDiscardReply {
        let target = try target(
            request.chatID,
            request.userID,
            isDiscarding: true,
            caller,
            tx
        )
        guard let draft = try tx.reader.draft(of: caller.userID, for: target.place), draft.isSaved
        else { return DraftDiscardReply() }
        if let time = request.time, time > 0, time < draft.saved { return DraftDiscardReply() }
        try discard(target, caller, tx)
        return DraftDiscardReply()
    }

    /// Limits the total size of the drafts with the same commit time. They must fit one LOGIN,
    /// because a LOGIN never splits the drafts of one commit time. After a refusal the commit clock
    /// advances, so a retry of the caller succeeds.
    private func requireRoomInCommit(for caller: Caller, _ tx: WriteTransaction) throws {
        let saved = try tx.reader.draftBytes(of: caller.userID, savedAt: tx.ct)
        guard saved > limits.maxReplyBytes / 8 else { return }
        clock.settle(through: tx.ct)
        throw RequestError.tooManyRequests.retrying(afterMs: 1)
    }

    private func discard(_ target: Target, _ caller: Caller, _ tx: WriteTransaction) throws {
        try tx.discardDraft(of: caller.userID, for: target.place)
        let push = NotifDraftDiscard(chatID: target.chatID, userID: target.userID, time: tx.ct)
        tx.emit(.push(.notifDraftDiscard(push), to: [caller.userID], except: caller.connectionID))
    }

    /// - Parameter isDiscarding: whether the caller discards the draft. This is possible even if
    ///   the dialog partner is no longer reachable.
    private func target(
        _ chatID: ChatID?,
        _ userID: UserID?,
        isDiscarding: Bool,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) throws -> Target {
        let partner: UserID
        if let chatID {
            guard let other = chatID.partner(of: caller.userID) else {
                let chat = try tx.knownChat(chatID, to: caller.userID)
                return Target(place: .group(chat.key), chatID: chat.wireID, userID: nil)
            }
            partner = other
        } else if let userID {
            partner = userID
        } else {
            throw RequestError.protoPayload("/chatId: missing")
        }
        // The chat of saved messages exists even while it is empty.
        let hasBegun =
            try partner == caller.userID || tx.chat(of: caller.userID, and: partner) != nil
        func hasDraft() throws -> Bool {
            try isDiscarding
                && tx.reader.draft(of: caller.userID, for: .user(partner))?.isSaved == true
        }
        guard
            try hasBegun || tx.reader.isReachable(partner, for: caller.userID) || hasDraft()
        else {
            throw chatID == nil ? RequestError.userNotFound : RequestError.chatNotFound
        }
        return Target(
            place: .user(partner),
            chatID: hasBegun ? .dialog(caller.userID, partner) : nil,
            userID: hasBegun ? nil : partner
        )
    }
}
