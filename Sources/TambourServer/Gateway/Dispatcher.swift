package import TambourProtocol
import TambourSQL
package import TambourStore

/// Calls the handler of each request. Exhaustive switches: an opcode without a handler does not
/// compile.
package struct Dispatcher: Sendable {
    private let auth: AuthHandler
    private let contacts: ContactsHandler
    private let chats: ChatsHandler
    private let messages: MessagesHandler
    private let sync: LoginSync
    private let report: @Sendable (String) -> Void

    package init(
        limits: Limits,
        environment: Environment,
        fixedLoginCode: String?,
        presence: PresenceRegistry,
        report: @escaping @Sendable (String) -> Void
    ) {
        auth = AuthHandler(limits: limits, environment: environment, fixedCode: fixedLoginCode)
        contacts = ContactsHandler()
        chats = ChatsHandler(limits: limits, environment: environment)
        messages = MessagesHandler(limits: limits)
        sync = LoginSync(limits: limits, presence: presence)
        self.report = report
    }

    /// What a query came to, and what it has to tell others.
    package struct QueryResult: Sendable {
        package var outcome: Outcome
        package var events: [Event] = []
        /// A dialog whose other side's presence the session may follow.
        package var interest: ChatID?
    }

    // MARK: - Commands

    /// Runs a command in the engine's transaction.
    package func command(
        _ request: ClientRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Outcome {
        switch request {
        case .authRequest(let request):
            return .reply(try auth.authRequest(request, from: requester, in: tx).encoded())
        case .auth(let request):
            return outcome(try auth.auth(request, from: requester, in: tx))
        case .authConfirm(let request):
            return .reply(try auth.authConfirm(request, from: requester, in: tx).encoded())
        case .logout:
            try auth.logout(from: requester.requireCaller(), in: tx)
            return .reply(LogoutReply().encoded())
        case .sessionsClose:
            return .reply(try auth.sessionsClose(from: requester, in: tx).encoded())
        case .chatMark(let request):
            let caller = requester.requireCaller()
            return .reply(try chats.chatMark(request, from: caller, in: tx).encoded())
        case .msgSend(let request):
            let caller = requester.requireCaller()
            return .reply(try messages.msgSend(request, from: caller, in: tx).encoded())
        case .msgDelete(let request):
            let caller = requester.requireCaller()
            return .reply(try messages.msgDelete(request, from: caller, in: tx).encoded())
        case .msgEdit(let request):
            let caller = requester.requireCaller()
            return .reply(try messages.msgEdit(request, from: caller, in: tx).encoded())
        case .ping, .log, .sessionInit, .notifMessage, .msgDelivery, .login, .login2, .contactInfo,
            .contactInfoByPhone, .chatInfo, .chatHistory, .chatsList, .msgTyping, .msgGet,
            .chatSubscribe, .sessionsInfo:
            preconditionFailure("the opcode table names this request no command")
        }
    }

    private func outcome(_ result: Result<some WirePayload, RequestError>) -> Outcome {
        switch result {
        case .success(let reply): .reply(reply.encoded())
        case .failure(let error): .refusal(error)
        }
    }

    // MARK: - Queries

    /// Runs a query over a snapshot of its own.
    package func query(
        _ request: ClientRequest,
        from requester: Requester,
        on store: StoreConnection
    ) -> QueryResult {
        let caller = requester.requireCaller()
        var result = QueryResult(outcome: .refusal(.internalError))
        result.outcome = guarded {
            try store.read { snapshot in
                try answer(request, caller, requester, snapshot, &result)
            }
        }
        return result
    }

    private func answer(
        _ request: ClientRequest,
        _ caller: Caller,
        _ requester: Requester,
        _ snapshot: ReadTransaction,
        _ result: inout QueryResult
    ) throws -> Outcome {
        switch request {
        case .login2(let request):
            return .reply(try sync.login2(request, from: caller, in: snapshot).encoded())
        case .contactInfo(let request):
            return .reply(try contacts.contactInfo(request, from: caller, in: snapshot).encoded())
        case .contactInfoByPhone(let request):
            return .reply(try contacts.contactInfoByPhone(request, in: snapshot).encoded())
        case .chatInfo(let request):
            return .reply(try chats.chatInfo(request, from: caller, in: snapshot).encoded())
        case .chatHistory(let request):
            let reply = try chats.chatHistory(
                request,
                from: caller,
                capabilities: requester.capabilities,
                in: snapshot
            )
            return .reply(reply.encoded())
        case .chatsList(let request):
            return .reply(try chats.chatsList(request, from: caller, in: snapshot).encoded())
        case .chatSubscribe(let request):
            if try chats.chatSubscribe(request, from: caller, in: snapshot), request.subscribe {
                result.interest = request.chatID
            }
            return .reply(ChatSubscribeReply().encoded())
        case .msgTyping(let request):
            if let event = try messages.msgTyping(request, from: caller, in: snapshot) {
                result.events.append(event)
            }
            return .reply(MsgTypingReply().encoded())
        case .msgGet(let request):
            return .reply(try messages.msgGet(request, from: caller, in: snapshot).encoded())
        case .sessionsInfo:
            return .reply(try auth.sessionsInfo(from: caller, in: snapshot).encoded())
        case .ping, .log, .sessionInit, .notifMessage, .msgDelivery, .login, .authRequest, .auth,
            .authConfirm, .logout, .sessionsClose, .chatMark, .msgSend, .msgDelete, .msgEdit:
            preconditionFailure("the opcode table names this request no query")
        }
    }

    // MARK: - Login

    /// Finds the session a login token stands for.
    ///
    /// - Parameter known: who the connection has logged in as before; another one's token is refused.
    package func resolve(
        _ token: String,
        knownAs known: Caller?,
        on store: StoreConnection
    ) -> Result<(session: SessionRecord, token: String), RequestError> {
        do {
            return try store.read { snapshot in
                let session = try auth.session(token: token, in: snapshot)
                if let known, known.sessionID != session.id { throw RequestError.protoState }
                return .success((session, token))
            }
        } catch let error as RequestError {
            return .failure(error)
        } catch {
            report("a login failed: \(error)")
            return .failure(.internalError)
        }
    }

    /// The snapshot of a LOGIN, and whose presence the session follows from now on.
    ///
    /// - Parameter time: the commit clock's safe time, read before the call.
    package func login(
        _ request: LoginRequest,
        caller: Caller,
        time: Int64,
        on store: StoreConnection
    ) -> (outcome: Outcome, partners: [UserID]?) {
        var partners: [UserID]?
        let outcome = guarded {
            try store.read { snapshot in
                // The token may have died since it was looked up.
                _ = try auth.session(token: request.token, in: snapshot)
                let result = try sync.login(request, from: caller, time: time, in: snapshot)
                partners = result.partners
                return .reply(result.reply.encoded())
            }
        }
        return (outcome, partners)
    }

    private func guarded(_ body: () throws -> Outcome) -> Outcome {
        do {
            return try body()
        } catch let error as RequestError {
            return .refusal(error)
        } catch {
            report("a query failed: \(error)")
            return .refusal(.internalError)
        }
    }
}
