import TambourEvents
import TambourProtocol
import TambourStore

/// Family `auth`: codes, tokens, logging in and out. Wire: protocol-spec/opcodes/auth.yaml
struct AuthHandler: Sendable {
    let limits: Limits
    let environment: Environment
    /// The same code for everybody, for tests and demonstrations on loopback; nil for random codes.
    let fixedCode: String?
    var registration = RegistrationPolicy.open
    /// The number of people whom each user may invite within `invitationsKeptDays`; 0 for none.
    var userInvitations = 0
    /// Returns whether another code can be queued for delivery.
    let hasRoomForCodes: @Sendable () -> Bool
    let sync: LoginSync
    /// Returns those sessions of a user that have a connection now.
    var connectedSessions: @Sendable (UserID) -> Set<SessionID> = { _ in [] }
    private static let codeWindowMs: Int64 = 3_600_000
    /// The time for which clients should wait before they request another code.
    static let resendMs: Int64 = 60_000

    /// Answers `AUTH_REQUEST` (17): creates a code and sends it to the phone, whether or not the
    /// phone has an account. A phone that may not register gets the same answer, but no code.
    ///
    /// - Throws: `error.phone.wrong`, `auth.blocked` after too many requests for codes,
    ///   `overloaded` when too many codes wait to be delivered.
    /// - Note: A command.
    func authRequest(
        _ request: AuthRequestRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> AuthRequestReply {
        try sendCode(
            to: request.phone,
            invitation: request.invitation,
            from: requester,
            in: tx
        )
    }

    /// - Parameters:
    ///   - user: the user who changes to this phone; nil when the code is for sign-in.
    ///   - invitation: the code of an invitation, exactly as the person typed it.
    func sendCode(
        to phone: String,
        moving user: UserID? = nil,
        invitation: String? = nil,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> AuthRequestReply {
        guard let phone = PhoneNumber.parse(phone) else { throw RequestError.errorPhoneWrong }
        guard hasRoomForCodes() else { throw RequestError.overloaded }
        let now = tx.ct
        let windowStart = now - Self.codeWindowMs
        let address = PeerAddress(requester.origin.address)
        let subject = address.description
        let fromHere = try tx.reader.loginCodes(phone: phone, address: subject, since: windowStart)
        guard fromHere < limits.maxCodesPerPhonePerHour,
            try tx.reader.loginCodes(address: subject, since: windowStart)
                < limits.maxCodesPerAddressPerHour,
            try mayAsk(for: phone, from: address, since: windowStart, in: tx.reader)
        else { throw RequestError.authBlocked }
        let admission =
            user == nil
            ? try admission(of: phone, with: invitation, now: now, in: tx.reader) : .free

        let token = Tokens.make(environment)
        let code = fixedCode ?? Tokens.makeCode(digits: limits.loginCodeDigits, environment)
        let codeHash = Tokens.hash(code: code, request: token)
        try tx.createLoginCode(
            tokenHash: Tokens.hash(token),
            // If the request is refused, store an empty hash. No code matches it, because the hash
            // of a code is never empty.
            codeHash: admission == .refused ? [] : codeHash,
            phone: phone,
            user: user,
            invitation: admission.invitation,
            address: subject,
            now: now,
            expires: now + Int64(limits.loginCodeLifetimeMs),
            keptSince: windowStart
        )
        tx.emit(admission == .refused ? .codeWithheld : .code(code, to: .phone(phone)))
        return AuthRequestReply(
            token: token,
            codeLength: Int64(code.count),
            requestMaxDuration: Self.resendMs,
            requestCountLeft: Int64(limits.maxCodesPerPhonePerHour - fromHere - 1),
            altActionDuration: Self.resendMs,
            codeDelay: Self.resendMs / 1000,
            callDelay: Self.resendMs / 1000,
            requestType: "SMS"
        )
    }

    /// Returns whether the phone may get another code. The limit counts requests from all
    /// addresses.
    ///
    /// One address cannot use up the limit of a phone, but many addresses can. Even then, the owner
    /// is not locked out. The owner can still request a code from an address from which one of the
    /// account's sessions last logged in.
    private func mayAsk(
        for phone: Int64,
        from address: PeerAddress,
        since time: Int64,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        let codes = try snapshot.loginCodes(phone: phone, since: time)
        if codes < limits.maxCodesPerPhoneFromAllPerHour { return true }
        guard let account = try snapshot.account(phone: phone) else { return false }
        return try snapshot.sessions(of: account.id).contains {
            PeerAddress($0.address) == address
        }
    }

    /// Answers `AUTH` (18): returns a login token for a known phone, and a registration token for a
    /// new phone.
    ///
    /// A client of the dialect tamtam gets a token for `AUTH_CONFIRM` instead, and `AUTH_CONFIRM`
    /// returns the login token. The handler counts wrong codes, so refusing a wrong code writes to
    /// the store.
    /// - Throws: `error.code.expired` for an unknown, old or used-up request, `login.blocked`.
    /// - Note: A command.
    func auth(
        _ request: AuthCodeRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Result<AuthCodeReply, RequestError> {
        let tokenHash = Tokens.hash(request.token)
        let code: LoginCode
        switch try checked(
            request.verifyCode,
            of: request.token,
            moving: nil,
            from: requester.origin,
            in: tx
        ) {
        case .failure(let error): return .failure(error)
        case .success(let known): code = known
        }
        if let account = try tx.reader.account(phone: code.phone) {
            guard !account.isBlocked else { throw RequestError.loginBlocked }
            try tx.spendLoginCode(tokenHash: tokenHash)
            if requester.capabilities.contains(.tamtam),
                try tx.reader.password(of: account.id) == nil
            {
                let token = try openTrack(.signIn, user: account.id, in: tx)
                return .success(
                    AuthCodeReply(
                        tokenAttrs: TokenAttrs(auth: TokenAttr(token: token)),
                        profile: try tx.reader.profile(of: account),
                        tokenTypes: TokenTypes(auth: token)
                    )
                )
            }
            return .success(try admit(account, from: requester, in: tx))
        }
        try tx.spendLoginCode(tokenHash: tokenHash)
        let token = Tokens.make(environment)
        try tx.createRegistration(
            tokenHash: Tokens.hash(token),
            phone: code.phone,
            invitation: code.invitation,
            expires: tx.ct + Int64(limits.loginCodeLifetimeMs)
        )
        let attribute = TokenAttr(token: token)
        return .success(
            requester.capabilities.contains(.tamtam)
                ? AuthCodeReply(
                    tokenAttrs: TokenAttrs(new: attribute),
                    tokenTypes: TokenTypes(new: token)
                )
                : AuthCodeReply(tokenAttrs: TokenAttrs(register: attribute))
        )
    }

    /// Returns the code request that belongs to a token, if the code matches.
    ///
    /// - Throws: `error.code.expired`.
    /// - Returns: the code request, or `error.code.wrong`. This error is returned instead of
    ///   thrown, so that the store keeps the count of wrong codes.
    func checked(
        _ code: String,
        of token: String,
        moving user: UserID?,
        from origin: SessionOrigin,
        in tx: WriteTransaction
    ) throws -> Result<LoginCode, RequestError> {
        let tokenHash = Tokens.hash(token)
        guard let known = try tx.reader.loginCode(tokenHash: tokenHash), known.expires > tx.ct,
            known.tries < limits.loginCodeTries, known.user == user
        else { throw RequestError.errorCodeExpired }
        guard Tokens.areEqual(Tokens.hash(code: code, request: token), known.codeHash) else {
            try tx.countLoginTry(tokenHash: tokenHash)
            // Do not log wrong codes for a phone without an account. Strangers could otherwise fill
            // the log.
            if let account = try user ?? tx.reader.account(phone: known.phone)?.id {
                try tx.countRefusal(.codeRefused, of: account, from: origin.address)
            }
            return .failure(.errorCodeWrong)
        }
        return .success(known)
    }

    /// Logs in a user who has proved that they own the phone or a logged-in device. Returns a login
    /// token. If the account has a password, returns a challenge instead.
    ///
    /// - Parameter session: the session that approved the login; nil when the user proved the phone
    ///   with a code. If this session ends, the challenge ends too.
    func admit(
        _ account: Account,
        approvedBy session: SessionID? = nil,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> AuthCodeReply {
        if let second = try tx.reader.password(of: account.id) {
            let track = try openTrack(.challenge, user: account.id, session: session, in: tx)
            return AuthCodeReply(
                tokenAttrs: TokenAttrs(),
                passwordChallenge: PasswordChallenge(
                    trackID: track,
                    hint: second.hint,
                    config: passwordConfig
                )
            )
        }
        return AuthCodeReply(
            tokenAttrs: try tokenAttributes(of: account.id, from: requester, in: tx),
            profile: try tx.reader.profile(of: account)
        )
    }

    /// The rules for passwords that clients receive.
    private var passwordConfig: PasswordConfig {
        PasswordConfig(
            minLength: Int64(limits.minPasswordUnits),
            maxLength: Int64(limits.maxPasswordUnits),
            maxHintLength: Int64(limits.maxHintUnits)
        )
    }

    func tokenAttributes(
        of user: UserID,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> TokenAttrs {
        TokenAttrs(login: TokenAttr(token: try openSession(of: user, from: requester, in: tx)))
    }

    /// Answers `AUTH_CONFIRM` (23): creates an account and logs in. In the dialect tamtam, also
    /// logs in a known user whose code was checked.
    ///
    /// - Throws: `error.code.expired` when the token is unknown or too old. Throws it also when
    ///   another account has taken the phone since the code was checked. Throws `auth.blocked` when
    ///   the phone's account is blocked, and `registration.closed` when the phone may no longer
    ///   register.
    /// - Note: A command.
    func authConfirm(
        _ request: AuthConfirmRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> AuthConfirmReply {
        let tokenHash = Tokens.hash(request.token)
        if let track = try tx.reader.track(idHash: tokenHash, now: tx.ct), track.kind == .signIn,
            let user = track.user, let account = try tx.reader.account(user)
        {
            guard !account.isBlocked else { throw RequestError.authBlocked }
            try tx.endTrack(tokenHash)
            return try confirmed(account, from: requester, in: tx)
        }
        guard let pending = try tx.reader.registration(tokenHash: tokenHash, now: tx.ct) else {
            throw RequestError.errorCodeExpired
        }
        let phone = pending.phone
        let firstName =
            if let name = request.firstName {
                try PersonName.required(name, "/firstName")
            } else if let name = request.name {
                try PersonName.required(name, "/name")
            } else {
                throw RequestError.protoPayload("/firstName: missing")
            }
        let lastName = try request.lastName.flatMap { try PersonName.optional($0, "/lastName") }
        // Since the code was checked, another person may have registered this phone, or changed to
        // it.
        if let owner = try tx.reader.account(phone: phone) {
            throw owner.isBlocked ? RequestError.authBlocked : RequestError.errorCodeExpired
        }
        let invitation = try invitation(for: pending, now: tx.ct, in: tx.reader)
        try tx.spendRegistration(tokenHash: tokenHash)
        let id = try tx.createAccount(phone: phone, firstName: firstName, lastName: lastName)
        if let invitation { try tx.use(invitation, by: id) }
        try tx.joinDefaultChats([id], limits: limits)
        guard let account = try tx.reader.account(id) else {
            preconditionFailure("the account was inserted in this transaction")
        }
        return try confirmed(account, isNew: true, from: requester, in: tx)
    }

    private func confirmed(
        _ account: Account,
        isNew: Bool = false,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> AuthConfirmReply {
        AuthConfirmReply(
            userToken: account.id.rawValue,
            profile: try tx.reader.profile(of: account),
            tokenType: .login,
            token: try openSession(of: account.id, isNew: isNew, from: requester, in: tx)
        )
    }

    /// Answers `LOGOUT` (20): revokes the token. The token's connections close after the reply.
    ///
    /// - Note: A command.
    func logout(
        _: LogoutRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> LogoutReply {
        try tx.closeSessions([caller.sessionID], of: caller.userID)
        return LogoutReply()
    }

    /// Answers `LOGIN2` (8): see `LoginSync`.
    ///
    /// - Note: A query.
    func login2(
        _ request: Login2Request,
        from requester: Requester,
        in snapshot: ReadTransaction
    ) throws -> Login2Reply {
        try sync.login2(request, from: requester, in: snapshot)
    }

    /// Answers `SYNC_MORE` (1031): see `LoginSync`.
    ///
    /// - Note: A query.
    func syncMore(
        _ request: SyncMoreRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> SyncMoreReply {
        try sync.syncMore(request, from: caller, in: snapshot)
    }

    /// Returns the session of a login token.
    ///
    /// - Throws: `login.token` for a revoked token, `login.blocked` when the account is blocked.
    func session(token: String, in snapshot: ReadTransaction) throws -> SessionRecord {
        guard let session = try snapshot.session(tokenHash: Tokens.hash(token)),
            let account = try snapshot.account(session.userID)
        else { throw RequestError.loginToken }
        guard !account.isBlocked else { throw RequestError.loginBlocked }
        return session
    }

    /// Opens a session. If the user already has `maxSessions`, first closes old sessions. Sessions
    /// without a connection are closed before connected sessions. In each group, the least recently
    /// seen session is closed first.
    ///
    /// - Parameter isNew: whether the account was just registered.
    private func openSession(
        of user: UserID,
        isNew: Bool = false,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> String {
        let sessions = try tx.reader.sessions(of: user).map(\.id)
        let surplus = sessions.count + 1 - limits.maxSessions
        if surplus > 0 {
            let connected = connectedSessions(user)
            let inOrder =
                sessions.filter { connected.contains($0) }
                + sessions.filter { !connected.contains($0) }
            try tx.closeSessions(Array(inOrder.suffix(surplus)), of: user)
        }
        let token = Tokens.make(environment)
        let origin = requester.origin
        let isKnown = try tx.hasDevice(origin.installation, of: user)
        let session = try tx.createSession(
            of: user,
            tokenHash: Tokens.hash(token),
            origin: origin
        )
        try tx.record(
            isNew ? .registration : isKnown ? .signIn : .newDevice,
            about: user,
            from: origin.address,
            "session \(session.rawValue), \(origin.client)"
        )
        return token
    }
}
