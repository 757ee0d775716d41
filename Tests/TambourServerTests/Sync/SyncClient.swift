import TambourEvents
import TambourMessenger
import TambourProtocol
import TambourStore

/// One installation of a user's app. It stores the data that it receives, and merges the deltas of
/// logins into it.
final class SyncClient {
    let user: UserID
    let installation: String
    private(set) var chats: [ChatID: Chat] = [:]
    private(set) var contacts: [UserID: User] = [:]
    /// Drafts and folders.
    private(set) var own = SyncOwn()
    /// The scheduled messages of each chat. `updated` is the chat's `lastDelayedUpdateTime` at the
    /// time of the fetch.
    private var delayed: [ChatID: (updated: Int64, messages: [Message])] = [:]
    /// The `time` of the last login after which the client had read everything; nil before the
    /// first such login.
    private(set) var mark: Int64?
    /// The number of changes on each page of SYNC_MORE; nil if the client does not have the
    /// capability `sync-more`.
    private let morePage: Int64?
    /// Whether the client has read all pages of SYNC_MORE that the last login left.
    private(set) var isComplete = true
    /// The number of SYNC_MORE pages that the client has read.
    private(set) var morePages = 0
    private(set) var logins = 0
    /// The login token and the caller of the session; nil if the client is signed out.
    var session: (token: String, caller: Caller)?

    init(user: UserID, installation: String, morePage: Int64? = nil) {
        self.user = user
        self.installation = installation
        self.morePage = morePage
    }

    var origin: SessionOrigin {
        SessionOrigin(installation: installation, client: "model", info: "", address: "::1")
    }

    func requester() -> Requester {
        Requester(caller: session?.caller, origin: origin, token: session?.token)
    }

    /// Logs in with the client's mark and merges the reply.
    ///
    /// - Parameters:
    ///   - count: The number of chats on the first page. The client gets the other chats by
    ///     CHATS_LIST or SYNC_MORE.
    ///   - pages: The number of SYNC_MORE pages that the client reads before the connection breaks.
    func login(_ machine: SyncMachine, count: Int64, pages: Int = .max) throws {
        while let session, try loginOnce(session, machine, count: count, pages: pages) {}
    }

    /// - Returns: Whether the reply may have had no room for some drafts. In this case, the next
    ///   login contains these drafts.
    private func loginOnce(
        _ session: (token: String, caller: Caller),
        _ machine: SyncMachine,
        count: Int64,
        pages: Int
    ) throws -> Bool {
        let reply = try machine.login(
            LoginRequest(
                token: session.token,
                chatsSync: mark ?? -1,
                contactsSync: mark ?? -1,
                draftsSync: mark ?? -1,
                chatsCount: count
            ),
            from: session.caller,
            knowing: morePage == nil ? [] : .syncMore
        )
        if morePage == nil, reply.more != nil { throw Divergence("more, and nobody asked") }
        merge(reply.chats, reply.contacts, reply.drafts)
        isComplete = try readMore(reply.more ?? [], pages: pages, machine)
        guard isComplete else { return false }
        try own.mergeFolders(of: self, machine)
        for chat in try rest(after: reply.chatMarker, machine) { chats[chat.id] = chat }
        try fetchDelayed(machine)
        let mayFollow = reply.drafts != nil && mark ?? 0 < reply.time
        mark = reply.time
        logins += 1
        let unknown = partners(in: chats.keys).filter { contacts[$0] == nil }
        guard !unknown.isEmpty else { return mayFollow }
        guard reply.chatMarker != nil else {
            throw Divergence("a delta brought a dialog without its contact: \(unknown)")
        }
        // Some contacts did not fit on the first page. A client requests such a contact when it
        // first shows the contact.
        let asked = try machine.ask(
            .contactInfo(ContactInfoRequest(contactIDs: unknown)),
            from: requester(),
            as: ContactInfoReply.self
        )
        for contact in asked.contacts { contacts[contact.id] = contact }
        return mayFollow
    }

