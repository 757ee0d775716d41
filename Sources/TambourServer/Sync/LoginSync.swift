import TambourProtocol
import TambourStore

/// What LOGIN brings: everything, or what changed after the client's marks.
struct LoginSync: Sendable {
    let limits: Limits
    let presence: PresenceRegistry
    let settings: ServiceConfig

    /// Answers `LOGIN` (19).
    ///
    /// A mark that is absent, 0 or negative asks for everything; one beyond `time` counts as `time`.
    /// A delta that would not fit one reply is answered in full: the newest chats and a marker to
    /// page the others with CHATS_LIST. Changed contacts, drafts, and chats that were left, come oldest first
    /// where they would fill more than their part of a reply, and `time` stays below what is left: the next login
    /// brings it.
    /// - Parameter time: safe time read before the snapshot opened; becomes the client's next mark.
    /// - Returns: the reply, and the dialog partners whose presence is followed from now on: the session
    ///   ends that by `unwatch`.
    func login(
        _ request: LoginRequest,
        from requester: Requester,
        time: Int64,
        in snapshot: ReadTransaction
    ) throws -> (reply: LoginReply, partners: [UserID]) {
        let caller = requester.requireCaller()
        guard let account = try snapshot.account(caller.userID) else {
            throw RequestError.loginToken
        }
        let chatsMark = mark(request.chatsSync, time)
        let contactsMark = mark(request.contactsSync, time)
        let draftsMark = mark(request.draftsSync, time)
        let partners = try snapshot.recentPartners(of: caller.userID, limit: limits.presenceWatch)

        var budget = limits.maxReplyBytes
        var time = time
        var contacts: [User] = []
        if let contactsMark {
            // What changed is never left out: the client would keep what it has for ever.
            let changed = try snapshot.changedContacts(of: caller.userID, since: contactsMark)
            let part = oldest(changed.map { ($0.account, $0.changed) }, budget: budget / 2) {
                $0.wireSizeEstimate
            }
            contacts = part.items.map { $0.user(showingPhone: false) }
            time = min(time, part.complete)
            budget -= part.items.reduce(0) { $0 + $1.wireSizeEstimate }
        }
        let drafts = try drafts(of: caller, since: draftsMark, budget: budget / 4, in: snapshot)
        time = min(time, drafts.complete)
        budget -= drafts.bytes
        var gone: [Chat] = []
        if let chatsMark {
            // Nor is what is no more: also a list in full says nothing of it.
            let left = try snapshot.leftChats(of: caller.userID, since: chatsMark)
            let part = oldest(left.map { ($0.chat, $0.changed) }, budget: budget / 2) {
                $0.wireSizeEstimate
            }
            gone = part.items
            time = min(time, part.complete)
            budget -= gone.reduce(0) { $0 + $1.wireSizeEstimate }
        }
        var chats: [Chat] = []
        var marker: Int64 = 0
        let delta =
            try chatsMark.map {
                try changedChats(for: caller, since: $0, budget: budget, in: snapshot)
            } ?? nil
        if let delta {
            chats = delta
        } else {
            let asked = request.chatsCount ?? Int64(limits.chatsPageSize)
            let count = Int(min(max(1, asked), Int64(limits.maxChatsPage)))
            (chats, marker) = try snapshot.chatsPage(
                for: caller.userID,
                before: .max,
                limit: count,
                budget: budget
            )
        }
        if contactsMark == nil {
            budget -= chats.reduce(0) { $0 + $1.wireSizeEstimate }
            // Who holds the chats already gets all partners, who gets chats those of what is sent.
            let accounts =
                delta == nil
                ? try contactAccounts(of: chats, for: caller, in: snapshot)
                : try snapshot.changedContacts(of: caller.userID, since: 0).map(\.account)
            for account in accounts {
                budget -= account.wireSizeEstimate
                // What does not fit is asked for by CONTACT_INFO when it is shown.
                if budget < 0 { break }
                contacts.append(account.user(showingPhone: false))
            }
        }
        // Followed before it is read: what changes in between is pushed behind the reply.
        presence.watch(partners.map(\.id), by: caller.userID)
        let reply = LoginReply(
            profile: Profile(contact: account.user(showingPhone: true)),
            chats: chats + gone,
            chatMarker: delta == nil ? marker : nil,
            contacts: contacts,
            presence: presence.presence(of: partners, since: mark(request.presenceSync, time) ?? 0),
            drafts: drafts.drafts,
            config: settings.config(for: requester.features, unlessKnown: request.configHash),
            time: time
        )
        return (reply, partners.map(\.id))
    }

