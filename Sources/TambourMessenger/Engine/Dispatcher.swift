package import TambourEvents
package import TambourProtocol
import TambourSQL
package import TambourStore

/// Passes each request to its handler and converts the handler's result to an answer.
///
/// There is one handler for each family of the specification. The switch that calls the handlers is
/// generated, see `Generated/Dispatch.swift`. If an opcode has no handler, the program does not
/// compile.
package struct Dispatcher: Sendable {
    let auth: AuthHandler
    let bots = BotsHandler()
    let chats: ChatsHandler
    let contacts: ContactsHandler
    let drafts: DraftsHandler
    let entities: EntitiesHandler
    let folders: FoldersHandler
    let groups: GroupsHandler
    let media = MediaHandler()
    let messages: MessagesHandler
    let polls: PollsHandler
    let reactions: ReactionsHandler
    let reports: ReportsHandler
    let search: SearchHandler
    let session: SessionHandler
    /// The people whom each user has recently found by phone, name or link.
    package let found: FoundPeople
    private let report: @Sendable (String) -> Void

    /// - Parameters:
    ///   - restored: the commit time of the last restore from a backup; 0 if there was none.
    ///     Cursors up to this time are older than the restore.
    ///   - changesUnknown: the commit time up to which messages have no change times. A client with
    ///     a cursor up to this time must resync.
    package init(
        limits: Limits,
        environment: Environment,
        fixedLoginCode: String?,
        hasRoomForCodes: @escaping @Sendable () -> Bool = { true },
        clock: CommitClock,
        presence: PresenceRegistry,
        settings: ServiceConfig,
        restored: Int64 = 0,
        changesUnknown: Int64 = 0,
        preview: @escaping @Sendable (Int64) -> Attach? = { _ in nil },
        connectedSessions: @escaping @Sendable (UserID) -> Set<SessionID> = { _ in [] },
        report: @escaping @Sendable (String) -> Void
    ) {
        let found = FoundPeople(limits: limits)
        self.found = found
        let marks = RestoredMarks(last: restored)
        auth = AuthHandler(
            limits: limits,
            environment: environment,
            fixedCode: fixedLoginCode,
            registration: settings.registration,
            userInvitations: settings.userInvitations,
            hasRoomForCodes: hasRoomForCodes,
            sync: LoginSync(
                limits: limits,
                presence: presence,
                settings: settings,
                restored: marks
            ),
            connectedSessions: connectedSessions
        )
        session = SessionHandler(limits: limits, service: settings)
        contacts = ContactsHandler(
            limits: limits,
            environment: environment,
            presence: presence,
            found: found
        )
        chats = ChatsHandler(
            limits: limits,
            environment: environment,
            session: session,
            changesUnknown: max(restored, changesUnknown)
        )
        messages = MessagesHandler(
            limits: limits,
            environment: environment,
            found: found,
            preview: preview
        )
        groups = GroupsHandler(limits: limits, environment: environment, found: found)
        reactions = ReactionsHandler(limits: limits)
        polls = PollsHandler(limits: limits)
        drafts = DraftsHandler(limits: limits, clock: clock)
        folders = FoldersHandler(limits: limits, environment: environment)
        entities = EntitiesHandler(limits: limits, restored: marks, clock: clock)
        search = SearchHandler(limits: limits, found: found)
        reports = ReportsHandler(limits: limits)
        self.report = report
    }

    // MARK: - Commands

    /// Runs a command in the engine's transaction.
    ///
    /// - Parameter password: the request's hashed password; nil when the request needs no hash.
    package func command(
        _ request: CommandRequest,
        from requester: Requester,
        password: HashedPassword? = nil,
        in tx: WriteTransaction
    ) throws -> Answer {
        try requireOpen(requester, in: tx)
        return try handle(
            request,
            CommandCall(requester: requester, password: password, tx: tx)
        )
    }

    /// Refuses a command whose session or account ended while the command waited.
    func requireOpen(_ requester: Requester, in tx: WriteTransaction) throws {
        guard let caller = requester.caller else { return }
        guard try tx.isListed(caller.userID), try tx.isOpen(caller.sessionID) else {
            throw RequestError.protoState
        }
    }

    /// Returns the password that must be hashed before a command can run, with the hash parameters.
    ///
    /// - Returns: nil when the command needs no hash.
    func passwordToHash(
        of request: CommandRequest,
        from requester: Requester,
        on store: StoreConnection
    ) throws -> PasswordToHash? {
        try store.read { snapshot in
            try auth.passwordToHash(of: request, from: requester, in: snapshot)
        }
    }

    /// Sends scheduled messages that are due. One call sends at most `delayedPerStep` of them.
    ///
    /// - Returns: the time when the next message is due, in Unix milliseconds; nil when no message
    ///   waits.
    package func sendDue(in tx: WriteTransaction) throws -> Int64? {
        try messages.sendDue(in: tx)
    }

    // MARK: - Queries

    /// Runs a query on its own snapshot. If the query has several steps, runs only the first.
    ///
    /// - Parameter time: the commit clock's safe time, read before the call.
    package func query(
        _ request: QueryRequest,
        from requester: Requester,
        time: Int64,
        on store: StoreConnection
    ) -> Answer {
        answer(after: 0, on: store) { snapshot in
            try handle(
                request,
                QueryCall(requester: requester, time: time, snapshot: snapshot)
            )
        }
    }

    /// Runs the next step of a query. Returns `answer` unchanged if there is no further step.
    package func resume(_ answer: Answer, on store: StoreConnection) -> Answer {
        guard let rest = answer.restOfQuery else { return answer }
        return self.answer(after: answer.rowsRead, on: store, rest)
    }

    /// - Parameter rows: the number of rows that earlier steps read.
    private func answer(
        after rows: Int,
        on store: StoreConnection,
        _ body: (ReadTransaction) throws -> Answer
    ) -> Answer {
        let rowsBefore = store.rowsRead
        var answer = guardedAnswer { try store.read(body) }
        answer.rowsRead = rows + store.rowsRead - rowsBefore
        return answer
    }

    // MARK: - Login

    /// Returns the session of a login token.
    ///
    /// - Parameter known: the session to which the connection is already logged in; nil if there is
    ///   none. The token of any other session is refused.
    package func resolve(
        _ token: String,
        knownAs known: Caller?,
        on store: StoreConnection
    ) -> Result<OpenSession, RequestError> {
        guarded {
            try store.read { snapshot in
                let session = try auth.session(token: token, in: snapshot)
                if let known, known.sessionID != session.id { throw RequestError.protoState }
                return OpenSession(session)
            }
        }
    }

    /// Runs the first step of a LOGIN. A LOGIN may consist of this step alone. The final answer
    /// contains a presence subscription, which the session then owns.
    ///
    /// - Parameter time: the commit clock's safe time, read before the call.
    package func login(
        _ request: LoginRequest,
        from requester: Requester,
        time: Int64,
        on store: StoreConnection
    ) -> Answer {
        guardedAnswer {
            try store.read { snapshot in
                try requireOpen(request.token, in: snapshot)
                let progress = try auth.sync.login(
                    request,
                    from: requester,
                    time: time,
                    in: snapshot
                )
                return .read(progress) { snapshot in
                    try requireOpen(request.token, in: snapshot)
                } finish: { result in
                    var answer = Answer.page(result.reply, for: requester)
                    answer.following = Answer.Following(
                        watcher: requester.requireCaller().userID,
                        partners: result.partners,
                        settingsVersion: result.account.settingsVersion,
                        isHidden: result.account.privacy.isHidden
                    )
                    return answer
                }
            }
        }
    }

    /// Refuses a query whose session or account ended between two steps.
    func requireOpen(_ requester: Requester, in snapshot: ReadTransaction) throws {
        guard let token = requester.token else { return }
        do {
            try requireOpen(token, in: snapshot)
        } catch is RequestError {
            throw RequestError.protoState
        }
    }

    /// Refuses a token that was revoked after its first lookup.
    private func requireOpen(_ token: String, in snapshot: ReadTransaction) throws {
        _ = try auth.session(token: token, in: snapshot)
    }

    private func guardedAnswer(_ body: () throws -> Answer) -> Answer {
        switch guarded(body) {
        case .success(let answer): answer
        case .failure(let error): .refusal(error)
        }
    }

    private func guarded<Value>(_ body: () throws -> Value) -> Result<Value, RequestError> {
        do {
            return .success(try body())
        } catch let error as RequestError {
            return .failure(error)
        } catch {
            report("the store failed a reader: \(error)")
            return .failure(.internalError)
        }
    }
}
