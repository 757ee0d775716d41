import TambourEvents
import TambourMessenger
import TambourNet
import TambourProtocol

/// The account of a session. Handles login, logout, and the user's presence.
///
/// Only the session's lane touches this object.
final class SessionAccount {
    /// The session owns this object and therefore outlives it.
    private unowned(unsafe) var owner: Session?
    private var client: SessionClient
    private var presence: SessionPresence
    /// The LOGIN in flight; nil when no LOGIN is in flight.
    private var login: LoginFlow?
    /// The version of the user's settings. The hash of the client's configuration covers this
    /// version.
    private(set) var settingsVersion: Int64 = 0
    /// The feature decisions that the lane has counted in the metrics.
    var countedAnswers: [SessionFeature] = []

    /// - Parameter dialect: the dialect of the listener; nil to detect the client's dialect.
    init(dialect: Capabilities?, limits: Limits) {
        client = SessionClient(dialect: dialect)
        presence = SessionPresence(limits: limits)
    }

    func belong(to session: Session) {
        owner = session
    }

    private var session: Session {
        guard let owner else { preconditionFailure("a session takes its parts at once") }
        return owner
    }

    private var gateway: LaneGateway { session.gateway }
    private var shared: SharedServices { session.shared }

    // MARK: - Client

    /// Nil before login.
    var caller: Caller? { client.caller }
    var capabilities: Capabilities { client.capabilities }
    var language: RequestError.Language? { client.language }
    var appVersion: AppVersion? { client.appVersion }
    /// The client's address, without the port.
    var address: String { client.origin.address }

    /// Whether the client receives unread counters with each message.
    var isCounted: Bool { client.isCounted }

    /// The server's decision about each known feature that the client named; nil when the client
    /// named no feature.
    var features: [SessionFeature]? { client.features?.answers }

    /// Returns whether the opcode is off for this client, or has a different meaning in the
    /// client's dialect.
    func isOff(_ info: OpInfo) -> Bool { client.isOff(info, rules: gateway.rules) }

    func connected(from peer: String) {
        client.connected(from: peer)
    }

    /// Applies a SESSION_INIT and returns its reply.
    func initialize(_ hello: SessionInitRequest) -> SessionInitReply {
        changeClient { $0.initialize(hello) }
        decideFeatures()
        gateway.namedFeatures(session)
        let seed = shared.environment.randomBytes(4)
            .reduce(into: Int64(0)) { $0 = $0 << 8 | Int64($1) }
        return client.greeting(hello, shared.settings, seed: seed)
    }

    /// Sets the client's dialect from a clue. Ignores the clue if the dialect is already known.
    func speak(_ dialect: Capabilities?) {
        changeClient { $0.speak(dialect) }
    }

    /// The description of the client that handlers receive.
    var requester: Requester { client.requester }

    /// The subject whose turns the session's work takes.
    var subject: WorkSubject { WorkSubject(client.requester) }

    /// Changes the description of the client. Updates the number of connections that receive unread
    /// counters, if it has changed.
    private func changeClient(_ body: (inout SessionClient) -> Void) {
        let wasCounted = client.isCounted
        body(&client)
        if let caller, client.isCounted != wasCounted {
            shared.accounts.count(caller.userID, isCounted: client.isCounted)
        }
    }

    /// Evaluates the feature rules for the user, or for the device before LOGIN. Returns whether a
    /// decision changed.
    @discardableResult
    private func decideFeatures() -> Bool {
        guard client.decideFeatures(by: gateway.rules) else { return false }
        gateway.countFeatures(of: session)
        return true
    }

    /// Applies changed feature rules.
    ///
    /// - Returns: the decisions to push; nil if no decision changed, or before LOGIN. Before LOGIN,
    ///   a client keeps its old decisions.
    func featuresChanged() -> [SessionFeature]? {
        guard caller != nil, decideFeatures() else { return nil }
        return features
    }

    // MARK: - Login

    /// Logs the session in with the token that its client has just received. Several clients then
    /// continue without a LOGIN.
    func signedIn(_ opened: Answer.Opened) {
        guard !session.connection.isClosing, session.requests.signedIn() else { return }
        client.take(token: opened.token, isGivenHere: true)
        register(opened.session)
        session.reader.isAuthenticated = true
        apply(presence.setHidden(opened.isHidden))
        settingsVersion = opened.settingsVersion
        decideFeatures()
        session.setTimer()
        // Check the token again, because it may have been revoked before this session was
        // registered for events.
        shared.messenger.check(opened.token, of: client.requester) { [session] in
            session.gateway.post(.tokenDied(session, opened.session.id))
        }
    }

    /// Looks up the token, the first step of a LOGIN. In the second step, the session registers for
    /// pushes. In the third step, the snapshot of the store opens. In this order, the session
    /// misses no commit.
    func startLogin(_ login: LoginRequest, _ request: Session.Request) {
        self.login = LoginFlow(login)
        // A client that was logged in by a code did not choose its token. It may therefore log in
        // with another token.
        let known = client.isSignedInByCode ? nil : caller
        if caller == nil { shared.strangers.moved(session.connection.id, to: .loggingIn) }
        let context = session.requests.context(of: request)
        shared.messenger.resolve(login.token, knownAs: known, context) { [session] found in
            session.gateway.post(.tokenResolved(session, request, login, found))
        }
    }