    /// Answers `LOGIN2` (8): the second part of a login for clients that ask for it.
    ///
    /// `contactsSync` -1 wants no contacts, 0 all of them, a time those that changed after it. The
    /// reply has no mark to go on from: what does not fit, the oldest changes, is left to LOGIN, whose
    /// contacts come in parts, and to CONTACT_INFO.
    func login2(
        _ request: Login2Request,
        from requester: Requester,
        in snapshot: ReadTransaction
    ) throws -> Login2Reply {
        let caller = requester.requireCaller()
        guard let account = try snapshot.account(caller.userID) else {
            throw RequestError.loginToken
        }
        var contacts: [User] = []
        let since = request.contactsSync ?? 0
        if since >= 0 {
            var budget = limits.maxReplyBytes
            for (account, _) in try snapshot.changedContacts(of: caller.userID, since: since) {
                // Both names of the list are sent.
                budget -= 2 * account.wireSizeEstimate
                if budget < 0 { break }
                contacts.append(account.user(showingPhone: false))
            }
        }
        return Login2Reply(
            profile: Profile(contact: account.user(showingPhone: true)),
            contactInfos: contacts,
            contacts: contacts,
            config: settings.config(for: requester.features, unlessKnown: request.configHash)
        )
    }

    /// Nil for a mark that asks for everything.
    private func mark(_ asked: Int64?, _ time: Int64) -> Int64? {
        guard let asked, asked > 0 else { return nil }
        return min(asked, time)
    }

    /// The changes that were there first, whole commits, and the clock up to which they are complete.
    ///
    /// - Parameters:
    ///   - changed: the newest change first, each with its clock.
    ///   - budget: bytes that they may take.
    func oldest<Item>(
        _ changed: [(item: Item, changed: Int64)],
        budget: Int,
        size: (Item) -> Int
    ) -> (items: [Item], complete: Int64) {
        var budget = budget
        let firstLeftOut = changed.last { change in
            budget -= size(change.item)
            return budget < 0
        }
        guard let cut = firstLeftOut?.changed else { return (changed.map(\.item), .max) }
        let before = changed.filter { $0.changed < cut }
        guard before.isEmpty else { return (before.map(\.item), cut - 1) }
        // One commit changed more than that: it is not split.
        return (changed.filter { $0.changed == cut }.map(\.item), cut)
    }

    /// Every chat that changed after `since`, or nil when they take more than `budget` bytes.
    private func changedChats(
        for caller: Caller,
        since: Int64,
        budget: Int,
        in snapshot: ReadTransaction
    ) throws -> [Chat]? {
        var budget = budget
        var chats: [Chat] = []
        for view in try snapshot.changedViews(for: caller.userID, since: since) {
            let chat = try snapshot.chat(view)
            budget -= chat.wireSizeEstimate
            if budget < 0 { return nil }
            chats.append(chat)
        }
        return chats
    }

    /// The partners of the dialogs that are sent.
    private func contactAccounts(
        of chats: [Chat],
        for caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> [Account] {
        try chats.compactMap { chat in
            guard let partner = chat.id.partner(of: caller.userID), partner != caller.userID else {
                return nil
            }
            return try snapshot.account(partner)
        }
    }
}
