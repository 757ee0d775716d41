import TambourEvents
import TambourMessenger
import TambourNet
import TambourProtocol

/// The account of a session: how it logs in and out, and what others see of its user.
extension Session {
    // MARK: - Login

    /// Logs the session in with the token that it was just given: several clients ask for everything else
    /// without a LOGIN.
    func signedIn(_ opened: Answer.Opened) {
        guard !connection.isClosing, machine.signedIn() else { return }
        client.take(token: opened.token, isGivenHere: true)
        register(opened.session)
        reader.isAuthenticated = true
        apply(presence.setHidden(opened.isHidden))
        settingsVersion = opened.settingsVersion
        decideFeatures()
        setTimer()
        // The token may have died before this session could hear of it.
        shared.messenger.check(opened.token, of: client.requester) { [self] in
            gateway.post(.tokenDied(self, opened.session.id))
        }
    }

    /// Looks up the token; then the session registers for pushes on its lane, and only then the snapshot
    /// opens, so that it misses no later commit.
    func startLogin(_ login: LoginRequest, _ request: Request) {
        machine.loginBegan()
        self.login = LoginFlow(login)
        // The client has not chosen the token that it was given: it may log in with another one.
        let known = client.isSignedInByCode ? nil : caller
        if caller == nil { shared.strangers.moved(connection.id, to: .loggingIn) }
        shared.messenger.resolve(login.token, knownAs: known, context(of: request)) {
            [self] found in
            gateway.post(.tokenResolved(self, request, login, found))
        }
    }

    func tokenResolved(
        _ request: Request,
        _ login: LoginRequest,
        _ found: Result<OpenSession, RequestError>
    ) {
        guard machine.phase == .loggingIn else { return }
        let session: OpenSession
        switch charges.limited(found) {
        case .failure(let error):
            if caller == nil { shared.strangers.refused(connection.id) }
            // COMPAT(maxapi-python ≤ 2.5, Python < 3.12): it sends PING right after LOGIN, and hangs
            // when the answer to PING comes on the heels of a refusal. So PING is answered first.
            _ = gateway.lane.schedule(after: .milliseconds(limits.loginRefusalDelayMs)) {
                self.answered(request, Reply(.refusal(error)))
            }
            return
        case .success(let known):
            session = known
        }
        if let caller, caller.sessionID != session.id { signOff() }
        changeClient {
            $0.take(token: login.token, isGivenHere: false)
            $0.speak(Capabilities(dialect: session.dialect))
        }
        if caller == nil { register(session) }
        outbox.hold()
        decideFeatures()
        shared.messenger.login(login, context(of: request), then: framing(request))
    }

    private func register(_ session: OpenSession) {
        client.signIn(
            session,
            connection: ConnectionID(connection.id),
            replyBudget: PacketCodec.replyBudget(limits)
        )
        gateway.register(self, user: session.userID)
        setStranger(false)
        shared.strangers.left(connection.id)
        if client.isCounted { shared.accounts.count(session.userID, isCounted: true) }
        for excess in shared.accounts.add(self, of: session.userID, token: session.id) {
            excess.gateway.post(.superseded(excess))
        }
    }

    func finishLogin(_ answer: Answer) {
        defer {
            login = nil
            setTimer()
        }
        guard let following = answer.following, let caller, let login else {
            machine.loginEnded(accepted: false)
            if machine.phase != .loggedIn { signOff() }
            if caller == nil, !connection.isClosing { joinStrangers(as: .talking) }
            return
        }
        machine.loginEnded(accepted: true)
        reader.isAuthenticated = true
        shared.metrics.logins.add(1)
        let start = login.accepted(following)
        let counted = start.unfollowed + presence.adopt(start.followed)
        shared.messenger.unfollow(counted, by: caller.userID)
        settingsVersion = start.settingsVersion
        apply(presence.setHidden(start.isHidden))
        setInteractive(start.isInteractive)
        if !presence.isInteractive, !presence.isHidden {
            shared.messenger.noted(caller.userID)
        }
        storeSeen(of: caller, at: client.origin.address)
    }

    /// Removes the user from the session: when it closes, and when a login is refused after registering.
    func signOff() {
        setInteractive(false)
        guard let caller else { return }
        shared.messenger.unfollow(presence.unfollowAll(), by: caller.userID)
        gateway.unregister(self, user: caller.userID)
        gateway.comments.closeAll(by: self)
        shared.accounts.remove(self, of: caller.userID)
        if client.isCounted { shared.accounts.count(caller.userID, isCounted: false) }
        client.signOut()
        setStranger(true)
        // A closing session needs no decision.
        if !connection.isClosing { decideFeatures() }
    }

    // MARK: - Presence

    func setInteractive(_ interactive: Bool) {
        guard let caller else { return }
        guard machine.isLoggedIn || machine.phase == .closed else { return }
        guard interactive != presence.isInteractive else { return }
        let change = presence.setInteractive(interactive)
        if !interactive { storeSeen(of: caller) }
        apply(change)
    }

    /// Notes the user's new settings, one of which decides whether presence is shown.
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

    /// - Parameter address: where the session has just logged in from; nil if it did not log in.
    private func storeSeen(of caller: Caller, at address: String? = nil) {
        let now = shared.environment.wallMs()
        let isLast = address != nil || machine.phase == .closed
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

    // MARK: - Pushes

    /// Sends a message with what its receiver has read. Nobody else gets these bytes, so they are not
    /// compressed.
    func push(_ message: NotifMessage, to reader: ReadCounters.Reader) {
        var message = message
        message.unread = reader.unread
        message.mark = reader.mark
        message.ttl = false
        // One client takes a push with it for an edit; in the message it is in nobody's way.
        message.message.prevMessageID = message.prevMessageID
        message.prevMessageID = nil
        var push = EncodedPush(Push.notifMessage(message), limits: limits, isCompressed: false)
        self.push(&push)
    }

    /// Sends the push in the form that this client reads; holds it back during LOGIN.
    ///
    /// - Returns: whether there was something to send.
    @discardableResult
    func push<Content>(_ push: inout EncodedPush<Content>) -> Bool {
        outbox.push(&push, for: client.capabilities)
    }
}
