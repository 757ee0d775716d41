import TambourProtocol
import TambourStore

/// What LOGIN brings: everything, or what changed after the client's marks.
struct LoginSync: Sendable {
    let limits: Limits
    let presence: PresenceRegistry
    let settings: ServiceConfig
    var restored = RestoredMarks(last: 0)

    /// What a login comes to.
    struct Result {
        let reply: LoginReply
        /// The dialog partners whose presence is followed from now on: the session ends that by `unwatch`.
        let partners: [UserID]
        /// The caller's.
        let account: Account
    }

    /// Answers `LOGIN` (19).
    ///
    /// A mark that is absent, 0 or negative asks for everything, and so does one from before a backup was
    /// restored; one beyond `time` counts as `time`.
    /// A delta that would not fit one reply is answered in full: the newest chats and a marker to
    /// page the others with CHATS_LIST. Contacts, drafts, and chats that were left, come oldest first where
    /// they would fill more than their part of a reply, and `time` stays below what is left: the next login
    /// brings it.
    /// A long delta is read in steps; what the last one reads may be newer than what the first one has.
    ///
    /// - Parameter time: safe time read before the first snapshot opened; becomes the client's next mark.
    func login(
        _ request: LoginRequest,
        from requester: Requester,
        time: Int64,
        in snapshot: ReadTransaction
    ) throws -> Progress<ReadTransaction, Result> {
        // A client with `sync-more` gets only the newest part of a long delta.
        guard let mark = mark(request.chatsSync, time),
            !requester.capabilities.contains(.syncMore)
        else {
            return .finished(try login(request, from: requester, time: time, nil, in: snapshot))
        }
        let viewer = requester.requireCaller().userID
        let views = try snapshot.changedViews(
            for: viewer,
            since: mark,
            limit: limits.maxReplyBytes / Chat.bareSize + 1
        )
        let state = (isResumed: false, delta: Delta(room: limits.maxReplyBytes))
        return try snapshot.inSteps(views[...], state) { state, _ in
            state.isResumed = true
        } take: { found, state, snapshot in
            let view = state.isResumed ? try snapshot.view(found.key, for: viewer) : found
            if let view {
                state.delta.append(try snapshot.chat(view))
            } else {
                // The last step finds the chat among those that the caller has left.
                state.delta.appendLeft()
            }
            return state.delta.fits
        } finish: { state, snapshot in
            try login(request, from: requester, time: time, state.delta, in: snapshot)
        }
    }