    private func merge(_ chats: [Chat], _ contacts: [User], _ drafts: Drafts?) {
        own.merge(drafts)
        for chat in chats { self.chats[chat.id] = chat.status == .removed ? nil : chat }
        for contact in contacts {
            self.contacts[contact.id] = contact.status == "REMOVED" ? nil : contact
        }
    }

    /// Reads the changes that a login left out.
    ///
    /// - Returns: Whether the client has read everything; false if `pages` was too small or the
    ///   server demanded a full login.
    private func readMore(
        _ ranges: [SyncRange],
        pages: Int,
        _ machine: SyncMachine
    ) throws -> Bool {
        var pages = pages
        for range in ranges {
            var end: Int64? = range.upTo
            while let upTo = end {
                guard pages > 0 else { return false }
                pages -= 1
                let page = try machine.ask(
                    .syncMore(
                        SyncMoreRequest(
                            kind: range.kind,
                            since: range.since,
                            upTo: upTo,
                            count: morePage
                        )
                    ),
                    from: requester(),
                    as: SyncMoreReply.self
                )
                guard page.resync != true else {
                    (mark, chats, contacts, own) = (nil, [:], [:], SyncOwn())
                    return false
                }
                merge(page.chats, page.contacts, page.drafts)
                morePages += 1
                end = page.upTo
                guard end ?? 0 < upTo else { throw Divergence("SYNC_MORE does not go on") }
            }
        }
        return true
    }

    /// Returns the state that a client gets if it stores nothing and requests everything now.
    func fresh(
        _ machine: SyncMachine
    ) throws -> (chats: [ChatID: Chat], contacts: [UserID: User], own: SyncOwn) {
        guard let session else { return ([:], [:], SyncOwn()) }
        let reply = try machine.login(
            LoginRequest(
                token: session.token,
                chatsSync: -1,
                contactsSync: -1,
                chatsCount: 200
            ),
            from: session.caller
        )
        let all = reply.chats + (try rest(after: reply.chatMarker, machine))
        var chats: [ChatID: Chat] = [:]
        for chat in all {
            guard chat.status != .removed else {
                throw Divergence("chat \(chat.id.rawValue) is gone and in a full login")
            }
            guard chats.updateValue(chat, forKey: chat.id) == nil else {
                throw Divergence("chat \(chat.id.rawValue) is on two pages")
            }
        }
        var contacts: [UserID: User] = [:]
        for contact in reply.contacts { contacts[contact.id] = contact }
        let asked = try machine.ask(
            .contactInfo(ContactInfoRequest(contactIDs: partners(in: chats.keys))),
            from: requester(),
            as: ContactInfoReply.self
        )
        for contact in asked.contacts {
            guard contacts[contact.id] == nil || contacts[contact.id] == contact else {
                throw Divergence("a login and CONTACT_INFO differ in \(contact.id.rawValue)")
            }
            contacts[contact.id] = contact
        }
        var own = SyncOwn()
        own.merge(reply.drafts)
        var mark: Int64 = 0
        var last = reply
        while last.drafts != nil, last.time > mark {
            mark = last.time
            last = try machine.login(
                LoginRequest(
                    token: session.token,
                    chatsSync: mark,
                    contactsSync: mark,
                    draftsSync: mark
                ),
                from: session.caller
            )
            own.merge(last.drafts)
        }
        try own.mergeFolders(of: self, machine)
        return (chats, contacts, own)
    }