    func tokenResolved(
        _ request: Session.Request,
        _ login: LoginRequest,
        _ found: Result<OpenSession, RequestError>
    ) {
        guard session.requests.phase == .loggingIn else { return }
        let known: OpenSession
        switch session.requests.limited(found) {
        case .failure(let error):
            if caller == nil { shared.strangers.refused(session.connection.id) }
            // COMPAT(maxapi-python ≤ 2.5, Python < 3.12): the client sends PING right after LOGIN.
            // It hangs when the answer to PING arrives right after a refusal. The refusal is
            // therefore delayed, so that the answer to PING comes first.
            let delay = Duration.milliseconds(session.limits.loginRefusalDelayMs)
            _ = gateway.lane.schedule(after: delay) { [session] in
                session.requests.answered(request, Session.Reply(.refusal(error)))
            }
            return
        case .success(let session):
            known = session
        }
        if let caller, caller.sessionID != known.id { signOff() }
        changeClient {
            $0.take(token: login.token, isGivenHere: false)
            $0.speak(Capabilities(dialect: known.dialect))
        }
        if caller == nil { register(known) }
        session.outbox.hold()
        decideFeatures()
        let requests = session.requests
        shared.messenger.login(
            login,
            requests.context(of: request),
            then: requests.framing(request)
        )
    }

    private func register(_ known: OpenSession) {
        client.signIn(
            known,
            connection: ConnectionID(session.connection.id),
            replyBudget: PacketCodec.replyBudget(session.limits)
        )
        gateway.register(session, user: known.userID)
        session.setStranger(false)
        shared.strangers.left(session.connection.id)
        if client.isCounted { shared.accounts.count(known.userID, isCounted: true) }
        for excess in shared.accounts.add(session, of: known.userID, token: known.id) {
            excess.gateway.post(.superseded(excess))
        }
    }

    /// Ends the LOGIN in flight, before its reply is written.
    func finishLogin(_ answer: Answer) {
        defer {
            login = nil
            session.setTimer()
        }
        guard let following = answer.following, let caller, let login else {
            session.requests.loginEnded(accepted: false)
            if session.requests.phase != .loggedIn { signOff() }
            if self.caller == nil, !session.connection.isClosing {
                session.joinStrangers(as: .talking)
            }
            return
        }
        session.requests.loginEnded(accepted: true)
        session.reader.isAuthenticated = true
        shared.metrics.logins.add(1)
        let start = login.accepted(following)
        let counted = start.unfollowed + presence.adopt(start.followed)
        shared.messenger.unfollow(counted, by: caller.userID)
        settingsVersion = start.settingsVersion
        apply(presence.setHidden(start.isHidden))
        show(start.isInteractive)
        if !presence.isInteractive, !presence.isHidden {
            shared.messenger.noted(caller.userID)
        }
        storeSeen(of: caller, at: client.origin.address)
    }

    /// Removes the user from the session. This happens when the session closes, and when a LOGIN
    /// arrives with the token of another login. It also happens when a LOGIN is refused after the
    /// session has registered.
    func signOff() {
        show(false)
        guard let caller else { return }
        shared.messenger.unfollow(presence.unfollowAll(), by: caller.userID)
        gateway.unregister(session, user: caller.userID)
        gateway.comments.closeAll(by: session)
        shared.accounts.remove(session, of: caller.userID)
        if client.isCounted { shared.accounts.count(caller.userID, isCounted: false) }
        client.signOut()
        session.setStranger(true)
        // A closing session needs no new decisions.
        if !session.connection.isClosing { decideFeatures() }
    }

    // MARK: - Presence

    /// Records whether the client is in the foreground. During a LOGIN, this value overrides the
    /// value in the LOGIN.
    func setInteractive(_ interactive: Bool) {
        login?.noted(interactive: interactive)
        show(interactive)
    }

    private func show(_ interactive: Bool) {
        guard let caller else { return }
        guard session.requests.isLoggedIn || session.requests.phase == .closed else { return }
        guard interactive != presence.isInteractive else { return }
        let change = presence.setInteractive(interactive)
        if !interactive { storeSeen(of: caller) }
        apply(change)
    }

    /// Records the user's new settings, including whether presence is hidden.
    func settingsChanged(_ version: Int64, isHidden: Bool) {
        guard caller != nil else { return }
        login?.noted(settingsVersion: version, isHidden: isHidden)
        settingsVersion = version
        apply(presence.setHidden(isHidden))
    }

    private func apply(_ change: SessionPresence.Change?) {
        guard let change, let caller else { return }
        switch change {
        case .shown: shared.messenger.shown(caller.userID)
        case .hidden:
            shared.messenger.hidden(caller.userID) { [lane = gateway.lane] delay, body in
                _ = lane.schedule(after: delay, body)
            }
        }
    }

    /// - Parameter address: the address of the client if the session has just logged in; otherwise
    ///   nil.
    private func storeSeen(of caller: Caller, at address: String? = nil) {
        let now = shared.environment.wallMs()
        let isLast = address != nil || session.requests.phase == .closed
        guard presence.storesSeen(at: now, always: isLast) else { return }
        shared.messenger.storeSeen(at: now, of: caller, from: address)
    }

    /// Stops following the presence of these users.
    func unfollow(_ users: [UserID]) {
        guard let caller else { return }
        login?.noted(unfollowed: users)
        shared.messenger.unfollow(presence.unfollow(users), by: caller.userID)
    }

    /// Follows the presence of the partner in an active dialog.
    func noteDialog(_ chat: ChatID) {
        guard let caller, let partner = chat.partner(of: caller.userID), partner != caller.userID,
            presence.follow(dialogPartner: partner)
        else { return }
        shared.messenger.follow([partner], by: caller.userID)
    }
}