    /// - Parameter delta: every chat that changed after the client's mark; nil if it is not known.
    private func login(
        _ request: LoginRequest,
        from requester: Requester,
        time: Int64,
        _ delta: Delta?,
        in snapshot: ReadTransaction
    ) throws -> Result {
        let caller = requester.requireCaller()
        guard let account = try snapshot.account(caller.userID) else {
            throw RequestError.loginToken
        }
        let chatsMark = mark(request.chatsSync, time)
        let contactsMark = mark(request.contactsSync, time)
        let draftsMark = mark(request.draftsSync, time)
        // Behind the wall where nobody has written for long, which lets in more.
        let recent = try snapshot.recentPartners(
            of: caller.userID,
            since: time - Int64(limits.presenceDays) * 86_400_000,
            limit: limits.presenceWatch
        )

        var room = LoginRoom(
            bytes: limits.maxReplyBytes,
            time: time,
            asksForMore: requester.capabilities.contains(.syncMore)
        )
        let config = try config(account, requester, unlessKnown: request.configHash, snapshot)
        room.bytes -= config?.settingsSize ?? 0
        // Nothing is left out for good: the client would not have it, or keep what it has, for ever.
        // Who gets chats in full gets the partners of those that are sent; who holds the chats, all, and so
        // does who is to forget the contacts that do not come.
        let forgets = restored.contains(request.contactsSync ?? 0, at: time)
        let changedContacts =
            if let contactsMark {
                try snapshot.changedContacts(of: caller.userID, since: contactsMark)
            } else {
                try snapshot.contacts(
                    of: caller.userID,
                    withPartners: chatsMark != nil || forgets
                )
            }
        let contactsRoom = room.bytes / 2
        let contacts = room.take(
            .contacts,
            changedContacts.map { ($0, $0.changed) },
            since: contactsMark,
            part: 2
        ) { $0.wireSizeEstimate }
        let changedDrafts = try snapshot.changedDrafts(of: caller.userID, since: draftsMark ?? 0)
            .filter { draftsMark != nil || $0.isSaved }
        let drafts = room.take(
            .drafts,
            changedDrafts.map { ($0, $0.ct) },
            since: draftsMark,
            part: 4
        ) { $0.wireSizeEstimate }
        let count = count(request.chatsCount)
        let (chats, marker) = try chats(
            of: caller,
            since: chatsMark,
            delta,
            count,
            &room,
            in: snapshot
        )
        var users = users(contacts, room: contactsRoom)
        if contactsMark == nil, marker != nil {
            let known = Set(contacts.map(\.account.id))
            for partner in try partners(in: chats, of: caller, but: known, snapshot) {
                room.bytes -= partner.wireSizeEstimate
                // What does not fit is asked for by CONTACT_INFO when it is shown.
                if room.bytes < 0 { break }
                users.append(partner.user(showingRemoval: true))
            }
        }
        // Followed before it is read: what changes in between is pushed behind the reply.
        presence.watch(recent.map(\.id), by: caller.userID)
        let reply = LoginReply(
            profile: try snapshot.profile(of: account),
            chats: chats,
            resync: resync(request, time),
            more: room.more.isEmpty ? nil : room.more,
            chatMarker: marker,
            contacts: users,
            presence: presence.presence(of: recent, since: mark(request.presenceSync, time) ?? 0),
            drafts: self.drafts(drafts, of: caller, since: draftsMark),
            config: config,
            time: room.time
        )
        return Result(reply: reply, partners: recent.map(\.id), account: account)
    }

    /// Answers `LOGIN2` (8): the second part of a login for clients that ask for it.
    ///
    /// `contactsSync` -1 wants no contacts, 0 all of them, a time those that changed after it. The
    /// reply has no cursor. Clients with `sync-more` learn from `more` which contacts did not fit: the oldest
    /// changes. Other clients get those contacts without names. Of several thousand contacts, LOGIN brings
    /// the oldest, in parts.
    func login2(
        _ request: Login2Request,
        from requester: Requester,
        in snapshot: ReadTransaction
    ) throws -> Login2Reply {
        let caller = requester.requireCaller()
        guard let account = try snapshot.account(caller.userID) else {
            throw RequestError.loginToken
        }
        let config = try config(account, requester, unlessKnown: request.configHash, snapshot)
        var contacts: [User] = []
        var room = LoginRoom(
            bytes: limits.maxReplyBytes - (config?.settingsSize ?? 0),
            time: .max,
            asksForMore: requester.capabilities.contains(.syncMore)
        )
        let asked = request.contactsSync ?? 0
        // Of the marks of this answer's clients, which has none, nobody knows the latest.
        let since = restored.contains(asked, at: .max) ? 0 : asked
        if since >= 0 {
            let changed =
                since > 0
                ? try snapshot.changedContacts(of: caller.userID, since: since)
                : try snapshot.contacts(of: caller.userID, withPartners: true)
            if room.asksForMore {
                // The reply brings the contacts twice.
                contacts = room.takeNewest(
                    .contacts,
                    changed.map { ($0, $0.changed) },
                    since: since
                ) {
                    2 * $0.wireSizeEstimate
                }.map { $0.user(showingRemoval: true) }
            } else {
                let half = room.bytes / 2
                contacts = users(Array(changed.prefix(half / Contact.bareSize)), room: half)
            }
        }
        return Login2Reply(
            profile: try snapshot.profile(of: account),
            contactInfos: contacts,
            contacts: contacts,
            config: config,
            more: room.more.isEmpty ? nil : room.more
        )
    }

