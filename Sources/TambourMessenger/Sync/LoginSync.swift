import TambourProtocol
import TambourStore

/// The content of a LOGIN reply: the full state, or the changes after the client's cursors.
struct LoginSync: Sendable {
    let limits: Limits
    let presence: PresenceRegistry
    let settings: ServiceConfig
    var restored = RestoredMarks(last: 0)

    /// The result of a login.
    struct Result {
        let reply: LoginReply
        /// The dialog partners whose presence the session now follows. The session later ends this
        /// subscription with `unwatch`.
        let partners: [UserID]
        /// The caller's account.
        let account: Account
    }

    /// Answers `LOGIN` (19).
    ///
    /// A cursor that is absent, 0, negative, or older than the restore of a backup requests the
    /// full list. A cursor beyond `time` counts as `time`.
    ///
    /// If the delta of the chats does not fit the reply, the reply contains the newest chats
    /// instead. It then also contains a marker, with which CHATS_LIST returns the other chats.
    ///
    /// If contacts, drafts or left chats exceed their part of the reply, only some changes are
    /// sent. Clients with `sync-more` receive the newest changes, and `more` contains the range of
    /// the older ones. Other clients receive the oldest changes. Their next cursor is before the
    /// omitted changes, so the next login includes these.
    ///
    /// A long delta is read in steps. The last step may read newer data than the first.
    ///
    /// - Parameter time: the safe time, which was read before the first snapshot opened. It becomes
    ///   the client's next cursor.
    func login(
        _ request: LoginRequest,
        from requester: Requester,
        time: Int64,
        in snapshot: ReadTransaction
    ) throws -> Progress<ReadTransaction, Result> {
        // Only the other clients need steps. A client with `sync-more` gets only the newest part of
        // a long delta.
        guard let mark = mark(request.chatsSync, time),
            !requester.capabilities.contains(.syncMore)
        else {
            return .finished(try login(request, from: requester, time: time, nil, in: snapshot))
        }
        let caller = requester.requireCaller()
        let viewer = caller.userID
        let views = try snapshot.changedViews(
            for: viewer,
            since: mark,
            limit: caller.replyBudget / Chat.bareSize + 1
        )
        let state = (isResumed: false, delta: Delta(room: caller.replyBudget))
        return try snapshot.inSteps(views[...], state) { state, _ in
            state.isResumed = true
        } take: { found, state, snapshot in
            let view = state.isResumed ? try snapshot.view(found.key, for: viewer) : found
            if let view {
                state.delta.append(try snapshot.chat(view))
            } else {
                // The caller has left the chat. The last step finds it among the left chats.
                state.delta.appendLeft()
            }
            return state.delta.fits
        } finish: { state, snapshot in
            try login(request, from: requester, time: time, state.delta, in: snapshot)
        }
    }

    /// - Parameter delta: all chats that changed after the client's cursor; nil if they were not
    ///   read.
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
        // If there was no commit for a long time, `time` is behind the wall clock. Then `recent`
        // includes the partners of a longer period.
        let recent = try snapshot.recentPartners(
            of: caller.userID,
            since: time - Int64(limits.presenceDays) * 86_400_000,
            limit: limits.presenceWatch
        )

        var room = LoginRoom(
            bytes: caller.replyBudget,
            time: time,
            asksForMore: requester.capabilities.contains(.syncMore)
        )
        let config = try config(account, requester, unlessKnown: request.configHash, snapshot)
        room.bytes -= config?.settingsSize ?? 0
        // A client that receives a full chat list gets the partners of the sent chats. Two kinds of
        // clients get all partners, because they would otherwise never get some contacts. These are
        // clients that already have their chats, and clients that must forget all contacts that are
        // not in the reply.
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
                // Omit the other partners. The client requests them with CONTACT_INFO when it shows
                // them.
                if room.bytes < 0 { break }
                users.append(partner.user(showingRemoval: true))
            }
        }
        // Subscribe to the presence before reading it. A change after the read is then pushed after
        // the reply.
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

    /// Answers `LOGIN2` (8): returns the second part of a login. Only some clients request it.
    ///
    /// If `contactsSync` is -1, the reply contains no contacts. If it is 0, the reply contains all
    /// contacts. If it is a time, the reply contains the contacts that changed after this time. The
    /// reply has no cursor.
    ///
    /// If not all contacts fit, clients with `sync-more` receive the newest changes, and `more`
    /// contains the range of the older ones. Other clients receive the contacts with older changes
    /// without names. If there are several thousand contacts, these clients do not receive the
    /// oldest changes. They can get all contacts in parts with LOGIN.
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
            bytes: caller.replyBudget - (config?.settingsSize ?? 0),
            time: .max,
            asksForMore: requester.capabilities.contains(.syncMore)
        )
        let asked = request.contactsSync ?? 0
        // LOGIN2 sends no cursor, so the server does not know the latest valid cursor. Pass `.max`
        // as the safe time.
        let since = restored.contains(asked, at: .max) ? 0 : asked
        if since >= 0 {
            let changed =
                since > 0
                ? try snapshot.changedContacts(of: caller.userID, since: since)
                : try snapshot.contacts(of: caller.userID, withPartners: true)
            if room.asksForMore {
                // Count each contact twice, because the reply contains the contacts twice.
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

    /// - Returns: the config with all settings that fit half of a reply. Settings within
    ///   `maxSettingsBytes` always fit. An account may exceed this limit if it is older than the
    ///   limit. The config then omits the settings of some chats.
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
                room: requester.requireCaller().replyBudget / 2 - user.bytes.count
            )
            config.chats = chats.isEmpty ? nil : chats
        }
        return config
    }

    /// Returns a valid cursor; nil if the client's cursor requests the full list.
    private func mark(_ asked: Int64?, _ time: Int64) -> Int64? {
        guard let asked, asked > 0, !restored.contains(asked, at: time) else { return nil }
        return min(asked, time)
    }

    /// Returns the kinds for which the reply contains the full list, although the client requested
    /// a delta. Returns nil when there are no such kinds.
    private func resync(_ request: LoginRequest, _ time: Int64) -> [SyncKind]? {
        let marks: [(SyncKind, Int64?)] = [
            (.chats, request.chatsSync), (.contacts, request.contactsSync),
            (.drafts, request.draftsSync),
        ]
        let kinds = marks.filter { restored.contains($0.1 ?? 0, at: time) }.map(\.0)
        return kinds.isEmpty ? nil : kinds
    }

    /// Returns the chats of a LOGIN. If they are not a delta, also returns the marker for
    /// CHATS_LIST.
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
            // Add tombstones of left chats, because a full list cannot show that a chat was left.
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

    /// Returns the partners of the sent dialogs, except the users in `known`.
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

/// The changed chats of a LOGIN. Keeps chats only while they fit the reply.
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

    /// Counts the size of a chat that the caller left between two steps. The lookup of chats has a
    /// limit. If left chats did not count, a delta could seem to fit although the lookup stopped at
    /// this limit.
    mutating func appendLeft() { bytes += Chat.bareSize }
}

extension LoginConfig {
    /// An upper bound for the wire size of the user's settings and chat settings, in bytes.
    fileprivate var settingsSize: Int {
        (user?.bytes.count ?? 0)
            + (chats?.pairs.reduce(0) { $0 + $1.1.bytes.count + 14 } ?? 0)
    }
}
