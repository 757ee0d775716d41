package import TambourProtocol
package import TambourStore

/// Erases accounts whose time has come, a few chats at a time, so that nobody waits for it.
///
/// What is left is an empty row that keeps the id from being used again, and in the chats of others
/// the places where messages were. `docs/data.md` has the inventory. A restart goes on where it was.
package struct AccountEraser: Sendable {
    let limits: Limits
    private let isThere: @Sendable (UserID) -> Bool

    /// - Parameter isThere: whose app is open: a sign of life, though it is stored when they go.
    package init(limits: Limits, isThere: @escaping @Sendable (UserID) -> Bool = { _ in false }) {
        self.limits = limits
        self.isThere = isThere
    }

    /// Does the next step.
    ///
    /// - Returns: false when there is nothing to do.
    package func step(in tx: WriteTransaction) throws -> Bool {
        guard let next = try tx.reader.accountToErase(now: tx.ct) else { return false }
        guard next.isErasing else {
            guard let account = try tx.reader.account(next.user) else {
                preconditionFailure("an account has a row for ever")
            }
            if next.isInactive, isThere(account.id) {
                try tx.setSeen(tx.ct, of: account.id)
            } else {
                try begin(account, in: tx)
            }
            return true
        }
        _ = try step(of: next.user, in: tx)
        return true
    }

    /// The first step: from then on there is nobody any more.
    package func begin(_ account: Account, in tx: WriteTransaction) throws {
        let owners = try tx.reader.owners(of: account, limit: limits.maxContactAudience)
        try tx.beginErasure(of: account)
        try tell(owners.map(\.owner), of: account.id, in: tx)
    }

    /// A further step for one user.
    ///
    /// - Returns: false when it was the last, or there was none to do.
    package func step(of user: UserID, in tx: WriteTransaction) throws -> Bool {
        guard try tx.reader.end(of: user).isErasing else { return false }
        let chats = try tx.flushedReader().chatsToErase(of: user, limit: limits.erasedChatsPerStep)
        for key in chats {
            if let chat = try tx.chatToErase(key) { try erase(user, from: chat, in: tx) }
            try tx.forget(user, in: key)
        }
        if chats.count < limits.erasedChatsPerStep {
            try tx.endErasure(of: user)
            return false
        }
        return true
    }

    /// Tells those who had a user as a contact that there is nobody any more.
    private func tell(_ owners: [UserID], of user: UserID, in tx: WriteTransaction) throws {
        guard let gone = try tx.reader.account(user) else { return }
        for owner in owners {
            let contact = try tx.reader.contact(gone, of: owner)
            let push = NotifContact(contact: contact.user(showingRemoval: true))
            tx.emit(.push(.notifContact(push), to: [owner], except: nil))
        }
    }

    private func erase(_ user: UserID, from chat: ChatState, in tx: WriteTransaction) throws {
        let deleted = try tx.eraseMessages(of: user, in: chat)
        try takeBackReactions(of: user, in: chat, tx)
        try takeBackVotes(of: user, in: chat, tx)
        let isMember = try tx.member(user, of: chat) != nil
        if !chat.kind.isPair, isMember { try leave(user, chat, in: tx) }
        if chat.kind.isPair, isMember { try tx.remove([user], from: chat) }
        guard chat.memberCount > 0 else { return try tx.eraseDeserted(chat) }
        for start in stride(from: 0, to: deleted.count, by: limits.maxIDsPerRequest) {
            let ids = Array(deleted[start...].prefix(limits.maxIDsPerRequest))
            let push = NotifMsgDelete(chatID: chat.wireID, messageIDs: ids)
            tx.emit(.push(.notifMsgDelete(push), to: chat.memberIDs, except: nil))
        }
    }

    /// The counters of others' messages are told with the next login.
    private func takeBackReactions(
        of user: UserID,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws {
        for id in try tx.messagesReactedTo(by: user, in: chat) {
            guard let record = try tx.record(id, in: chat),
                let reaction = try tx.reader.reaction(of: user, to: record)
            else { continue }
            let counters = ReactionRules.counters(
                try record.counters(limits: limits),
                replacing: reaction,
                by: nil
            )
            try tx.setReaction(nil, of: user, to: record, in: chat, leaving: counters)
        }
    }

    /// The polls of others are told with the next login.
    private func takeBackVotes(
        of user: UserID,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws {
        for id in try tx.messagesVotedIn(by: user, in: chat) {
            guard let record = try tx.record(id, in: chat) else { continue }
            let before = try tx.reader.choices(of: user, in: record)
            _ = try tx.setChoices([], insteadOf: before, of: user, in: record, of: chat)
        }
    }

    private func leave(_ user: UserID, _ chat: ChatState, in tx: WriteTransaction) throws {
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
        guard chat.memberCount > 0 else { return }
        try tx.announce(chat, last: message, except: nil)
        tx.tell(message, previous: previous, in: chat, except: nil)
    }
}
