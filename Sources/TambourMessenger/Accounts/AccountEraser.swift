import TambourEvents
package import TambourProtocol
package import TambourStore

/// Erases accounts that are due, in small steps. Each step covers a part of a table or of a chat,
/// and requests run between the steps.
///
/// An empty account row remains, so that the id is not reused. In other people's chats, gaps remain
/// in place of the messages. `docs/data.md` lists everything that is erased. After a restart, the
/// erasure continues where it stopped.
package struct AccountEraser: Sendable {
    let limits: Limits
    private let isThere: @Sendable (UserID) -> Bool

    /// - Parameter isThere: returns whether a user is connected now. A connected user counts as
    ///   active, although the store learns about the activity only when the user disconnects.
    package init(limits: Limits, isThere: @escaping @Sendable (UserID) -> Bool = { _ in false }) {
        self.limits = limits
        self.isThere = isThere
    }

    /// Does the next step for any account that is due.
    ///
    /// - Returns: false when there is nothing to do.
    package func step(in tx: WriteTransaction) throws -> Bool {
        let spared = try tx.sparedUntil(
            afterOutage: Int64(limits.outageMs),
            grace: Int64(limits.profileDeleteDelayMs)
        )
        guard let user = try tx.reader.accountToErase(now: tx.ct) else { return false }
        guard let account = try tx.reader.account(user) else {
            // Account rows are never deleted. A planned erasure without an account row is therefore
            // damage. `admin check` reports it, and the eraser skips it.
            try tx.setDue(at: .max, of: user)
            return true
        }
        let end = try tx.reader.end(of: user)
        if end.isErasing {
            _ = try step(of: user, in: tx)
        } else if end.deleteAt > 0 && end.deleteAt <= tx.ct {
            try begin(account, in: tx)
        } else if end.isInactive(account, now: tx.ct) {
            if isThere(user) {
                try tx.setSeen(tx.ct, of: user)
                try tx.noteDue(of: user)
            } else if tx.ct < spared {
                try tx.setDue(at: spared, of: user)
            } else {
                try begin(account, in: tx)
            }
        } else {
            try tx.noteDue(of: user)
        }
        return true
    }

    /// Does the first step of an erasure. After this step, everybody sees the account as erased.
    package func begin(_ account: Account, in tx: WriteTransaction) throws {
        let owners = try tx.reader.owners(of: account, limit: limits.maxContactAudience)
        try tx.beginErasure(of: account)
        try tell(owners.map(\.owner), of: account.id, in: tx)
    }

    /// Does the next step of one user's erasure, after `begin`.
    ///
    /// - Returns: false when this was the last step, or no step was needed.
    package func step(of user: UserID, in tx: WriteTransaction) throws -> Bool {
        let end = try tx.reader.end(of: user)
        guard end.isErasing else { return false }
        var budget = Budget(
            rows: limits.erasedRowsPerStep,
            withdrawals: limits.erasedChatsPerStep
        )
        budget.rows -= try tx.eraseRows(of: user, limit: budget.rows)
        guard budget.rows > 0 else { return true }
        var place = end.erasedUpTo
        let chats = try tx.flushedReader().chatsToErase(of: user, limit: limits.erasedChatsPerStep)
        for key in chats {
            if let chat = try tx.chatToErase(key),
                let last = try erase(user, from: chat, after: place, &budget, in: tx)
            {
                try tx.setErased(upTo: last, of: user)
                return true
            }
            place = MessageID(0)
            try tx.forget(user, in: key)
        }
        if chats.count < limits.erasedChatsPerStep {
            try tx.endErasure(of: user)
            return false
        }
        try tx.setErased(upTo: place, of: user)
        return true
    }

    /// Pushes the erased account to the users who had it as a contact.
    private func tell(_ owners: [UserID], of user: UserID, in tx: WriteTransaction) throws {
        guard let gone = try tx.reader.account(user) else { return }
        for owner in owners {
            let contact = try tx.reader.contact(gone, of: owner)
            let push = NotifContact(contact: contact.user(showingRemoval: true))
            tx.emit(.push(.notifContact(push), to: [owner], except: nil))
        }
    }

    /// The work that a step may still do.
    private struct Budget {
        /// The number of rows to read.
        var rows: Int
        /// The number of reactions and votes to withdraw. Each withdrawal is pushed to the members
        /// of the chat, who may be many.
        var withdrawals: Int

        var mostWithdrawals: Int { min(rows, withdrawals) }

        mutating func withdrew(_ count: Int) {
            rows -= count
            withdrawals -= count
        }
    }

    /// Erases a user from a chat that they are or were a member of.
    ///
    /// - Parameter place: the last message that earlier steps have handled.
    /// - Returns: the place from which a later step continues; nil when nothing is left to erase.
    private func erase(
        _ user: UserID,
        from chat: ChatState,
        after place: MessageID,
        _ budget: inout Budget,
        in tx: WriteTransaction
    ) throws -> MessageID? {
        let isMember = try chat.kind != .comments && tx.member(user, of: chat) != nil
        // Erase a chat that has no other members. Skip a chat of comments, which is erased only
        // together with its channel.
        if chat.kind != .comments, chat.memberCount == (isMember ? 1 : 0) {
            if isMember { try tx.remove([user], from: chat) }
            budget.rows -= try tx.eraseDeserted(chat, limit: budget.rows)
            return budget.rows > 0 ? nil : place
        }
        var place = place
        if let part = try tx.part(of: chat, after: place, limit: budget.rows) {
            let deleted = try tx.remove(after: place, upTo: part.last, sentBy: user, in: chat)
            try tx.tellDeleted(deleted, in: chat, except: nil, limits: limits)
            budget.rows -= part.count
            place = part.last
        }
        guard budget.rows > 0, try takeBackReactions(of: user, in: chat, &budget, tx),
            try takeBackVotes(of: user, in: chat, &budget, tx)
        else { return place }
        // When the erasure ends, the search index must not contain any of the user's words.
        if try tx.refreshIndex(of: chat.key) { return place }
        if isMember { try leave(user, chat, in: tx) }
        return nil
    }

    /// Withdraws the user's reactions to messages of one chat.
    ///
    /// - Returns: whether none is left.
    private func takeBackReactions(
        of user: UserID,
        in chat: ChatState,
        _ budget: inout Budget,
        _ tx: WriteTransaction
    ) throws -> Bool {
        let most = budget.mostWithdrawals
        guard most > 0 else { return false }
        let messages = try tx.messagesReactedTo(by: user, in: chat, limit: most)
        budget.withdrew(messages.count)
        for id in messages {
            guard let record = try tx.record(id, in: chat),
                let reaction = try tx.reader.reaction(of: user, to: record)
            else {
                try tx.dropReactions(to: [id], in: chat)
                continue
            }
            let counters = ReactionRules.counters(
                try record.counters(limits: limits),
                replacing: reaction,
                by: nil
            )
            try tx.setReaction(nil, of: user, to: record, in: chat, leaving: counters)
            try tx.tell(counters, of: record, in: chat, but: user)
        }
        return messages.count < most
    }

    /// Withdraws the user's votes in the polls of one chat.
    ///
    /// - Returns: whether none is left.
    private func takeBackVotes(
        of user: UserID,
        in chat: ChatState,
        _ budget: inout Budget,
        _ tx: WriteTransaction
    ) throws -> Bool {
        let most = budget.mostWithdrawals
        guard most > 0 else { return false }
        let messages = try tx.messagesVotedIn(by: user, in: chat, limit: most)
        budget.withdrew(messages.count)
        for id in messages {
            guard let record = try tx.record(id, in: chat), record.poll != nil else {
                try tx.dropReactions(to: [id], in: chat)
                continue
            }
            let before = try tx.reader.choices(of: user, in: record)
            let changed = try tx.setChoices([], insteadOf: before, of: user, in: record, of: chat)
            try tx.tellPoll(of: changed, in: chat, but: user)
        }
        return messages.count < most
    }

    private func leave(_ user: UserID, _ chat: ChatState, in tx: WriteTransaction) throws {
        if chat.kind.isPair { return try tx.remove([user], from: chat) }
        let heir = chat.owner == user ? try tx.successor(of: user, in: chat) : nil
        if let heir {
            var details = chat.details
            details.owner = heir
            try tx.set(details, of: chat)
            try tx.setPermissions([], of: heir, in: chat)
        }
        if chat.kind == .channel {
            try tx.remove([user], from: chat)
            if heir != nil { try tx.announce(chat, last: nil, except: nil) }
            return
        }
        let (message, previous) = try tx.appendEvent(
            Attach(type: .control, event: "leave", userID: user),
            to: chat,
            by: user
        )
        try tx.remove([user], from: chat)
        try tx.announce(chat, last: message, except: nil)
        try tx.tell(message, previous: previous, in: chat, except: nil)
    }
}