    /// Compares the client's state with the state of a fresh client.
    func check(_ machine: SyncMachine, against oracle: SyncOracle?) throws {
        let fresh = try fresh(machine)
        let name = "user \(user.rawValue), \(installation)"
        for (id, chat) in fresh.chats where chats[id] != chat {
            throw Divergence(
                "\(name): chat \(id.rawValue)\nkept  \(String(describing: chats[id]))\n"
                    + "fresh \(chat)"
            )
        }
        for id in chats.keys where fresh.chats[id] == nil {
            throw Divergence("\(name): chat \(id.rawValue) is kept and gone")
        }
        for (id, contact) in fresh.contacts where contacts[id] != contact {
            throw Divergence(
                "\(name): contact \(id.rawValue)\nkept  \(String(describing: contacts[id]))\n"
                    + "fresh \(contact)"
            )
        }
        for id in contacts.keys where fresh.contacts[id] == nil {
            throw Divergence("\(name): contact \(id.rawValue) is kept and gone")
        }
        for chat in fresh.chats.keys {
            let now = try delayed(in: chat, machine)
            guard delayed[chat]?.messages ?? [] == now else {
                throw Divergence(
                    "\(name): what is scheduled in \(chat.rawValue), "
                        + "\(now.map(\.id)), was kept as \(String(describing: delayed[chat]))"
                )
            }
        }
        guard own == fresh.own else {
            throw Divergence("\(name): kept \(own)\nfresh \(fresh.own)")
        }
        guard let oracle else { return }
        try oracle.check(fresh.own, of: user)
        let expected = oracle.chats(of: user)
        guard expected.count == fresh.chats.count else {
            throw Divergence("\(name): \(fresh.chats.count) chats, not \(expected.count)")
        }
        for chat in fresh.chats.values { try oracle.check(chat, for: user) }
        try oracle.check(fresh.contacts, of: user)
    }

    /// Compares the newest messages of a chat with the messages that the oracle expects.
    func checkHistory(of chat: SyncOracle.Chat, _ machine: SyncMachine, _ oracle: SyncOracle) throws
    {
        let reply = try machine.ask(
            .chatHistory(
                ChatHistoryRequest(
                    chatID: chat.name.wireID(for: user),
                    forward: 0,
                    backward: 200,
                    getMessages: true
                )
            ),
            from: requester(),
            as: ChatHistoryReply.self
        )
        try oracle.check(
            reply.messages ?? [],
            of: chat,
            for: user,
            isCut: machine.limits.maxReplyBytes < Limits.standard.maxReplyBytes
        )
    }

    /// Fetches the scheduled messages of each chat whose `lastDelayedUpdateTime` has changed.
    private func fetchDelayed(_ machine: SyncMachine) throws {
        delayed = delayed.filter { chats[$0.key] != nil }
        for chat in chats.values {
            let updated = chat.lastDelayedUpdateTime
            guard delayed[chat.id]?.updated ?? 0 != updated else { continue }
            let messages = updated > 0 ? try delayed(in: chat.id, machine) : []
            delayed[chat.id] = (updated, messages)
        }
    }

    private func delayed(in chat: ChatID, _ machine: SyncMachine) throws -> [Message] {
        let reply = try machine.ask(
            .chatHistory(ChatHistoryRequest(chatID: chat, itemType: .delayed)),
            from: requester(),
            as: ChatHistoryReply.self
        )
        return (reply.messages ?? []).map { message in
            // If the answered message changes, `lastDelayedUpdateTime` does not change. So do not
            // compare the link.
            var message = message
            message.link = nil
            return message
        }
    }

    private func rest(after marker: Int64?, _ machine: SyncMachine) throws -> [Chat] {
        var chats: [Chat] = []
        var next = marker ?? 0
        var pages = 0
        while next != 0 {
            pages += 1
            guard pages < 100 else { throw Divergence("CHATS_LIST never ends") }
            let page = try machine.ask(
                .chatsList(ChatsListRequest(marker: next, count: 3)),
                from: requester(),
                as: ChatsListReply.self
            )
            chats += page.chats
            next = page.marker
        }
        return chats
    }

    private func partners(in chats: some Sequence<ChatID>) -> [UserID] {
        chats.compactMap { $0.partner(of: user) }.filter { $0 != user }.sorted()
    }
}
