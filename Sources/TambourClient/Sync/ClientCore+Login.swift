import TambourProtocol

/// The start of a connection: greeting, login, and the catch-up of missed changes.
extension ClientCore {
    /// The capabilities of this client beyond the classic protocol.
    private static let capabilities: Capabilities = [
        .lz4Large, .historyMore, .resync, .syncMore, .objects, .registration,
    ]

    /// Greets the server. If an account is signed in, logs in without waiting for the reply to the
    /// greeting.
    func greet(_ tx: StoreTransaction) throws {
        let hello = SessionInitRequest(
            userAgent: UserAgent(
                deviceType: "DESKTOP",
                appVersion: options.appVersion,
                deviceName: options.deviceName.isEmpty ? options.appName : options.deviceName,
                locale: options.locale.isEmpty ? nil : options.locale
            ),
            deviceID: try tx.deviceID(random: environment.random),
            capabilities: Self.capabilities.names
        )
        let isSignedIn = try tx.isSignedIn()
        call(hello) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                greeting.accepted(reply)
                // If the user signed in after the greeting was sent, no login was sent with it.
                if !isSignedIn { try logIn(tx) }
                let waiters = greeting.takeWaiters()
                whenCommitted { for waiter in waiters { waiter(.success(())) } }
            case .failure(.disconnected): break
            case .failure(let error):
                switch error {
                case .timedOut: try notGreeted(.noAnswer, tx)
                case .unreadable: try notGreeted(.otherProtocol, tx)
                default: greeting.refused(error)
                }
                try breakConnection(tx)
            }
        }
        try logIn(tx)
    }

    /// Logs in with the stored token. Without a token, the connection waits for a sign-in.
    func logIn(_ tx: StoreTransaction) throws {
        guard let token: String = try tx.value(of: .token) else { return awaitsSignIn() }
        signedIn()
        let request = LoginRequest(
            token: token,
            interactive: true,
            chatsSync: try tx.value(of: .chatsMark) ?? 0,
            contactsSync: try tx.value(of: .contactsMark) ?? 0,
            draftsSync: try tx.value(of: .draftsMark) ?? 0,
            chatsCount: Int64(options.chatsAtOnce),
            configHash: try (tx.value(of: .configHash) as String?).map { Text($0) }
        )
        call(request) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                guard try isOurs(reply.profile.contact, tx) else { return try refuseOther(tx) }
                try apply(reply, to: request, tx)
                loggedIn()
                try tx.set(.online, owner)
                try wakeTasks(tx)
                try entities.loggedIn(tx)
                try askFolders(tx)
                try refreshDoubtful(tx)
                try serveOthers(tx)
                try syncRest(tx)
            case .failure(let error): try loginFailed(error, tx)
            }
        }
    }

    /// Returns whether the data stored here belongs to this account. Another server, or the same
    /// server after a new installation, assigns the same ids to other people. Their registration
    /// times differ.
    private func isOurs(_ account: User, _ tx: StoreTransaction) throws -> Bool {
        guard let held = try tx.userID() else { return true }
        guard held == account.id else { return false }
        guard let made = try tx.user(held)?.registrationTime, let told = account.registrationTime
        else { return true }
        return made == told
    }

    /// Rejects the token of another account. The data stored here stays, and is not mixed with the
    /// other account's data.
    private func refuseOther(_ tx: StoreTransaction) throws {
        try tx.set(.token, nil)
        tx.changes.account = true
        awaitsSignIn()
        publish(.signedOut(reason: Client.holdsAnother))
        // A session made with a code is now useless, so log it out. A token from elsewhere may
        // still be in use on another device, so only disconnect.
        if try tx.value(of: .phone) as String? != nil {
            try closeSession(tx)
        } else {
            try breakConnection(tx)
        }
    }

    private func loginFailed(_ error: ClientError, _ tx: StoreTransaction) throws {
        switch error {
        case .refused(let code, let text, _):
            switch error.code {
            case .loginToken, .loginBlocked:
                // The data and the queued messages stay, because the same person may sign in again.
                try tx.set(.token, nil)
                tx.changes.account = true
                awaitsSignIn()
                publish(.signedOut(reason: text.isEmpty ? code : text))
            default: try syncFailed(error, tx)
            }
        default: try syncFailed(error, tx)
        }
    }

    /// Handles a failed part of the sync. The next connection requests that part again.
    func syncFailed(_ error: ClientError, _ tx: StoreTransaction) throws {
        switch error {
        case .refused(_, _, let wait):
            let pause = wait.map { $0 / .milliseconds(1) } ?? 10_000
            try rest(forMs: Int64(pause), tx)
        case .disconnected: break
        default: try breakConnection(tx)
        }
    }

    /// Applies the reply to a login: completely, or not at all if the store fails.
    private func apply(_ reply: LoginReply, to request: LoginRequest, _ tx: StoreTransaction) throws
    {
        let me = reply.profile.contact.id
        try tx.set(.user, me.rawValue)
        if let token = reply.token { try tx.set(.token, token) }
        tx.changes.account = true
        // The new record replaces the stored record even if the new record is older, because the
        // server may have been restored from a backup.
        try tx.distrustPerson(me)
        try tx.put(reply.profile.contact)

        let resync = reply.resync ?? []
        let isWholeList = (request.chatsSync ?? 0) <= 0 || resync.contains(.chats)
        if isWholeList {
            try tx.distrustList()
            try tx.forgetRanges(of: .chats)
            let next = reply.chatMarker ?? 0
            try tx.set(.chatsMarker, next > 0 ? next : nil)
        }
        if resync.contains(.chats) {
            try distrustHistories(tx)
            try tx.distrustScheduled()
            if try tx.value(of: .foldersMark) as Int64? != nil { try tx.set(.foldersMark, 0) }
        }
        if (request.contactsSync ?? 0) <= 0 || resync.contains(.contacts) {
            try tx.distrustContacts()
        }
        if resync.contains(.drafts) { try tx.forgetSavedDrafts() }

        // Set the marks before storing chats: `learnNewest` reads the safe time of this login from
        // them.
        for mark in [
            StoreTransaction.Setting.chatsMark, .contactsMark, .draftsMark,
        ] {
            try tx.set(mark, reply.time)
        }

        for user in reply.contacts { try tx.put(user, isContact: true) }
        try put(reply.chats, tx, me)
        try tx.doubtScheduledOutsideOfList()
        for (chat, messages) in reply.messages.pairs {
            for message in messages { try learn(message, after: .unknown, in: chat, tx) }
        }
        if let drafts = reply.drafts { try tx.put(drafts, me: me) }
        try tx.forgetWhoIsOnline()
        for (user, presence) in reply.presence.pairs { try tx.put(presence, of: user) }
        if let config = reply.config {
            try tx.set(.configHash, config.hash.description)
            try tx.forgetChatSettings()
            if let settings = config.chats { try tx.put(chatSettings: settings) }
        }
        if isWholeList, (reply.chatMarker ?? 0) == 0 { try forgetStaleChats(tx) }

        // This login covers the open-ended ranges of earlier logins.
        try tx.forgetOpenRanges()
        for range in reply.more ?? [] {
            try tx.put(range)
            guard range.kind == .chats else { continue }
            // A chat that changes from now on leaves the range of changes before this login. If
            // this account cannot see the change, the server does not push it. The open-ended range
            // covers such chats.
            try tx.put(SyncRange(kind: range.kind, since: reply.time, upTo: SyncRange.openEnd))
        }
    }

    /// Stores chats, each with its newest message.
    ///
    /// - Parameter asked: the value of `transactions` at the time of the request; nil for a login,
    ///   whose reply precedes all pushes.
    private func put(
        _ chats: [Chat],
        since asked: Int? = nil,
        _ tx: StoreTransaction,
        _ me: UserID
    ) throws {
        for chat in chats {
            if let asked, !isCurrent(.chat(chat.id), since: asked, tx) {
                try tx.noteListed(chat.id)
                try tx.noteMissingChanges(of: chat.id)
                try refresh(chat.id, tx)
                continue
            }
            guard try putOwn(chat, tx, me) else { continue }
            try tx.noteMissingChanges(of: chat.id)
        }
    }

    // MARK: - Parts missing after a login

    /// Requests the next part that the login omitted, if any.
    func syncRest(_ tx: StoreTransaction) throws {
        if let marker: Int64 = try tx.value(of: .chatsMarker) {
            let asked = subjects.transactions
            return call(ChatsListRequest(marker: marker, count: Int64(options.chatsAtOnce))) {
                [self] answer, tx in
                let reply: ChatsListReply
                switch answer {
                case .success(let success): reply = success
                case .failure(let error): return try syncFailed(error, tx)
                }
                guard let me = try tx.userID() else { return }
                // If a new login has moved the marker, this reply is stale.
                guard try tx.value(of: .chatsMarker) == marker else { return }
                try put(reply.chats, since: asked, tx, me)
                try tx.set(.chatsMarker, reply.marker > 0 ? reply.marker : nil)
                if reply.marker == 0 { try forgetStaleChats(tx) }
                try syncRest(tx)
            }
        }
        guard let range = try tx.nextRange() else { return try synced(tx) }
        askPart(range) { [self] reply, tx in
            if let next = reply.upTo {
                try tx.put(SyncRange(kind: range.kind, since: range.since, upTo: next))
            } else {
                try tx.remove(range)
            }
            try syncRest(tx)
        }
    }

    /// Requests the changes of one kind since the login.
    func askRecent(
        _ kind: SyncKind,
        upTo: Int64 = SyncRange.openEnd,
        _ tx: StoreTransaction
    ) throws {
        // Without a mark, the login in flight returns all changes.
        guard let mark = kind.mark, let since: Int64 = try tx.value(of: mark), since > 0 else {
            return
        }
        askPart(SyncRange(kind: kind, since: since, upTo: upTo)) { [self] reply, tx in
            if let next = reply.upTo { try askRecent(kind, upTo: next, tx) }
        }
    }

    /// Requests the changes in a range, and applies the changes that no later push has replaced.
    private func askPart(
        _ range: SyncRange,
        _ done: @escaping (SyncMoreReply, StoreTransaction) throws -> Void
    ) {
        let asked = subjects.transactions
        let request = SyncMoreRequest(
            kind: range.kind,
            since: range.since,
            upTo: range.upTo,
            count: Int64(options.chatsAtOnce)
        )
        call(request) { [self] answer, tx in
            let reply: SyncMoreReply
            switch answer {
            case .success(let success): reply = success
            case .failure(let error): return try syncFailed(error, tx)
            }
            guard let me = try tx.userID() else { return }
            for user in reply.contacts where isCurrent(.person(user.id), since: asked, tx) {
                try tx.put(user, isContact: true)
            }
            try put(reply.chats, since: asked, tx, me)
            if let drafts = reply.drafts {
                try tx.put(drafts, me: me) { isCurrent(.draft($0), since: asked, tx) }
            }
            if reply.resync == true { try startOver(range.kind, tx) }
            try done(reply, tx)
        }
    }

    /// Handles a reply that the changes of this kind cannot be listed in parts: sets the mark to 0
    /// and logs in again, so that the login returns the whole list. Does nothing for a kind without
    /// a mark.
    private func startOver(_ kind: SyncKind, _ tx: StoreTransaction) throws {
        guard let mark = kind.mark else { return }
        try tx.set(mark, 0)
        try logIn(tx)
    }

    /// Removes the chats that are missing from the complete list.
    private func forgetStaleChats(_ tx: StoreTransaction) throws {
        for chat in try tx.staleChats() {
            try tx.loseChat(chat, keepsDraft: true)
            forgetHistory(of: chat)
        }
    }
}

extension SyncKind {
    /// The mark that the next login sends for this kind.
    fileprivate var mark: StoreTransaction.Setting? {
        switch self {
        case .chats: .chatsMark
        case .contacts: .contactsMark
        case .drafts: .draftsMark
        case .other: nil
        }
    }
}