    /// - Returns: with all settings, if they fit half of a reply, which `maxSettingsBytes` do; of an account
    ///   that has more, from before there was that limit, those of some chats are left out.
    private func config(
        _ account: Account,
        _ requester: Requester,
        unlessKnown known: Text?,
        _ snapshot: ReadTransaction
    ) throws -> LoginConfig? {
        let version = account.settingsVersion
        guard
            var config = settings.config(
                for: requester.features,
                version: version,
                unlessKnown: known
            )
        else { return nil }
        if version > 0 {
            let user = AnyValue(SettingRules.shown(try snapshot.settings(of: account.id)))
            config.user = user
            let chats = try snapshot.chatSettings(
                of: account.id,
                room: limits.maxReplyBytes / 2 - user.bytes.count
            )
            config.chats = chats.isEmpty ? nil : chats
        }
        return config
    }

    /// Nil for a mark that asks for everything.
    private func mark(_ asked: Int64?, _ time: Int64) -> Int64? {
        guard let asked, asked > 0, !restored.contains(asked, at: time) else { return nil }
        return min(asked, time)
    }

    /// What comes whole though its mark did not ask for that; nil when nothing does.
    private func resync(_ request: LoginRequest, _ time: Int64) -> [SyncKind]? {
        let marks: [(SyncKind, Int64?)] = [
            (.chats, request.chatsSync), (.contacts, request.contactsSync),
            (.drafts, request.draftsSync),
        ]
        let kinds = marks.filter { restored.contains($0.1 ?? 0, at: time) }.map(\.0)
        return kinds.isEmpty ? nil : kinds
    }

    /// The chats that LOGIN brings, and where CHATS_LIST goes on when they are not a delta.
    private func chats(
        of caller: Caller,
        since mark: Int64?,
        _ delta: Delta?,
        _ count: Int,
        _ room: inout LoginRoom,
        in snapshot: ReadTransaction
    ) throws -> (chats: [Chat], marker: Int64?) {
        if room.asksForMore, let mark,
            let newest = try newestChats(
                of: caller,
                since: mark,
                count: count,
                bytes: room.bytes,
                in: snapshot
            )
        {
            room.leave(.chats, since: mark, upTo: newest.rest)
            return (newest.items, nil)
        }
        var gone: [Chat] = []
        if let mark {
            // Nor is what is no more: also a list in full says nothing of it.
            let left = try snapshot.leftChats(of: caller.userID, since: mark)
            let changed = left.map { ($0.chat, $0.changed) }
            gone = room.take(.chats, changed, since: mark, part: 2) { $0.wireSizeEstimate }
            if let delta, delta.bytes <= room.bytes { return (delta.chats + gone, nil) }
        }
        let (chats, marker) = try snapshot.chatsPage(
            for: caller.userID,
            from: .newest,
            limit: count,
            budget: room.bytes
        )
        room.bytes -= chats.reduce(0) { $0 + $1.wireSizeEstimate }
        return (chats + gone, marker)
    }

    /// The partners of the dialogs that are sent.
    private func partners(
        in chats: [Chat],
        of caller: Caller,
        but known: Set<UserID>,
        _ snapshot: ReadTransaction
    ) throws -> [Contact] {
        try chats.compactMap { chat in
            guard let id = chat.id.partner(of: caller.userID), id != caller.userID,
                !known.contains(id)
            else { return nil }
            return try snapshot.contact(id, of: caller.userID)
        }
    }
}

/// Chats that changed, as far as a reply has room for them.
private struct Delta {
    let room: Int
    private(set) var bytes = 0
    private(set) var chats: [Chat] = []

    init(room: Int) {
        self.room = room
    }

    var fits: Bool { bytes <= room }

    mutating func append(_ chat: Chat) {
        bytes += chat.wireSizeEstimate
        if fits { chats.append(chat) }
    }

    /// Counts a chat that the caller left between two steps: as many chats as were looked up never fit.
    mutating func appendLeft() { bytes += Chat.bareSize }
}

extension LoginConfig {
    /// About how many bytes the settings of the user and of their chats take, never fewer.
    fileprivate var settingsSize: Int {
        (user?.bytes.count ?? 0)
            + (chats?.pairs.reduce(0) { $0 + $1.1.bytes.count + 14 } ?? 0)
    }
}
