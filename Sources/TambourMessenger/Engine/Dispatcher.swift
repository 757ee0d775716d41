package import TambourEvents
package import TambourProtocol
import TambourSQL
package import TambourStore

/// Calls the handler of each request. Exhaustive switches: an opcode without a handler does not
/// compile.
package struct Dispatcher: Sendable {
    let auth: AuthHandler
    private let profile: ProfileHandler
    private let contacts: ContactsHandler
    private let chats: ChatsHandler
    private let messages: MessagesHandler
    private let groups: GroupsHandler
    private let reactions: ReactionsHandler
    private let polls: PollsHandler
    private let drafts: DraftsHandler
    private let folders: FoldersHandler
    private let entities: EntitiesHandler
    private let search: SearchHandler
    private let reports: ReportsHandler
    private let bots = BotsHandler()
    private let sync: LoginSync
    /// Whom users have found lately.
    package let found: FoundPeople
    private let report: @Sendable (String) -> Void

    /// - Parameters:
    ///   - restored: up to it marks are from before a backup was restored, commit clock; 0 for never.
    ///   - changesUnknown: up to it they are from before messages told when they had changed.
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
        auth = AuthHandler(
            limits: limits,
            environment: environment,
            fixedCode: fixedLoginCode,
            hasRoomForCodes: hasRoomForCodes,
            connectedSessions: connectedSessions
        )
        profile = ProfileHandler(limits: limits, service: settings)
        contacts = ContactsHandler(
            limits: limits,
            environment: environment,
            presence: presence,
            found: found
        )
        chats = ChatsHandler(
            limits: limits,
            environment: environment,
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
        let marks = RestoredMarks(last: restored)
        entities = EntitiesHandler(limits: limits, restored: marks, clock: clock)
        search = SearchHandler(limits: limits, found: found)
        reports = ReportsHandler(limits: limits)
        sync = LoginSync(
            limits: limits,
            presence: presence,
            settings: settings,
            restored: marks
        )
        self.report = report
    }

    // MARK: - Commands

    /// A command that was under way when its session or its account ended comes too late.
    private func requireOpen(_ requester: Requester, in tx: WriteTransaction) throws {
        guard let caller = requester.caller else { return }
        guard try tx.isListed(caller.userID), try tx.isOpen(caller.sessionID) else {
            throw RequestError.protoState
        }
    }

    private func answer(
        _ progress: Progress<WriteTransaction, some WirePayload>,
        to requester: Requester
    ) -> Answer {
        .stepped(progress) { try requireOpen(requester, in: $0) }
    }

    /// The answer to a request that leads to a login token, with the session behind the token.
    ///
    /// - Parameter token: nil where something is still missing, as a second factor.
    func signedIn(
        by token: String?,
        _ reply: some WirePayload,
        in tx: WriteTransaction
    ) throws -> Answer {
        var answer = Answer.reply(reply)
        guard let token, let session = try tx.reader.session(tokenHash: Tokens.hash(token)),
            let account = try tx.reader.account(session.userID)
        else { return answer }
        answer.opened = Answer.Opened(
            session: OpenSession(session),
            token: token,
            settingsVersion: account.settingsVersion,
            isHidden: account.privacy.isHidden
        )
        return answer
    }

    /// Runs a command in the engine's transaction.
    ///
    /// - Parameter password: the request's password, hashed; nil where none is to be hashed.
    package func command(
        _ request: CommandRequest,
        from requester: Requester,
        password: HashedPassword? = nil,
        in tx: WriteTransaction
    ) throws -> Answer {
        // Some commands come before a login, and have none.
        var caller: Caller { requester.requireCaller() }
        try requireOpen(requester, in: tx)
        switch request {
        case .authRequest(let request):
            return .reply(try auth.authRequest(request, from: requester, in: tx))
        case .auth(let request):
            switch try auth.auth(request, from: requester, in: tx) {
            case .success(let reply):
                return try signedIn(by: reply.tokenAttrs.login?.token, reply, in: tx)
            case .failure(let error): return .refusal(error)
            }
        case .authConfirm(let request):
            let reply = try auth.authConfirm(request, from: requester, in: tx)
            return try signedIn(by: reply.token, reply, in: tx)
        case .phoneBindRequest, .phoneBindConfirm, .authCreateTrack, .authVerifyEmail,
            .authCheckEmail, .authCheckPassword, .authSet2fa, .authLoginCheckPassword,
            .authLoginRestorePassword, .getQr, .authQrApprove, .loginByQr, .profileDelete:
            return try safety(request, from: requester, password: password, in: tx)
        case .logout:
            try auth.logout(from: requester.requireCaller(), in: tx)
            return .reply(LogoutReply())
        case .sessionsClose:
            return .reply(try auth.sessionsClose(from: requester, in: tx))
        case .profile(let request):
            return .reply(try profile.profile(request, from: caller, in: tx))
        case .config(let request):
            return .reply(try profile.config(request, from: requester, in: tx))
        case .sync(let request):
            return .reply(try contacts.sync(request, from: caller, in: tx))
        case .contactUpdate(let request):
            return .reply(try contacts.contactUpdate(request, from: caller, in: tx))
        case .contactCreate(let request):
            return .reply(try contacts.contactCreate(request, from: caller, in: tx))
        case .chatMark(let request):
            return .reply(try chats.chatMark(request, from: caller, in: tx))
        case .chatDelete(let request):
            return .reply(try groups.chatDelete(request, from: caller, in: tx))
        case .chatClear(let request):
            return .reply(try groups.chatClear(request, from: caller, in: tx))
        case .chatJoin(let request):
            return .reply(try groups.chatJoin(request, from: caller, in: tx))
        case .chatUpdate(let request):
            return .reply(try groups.chatUpdate(request, from: caller, in: tx))
        case .chatLeave(let request):
            return .reply(try groups.chatLeave(request, from: caller, in: tx))
        case .chatMembersUpdate(let request):
            return .reply(try groups.chatMembersUpdate(request, from: caller, in: tx))
        case .chatHide(let request):
            let caller = requester.requireCaller()
            return .reply(try chats.chatHide(request, from: caller, in: tx))
        case .chatPinSetVisibility(let request):
            return .reply(try profile.chatPinSetVisibility(request, from: requester, in: tx))
        case .msgSend(let request):
            let reply = try messages.msgSend(request, from: caller, in: tx)
            // A retry is answered also where one has blocked the other since.
            let isOpen = try tx.chat(reply.chatID, visibleTo: caller.userID)?.isShut == false
            return Answer(
                .reply(reply),
                interest: isOpen ? .dialog(reply.chatID) : nil
            )
        case .msgDeleteUserComments(let request):
            return .reply(try messages.msgDeleteUserComments(request, from: caller, in: tx))
        case .msgDelete(let request):
            return answer(try messages.msgDelete(request, from: caller, in: tx), to: requester)
        case .msgDeleteRange(let request):
            return answer(try messages.msgDeleteRange(request, from: caller, in: tx), to: requester)
        case .msgEdit(let request):
            return .reply(try messages.msgEdit(request, from: caller, in: tx))
        case .msgReaction(let request):
            return .reply(try reactions.msgReaction(request, from: caller, in: tx))
        case .msgCancelReaction(let request):
            return .reply(try reactions.msgCancelReaction(request, from: caller, in: tx))
        case .chatReactionsSettingsSet(let request):
            return .reply(try reactions.chatReactionsSettingsSet(request, from: caller, in: tx))
        case .sendVote(let request):
            return .reply(try polls.sendVote(request, from: caller, in: tx))
        case .draftSave(let request):
            return .reply(try drafts.draftSave(request, from: caller, in: tx))
        case .draftDiscard(let request):
            return .reply(try drafts.draftDiscard(request, from: caller, in: tx))
        case .foldersUpdate(let request):
            return .reply(try folders.foldersUpdate(request, from: caller, in: tx))
        case .foldersReorder(let request):
            return .reply(try folders.foldersReorder(request, from: caller, in: tx))
        case .foldersDelete(let request):
            return .reply(try folders.foldersDelete(request, from: caller, in: tx))
        case .objPush(let request):
            return answer(try entities.objPush(request, from: caller, in: tx), to: requester)
        case .chatComplain(let request):
            try reports.chatComplain(request, from: requester.requireCaller(), in: tx)
            return .reply(ChatComplainReply())
        case .complain(let request):
            try reports.complain(request, from: requester.requireCaller(), in: tx)
            return .reply(ComplainReply())
        }
    }

    // MARK: - Queries

    /// Runs a query, or its first step, over a snapshot of its own; what it has to tell others, it stores nowhere.
    ///
    /// - Parameter time: the commit clock's safe time, read before the call.
    package func query(
        _ request: QueryRequest,
        from requester: Requester,
        time: Int64,
        on store: StoreConnection
    ) -> (answer: Answer, events: [Event]) {
        // The one query of strangers.
        if case .getQrStatus(let request) = request {
            let answer = guardedAnswer {
                try store.read { .reply(try auth.getQrStatus(request, in: $0)) }
            }
            return (answer, [])
        }
        let caller = requester.requireCaller()
        var events: [Event] = []
        let answer = answer(after: 0, on: store) { snapshot in
            try self.answer(request, caller, requester, time, snapshot, &events)
        }
        return (answer, events)
    }

    /// Runs the next step of a query that has one.
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

    private func answer(
        _ request: QueryRequest,
        _ caller: Caller,
        _ requester: Requester,
        _ time: Int64,
        _ snapshot: ReadTransaction,
        _ events: inout [Event]
    ) throws -> Answer {
        func page(_ payload: some WirePayload) -> Answer { .page(payload, for: requester) }
        func page(_ progress: Progress<ReadTransaction, some WirePayload>) -> Answer {
            .read(progress) {
                try requireOpen(requester, in: $0)
            } finish: {
                .page($0, for: requester)
            }
        }
        switch request {
        case .login2(let request):
            return page(try sync.login2(request, from: requester, in: snapshot))
        case .contactInfo(let request):
            return page(try contacts.contactInfo(request, from: caller, in: snapshot))
        case .contactInfoByPhone(let request):
            return page(try contacts.contactInfoByPhone(request, from: caller, in: snapshot))
        case .contactPresence(let request):
            return page(try contacts.contactPresence(request, from: caller, in: snapshot))
        case .contactList(let request):
            return page(try contacts.contactList(request, from: caller, in: snapshot))
        case .contactPhotos(let request):
            return page(try contacts.contactPhotos(request, from: caller, in: snapshot))
        case .removeContactPhoto:
            throw RequestError.notFound
        case .chatSearchCommonParticipants(let request):
            return page(
                try contacts.chatSearchCommonParticipants(request, from: caller, in: snapshot)
            )
        case .chatInfo(let request):
            return page(try chats.chatInfo(request, from: caller, in: snapshot))
        case .chatHistory(let request):
            return page(try chats.chatHistory(request, from: caller, in: snapshot))
        case .chatsList(let request):
            return page(try chats.chatsList(request, from: caller, in: snapshot))
        case .chatCheckLink(let request):
            return page(try groups.chatCheckLink(request, in: snapshot))
        case .linkInfo(let request):
            return page(try groups.linkInfo(request, from: caller, in: snapshot))
        case .chatPersonalConfig(let request):
            return page(try chats.chatPersonalConfig(request, from: caller, in: snapshot))
        case .chatSuggest(let request):
            return page(try groups.chatSuggest(request, from: caller, in: snapshot))
        case .chatMembers(let request):
            return page(try groups.chatMembers(request, from: caller, in: snapshot))
        case .chatSubscribe(let request):
            return Answer(
                .reply(ChatSubscribeReply()),
                interest: try chats.chatSubscribe(request, from: caller, in: snapshot)
            )
        case .msgTyping(let request):
            if let event = try messages.msgTyping(request, from: caller, in: snapshot) {
                events.append(event)
            }
            return .reply(MsgTypingReply())
        case .msgGet(let request):
            return page(try messages.msgGet(request, from: caller, in: snapshot))
        case .syncMore(let request):
            return page(try sync.syncMore(request, from: caller, in: snapshot))
        case .chatChanges(let request):
            return page(try chats.chatChanges(request, from: caller, time: time, in: snapshot))
        case .objPull(let request):
            return page(try entities.objPull(request, from: caller, time: time, in: snapshot))
        case .msgGetCommentsInfo(let request):
            return page(try messages.msgGetCommentsInfo(request, from: caller, in: snapshot))
        case .msgGetReactions(let request):
            return page(try reactions.msgGetReactions(request, from: caller, in: snapshot))
        case .msgGetDetailedReactions(let request):
            return page(try reactions.msgGetDetailedReactions(request, from: caller, in: snapshot))
        case .chatReactionsSettingsGetByChatId(let request):
            return page(
                try reactions.chatReactionsSettingsGetByChatID(request, from: caller, in: snapshot)
            )
        case .foldersGet(let request):
            return page(try folders.foldersGet(request, from: caller, in: snapshot))
        case .foldersGetById(let request):
            return page(try folders.foldersGetByID(request, from: caller, in: snapshot))
        case .chatMedia(let request):
            return page(try search.chatMedia(request, from: caller, in: snapshot))
        case .votersListByAnswer(let request):
            return page(try polls.votersListByAnswer(request, from: caller, in: snapshot))
        case .getPollUpdates(let request):
            return page(try polls.getPollUpdates(request, from: caller, in: snapshot))
        case .publicSearch(let request):
            return page(try search.publicSearch(request, from: caller, in: snapshot))
        case .chatSearch(let request):
            return page(try search.chatSearch(request, from: caller, in: snapshot))
        case .msgSearch(let request):
            return page(try search.msgSearch(request, from: caller, in: snapshot))
        case .msgSearchTouch:
            return .reply(MsgSearchTouchReply())
        case .msgGetStat(let request):
            return page(try search.msgGetStat(request, from: caller, in: snapshot))
        case .complainReasonsGet(let request):
            return .reply(reports.complainReasonsGet(request, in: requester.language))
        // Nothing of these is served yet; apps ask for them at each start.
        case .assetsGet: return .reply(AssetsGetReply())
        case .assetsUpdate(let request): return .reply(AssetsUpdateReply(sync: request.sync))
        case .assetsGetByIds: return .reply(AssetsGetByIdsReply())
        case .videoChatHistory: return .reply(VideoChatHistoryReply())
        case .storiesFeed: return .reply(StoriesFeedReply())
        case .bannersGet: return .reply(BannersGetReply(updateTime: time))
        case .chatBotCommands(let request):
            return page(try bots.chatBotCommands(request, from: caller, in: snapshot))
        case .suspendBot, .botInfo:
            // Nobody is a bot.
            throw RequestError.userNotFound
        case .sessionsInfo:
            return page(try auth.sessionsInfo(from: caller, in: snapshot))
        case .authValidatePassword(let request):
            return page(try auth.authValidatePassword(request, from: caller, in: snapshot))
        case .authValidateHint(let request):
            return page(try auth.authValidateHint(request, from: caller, in: snapshot))
        case .auth2faDetails:
            return page(try auth.auth2faDetails(from: caller, in: snapshot))
        case .getQrStatus(let request):
            return page(try auth.getQrStatus(request, in: snapshot))
        case .profileDeleteTime:
            return page(try auth.profileDeleteTime(from: caller, in: snapshot))
        }
    }

    /// The password that has to be hashed before a command can run, and with what.
    ///
    /// - Returns: nil when there is none, or nothing to compare it with.
    func passwordToHash(
        of request: CommandRequest,
        from requester: Requester,
        on store: StoreConnection
    ) throws -> PasswordToHash? {
        try store.read { snapshot in
            try auth.passwordToHash(of: request, from: requester, in: snapshot)
        }
    }

    /// Sends scheduled messages whose time has come, a part of them when there are many.
    ///
    /// - Returns: when the next is due, Unix milliseconds; nil when none waits.
    package func sendDue(in tx: WriteTransaction) throws -> Int64? {
        try messages.sendDue(in: tx)
    }

    // MARK: - Login

    /// Finds the session a login token stands for.
    ///
    /// - Parameter known: who the connection has logged in as before; another one's token is refused.
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

    /// The snapshot of a LOGIN, or its first step, and whose presence the session follows from now on.
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
                let progress = try sync.login(request, from: requester, time: time, in: snapshot)
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

    /// A query whose session or account ended between two steps comes too late.
    private func requireOpen(_ requester: Requester, in snapshot: ReadTransaction) throws {
        guard let token = requester.token else { return }
        do {
            try requireOpen(token, in: snapshot)
        } catch is RequestError {
            throw RequestError.protoState
        }
    }

    /// The token may have died since it was looked up.
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
