import TambourProtocol
import TambourStore

/// A password that somebody sent, and what to hash it with before a command can look at it.
struct PasswordToHash: Sendable {
    let password: String
    let salt: [UInt8]
    let logRounds: Int
}

/// The second factor: tracks, the password of an account, and the challenge after the code.
extension AuthHandler {
    private static let hourMs: Int64 = 3_600_000
    private static let saltBytes = 16

    // MARK: - Tracks

    /// Answers `AUTH_CREATE_TRACK` (112).
    ///
    /// - Throws: `auth.blocked` when the user has opened too many within an hour.
    /// - Note: A command.
    func authCreateTrack(
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> AuthCreateTrackReply {
        let opened = try tx.reader.tracks(
            .settings,
            of: caller.userID,
            since: tx.ct - Self.hourMs
        )
        guard opened < limits.maxTracksPerHour else { throw RequestError.authBlocked }
        return AuthCreateTrackReply(
            trackID: try openTrack(
                .settings,
                user: caller.userID,
                session: caller.sessionID,
                in: tx
            )
        )
    }

    /// - Returns: the secret that names the track.
    func openTrack(
        _ kind: Track.Kind,
        user: UserID?,
        session: SessionID? = nil,
        link: String? = nil,
        lifetimeMs: Int? = nil,
        in tx: WriteTransaction
    ) throws -> String {
        let secret = Tokens.make(environment)
        try tx.createTrack(
            kind,
            idHash: Tokens.hash(secret),
            linkHash: link.map { Tokens.hash($0) },
            user: user,
            session: session,
            expires: tx.ct + Int64(lifetimeMs ?? limits.trackLifetimeMs),
            keptSince: tx.ct - max(Self.hourMs, Int64(limits.trackLifetimeMs))
        )
        return secret
    }

    /// A track of the caller's own session.
    ///
    /// - Throws: `track.not.found`.
    private func settings(
        _ secret: String,
        of caller: Caller,
        in snapshot: ReadTransaction,
        now: Int64
    ) throws -> (track: Track, idHash: [UInt8]) {
        let idHash = Tokens.hash(secret)
        guard let track = try snapshot.track(idHash: idHash, now: now), track.kind == .settings,
            track.user == caller.userID, track.session == caller.sessionID
        else { throw RequestError.trackNotFound }
        return (track, idHash)
    }

    /// - Throws: `track.not.found`, `login.blocked`.
    private func challenge(
        _ secret: String,
        in tx: WriteTransaction
    ) throws -> (track: Track, idHash: [UInt8], account: Account, second: PasswordRecord) {
        let idHash = Tokens.hash(secret)
        guard let track = try tx.reader.track(idHash: idHash, now: tx.ct),
            track.kind == .challenge, let user = track.user,
            let account = try tx.reader.account(user),
            let second = try tx.reader.password(of: user)
        else { throw RequestError.trackNotFound }
        guard !account.isBlocked else { throw RequestError.loginBlocked }
        return (track, idHash, account, second)
    }

    // MARK: - Validating

    /// Answers `AUTH_VALIDATE_PASSWORD` (107).
    ///
    /// - Throws: `track.not.found`, `not.allowed` while the old password was not given,
    ///   `proto.payload` for one that is too short.
    /// - Note: A query.
    func authValidatePassword(
        _ request: AuthValidatePasswordRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> AuthValidatePasswordReply {
        let now = environment.wallMs()
        let (track, _) = try settings(request.trackID, of: caller, in: snapshot, now: now)
        try requireOldPassword(on: track, of: caller, in: snapshot)
        try requireGood(request.password)
        return AuthValidatePasswordReply()
    }

    /// Answers `AUTH_VALIDATE_HINT` (108).
    ///
    /// - Throws: `track.not.found`, `proto.payload` for an empty one.
    /// - Note: A query.
    func authValidateHint(
        _ request: AuthValidateHintRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> AuthValidateHintReply {
        _ = try settings(request.trackID, of: caller, in: snapshot, now: environment.wallMs())
        guard !request.hint.isEmpty else { throw RequestError.protoPayload("/hint: empty") }
        return AuthValidateHintReply()
    }

    private func requireOldPassword(
        on track: Track,
        of caller: Caller,
        in snapshot: ReadTransaction
    ) throws {
        guard try track.isChecked || snapshot.password(of: caller.userID) == nil else {
            throw RequestError.notAllowed
        }
    }

    private func requireGood(_ password: String) throws {
        let units = password.utf16.count
        guard units >= limits.minPasswordUnits else {
            throw RequestError.protoPayload(
                "/password: \(units) UTF-16 units, at least \(limits.minPasswordUnits)"
            )
        }
        guard units <= limits.maxPasswordUnits else {
            throw RequestError.protoPayload(
                "/password: \(units) UTF-16 units, limit \(limits.maxPasswordUnits)"
            )
        }
    }

    // MARK: - E-mail

    /// Answers `AUTH_VERIFY_EMAIL` (109).
    ///
    /// - Throws: `track.not.found`, `not.allowed` while the old password was not given,
    ///   `auth.blocked` when the track has sent too many codes, `proto.payload`.
    /// - Note: A command.
    func authVerifyEmail(
        _ request: AuthVerifyEmailRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> AuthVerifyEmailReply {
        let (track, idHash) = try settings(
            request.trackID,
            of: caller,
            in: tx.reader,
            now: tx.ct
        )
        try requireOldPassword(on: track, of: caller, in: tx.reader)
        guard EmailAddress.isPlausible(request.email) else {
            throw RequestError.protoPayload("/email: no e-mail address")
        }
        let digits = try sendCode(
            to: request.email,
            on: track,
            named: request.trackID,
            idHash,
            in: tx
        )
        return AuthVerifyEmailReply(
            blockingDuration: Self.resendMs,
            codeLength: Int64(digits)
        )
    }

    /// - Returns: how many digits the code has.
    private func sendCode(
        to email: String,
        on track: Track,
        named secret: String,
        _ idHash: [UInt8],
        in tx: WriteTransaction
    ) throws -> Int {
        guard track.codesSent < limits.maxEmailCodesPerTrack else { throw RequestError.authBlocked }
        let code = fixedCode ?? Tokens.makeCode(digits: limits.loginCodeDigits, environment)
        try tx.setEmailCode(
            Tokens.hash(code: code, request: secret),
            to: email,
            expires: tx.ct + Int64(limits.loginCodeLifetimeMs),
            track: idHash
        )
        tx.emit(.code(code, to: .email(email)))
        return code.count
    }

    /// Answers `AUTH_CHECK_EMAIL` (110).
    ///
    /// - Throws: `track.not.found`, `error.code.expired`.
    /// - Returns: `error.code.wrong`, when that was counted.
    /// - Note: A command.
    func authCheckEmail(
        _ request: AuthCheckEmailRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Result<AuthCheckEmailReply, RequestError> {
        let (track, idHash) = try settings(
            request.trackID,
            of: caller,
            in: tx.reader,
            now: tx.ct
        )
        if let error = try refusal(
            of: request.verifyCode,
            on: track,
            named: request.trackID,
            idHash,
            in: tx
        ) {
            return .failure(error)
        }
        try tx.checkEmail(track: idHash)
        return .success(AuthCheckEmailReply(email: track.email))
    }

    /// - Throws: `error.code.expired`.
    /// - Returns: `error.code.wrong`, when that was counted.
    private func refusal(
        of code: String,
        on track: Track,
        named secret: String,
        _ idHash: [UInt8],
        in tx: WriteTransaction
    ) throws -> RequestError? {
        guard track.codeExpires > tx.ct, track.codeTries < limits.loginCodeTries else {
            throw RequestError.errorCodeExpired
        }
        let given = Tokens.hash(code: code, request: secret)
        if Tokens.areEqual(given, track.codeHash) { return nil }
        try tx.countEmailTry(track: idHash)
        return .errorCodeWrong
    }

    // MARK: - The password

    /// What has to be hashed before a command can run; the hashing takes long and happens elsewhere.
    func passwordToHash(
        of request: CommandRequest,
        from requester: Requester,
        in snapshot: ReadTransaction
    ) throws -> PasswordToHash? {
        func known(_ password: String, of user: UserID?) throws -> PasswordToHash? {
            guard let stored = try user.flatMap({ try snapshot.password(of: $0) })?.password else {
                return nil
            }
            return PasswordToHash(
                password: password,
                salt: stored.salt,
                logRounds: stored.logRounds
            )
        }
        switch request {
        case .authCheckPassword(let request):
            return try known(request.password, of: requester.caller?.userID)
        case .authLoginCheckPassword(let request):
            let track = try snapshot.track(
                idHash: Tokens.hash(request.trackID),
                now: environment.wallMs()
            )
            guard let track, track.kind == .challenge else { return nil }
            return try known(request.password, of: track.user)
        case .authSet2fa(let request):
            guard !request.removes, let password = request.password,
                password.utf16.count <= limits.maxPasswordUnits
            else { return nil }
            return PasswordToHash(
                password: password,
                salt: environment.randomBytes(Self.saltBytes),
                logRounds: limits.passwordHashLogRounds
            )
        default: return nil
        }
    }

    /// Nil when the password is the user's. Wrong ones are counted over all tracks.
    ///
    /// - Throws: `auth.blocked` when there were too many, `track.not.found` when the password was
    ///   changed while this one was hashed.
    private func refusal(
        of given: HashedPassword?,
        for second: PasswordRecord,
        of user: UserID,
        in tx: WriteTransaction
    ) throws -> RequestError? {
        let tries = second.triesSince > tx.ct - Self.hourMs ? second.tries : 0
        guard tries < limits.maxPasswordTriesPerHour else {
            throw RequestError.authBlocked.retrying(
                afterMs: second.triesSince + Self.hourMs - tx.ct
            )
        }
        guard let given, given.salt == second.password.salt,
            given.logRounds == second.password.logRounds
        else { throw RequestError.trackNotFound }
        if Tokens.areEqual(given.hash, second.password.hash) {
            if second.tries > 0 { try tx.setPasswordTries(0, since: 0, of: user) }
            return nil
        }
        let since = tries == 0 ? tx.ct : second.triesSince
        try tx.setPasswordTries(tries + 1, since: since, of: user)
        return .errorPasswordWrong
    }

    /// Answers `AUTH_CHECK_PASSWORD` (113).
    ///
    /// - Throws: `track.not.found`, `not.allowed` without a password, `auth.blocked`.
    /// - Returns: `error.password.wrong`, when that was counted.
    /// - Note: A command.
    func authCheckPassword(
        _ request: AuthCheckPasswordRequest,
        _ given: HashedPassword?,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Result<AuthCheckPasswordReply, RequestError> {
        let (_, idHash) = try settings(request.trackID, of: caller, in: tx.reader, now: tx.ct)
        guard let second = try tx.reader.password(of: caller.userID) else {
            throw RequestError.notAllowed
        }
        if let error = try refusal(of: given, for: second, of: caller.userID, in: tx) {
            return .failure(error)
        }
        try tx.checkTrack(idHash)
        return .success(AuthCheckPasswordReply())
    }

    /// Answers `AUTH_SET_2FA` (111): sets, changes or removes the password.
    ///
    /// - Throws: `track.not.found`, `not.allowed` while the old password was not given and when the
    ///   client expects something that was not prepared, `proto.payload`.
    /// - Note: A command.
    func authSet2fa(
        _ request: AuthSet2faRequest,
        _ given: HashedPassword?,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> AuthSet2faReply {
        let (track, idHash) = try settings(
            request.trackID,
            of: caller,
            in: tx.reader,
            now: tx.ct
        )
        let second = try tx.reader.password(of: caller.userID)
        try requireOldPassword(on: track, of: caller, in: tx.reader)
        let hint = request.hint.flatMap { $0.isEmpty ? nil : $0 }
        let email = track.isEmailChecked ? track.email : nil
        let setsPassword = request.password != nil && !request.removes
        let isPrepared = request.expectedCapabilities.allSatisfy { capability in
            switch capability {
            case 0: second == nil && setsPassword
            case 1, 2: second != nil && setsPassword
            case 3: hint != nil
            case 4: email != nil
            case 5: second != nil && request.removes
            default: false
            }
        }
        guard isPrepared, !request.removes || second != nil else { throw RequestError.notAllowed }
        if request.removes {
            try tx.removePassword(of: caller.userID)
        } else {
            if let password = request.password {
                try requireGood(password)
                if let hint, "\(hint)".contains(password) {
                    throw RequestError.protoPayload("/hint: holds the password")
                }
            }
            guard let password = given ?? second?.password else {
                throw RequestError.protoPayload("/password: missing")
            }
            try tx.setPassword(
                password,
                hint: hint ?? second?.hint,
                email: email ?? second?.email,
                of: caller.userID
            )
        }
        try tx.endTrack(idHash)
        try tellProfile(of: caller.userID, except: nil, in: tx)
        return AuthSet2faReply()
    }

    /// Answers `AUTH_2FA_DETAILS` (104).
    ///
    /// - Note: A query.
    func auth2faDetails(
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Auth2faDetailsReply {
        let second = try snapshot.password(of: caller.userID)
        return Auth2faDetailsReply(
            password: TwoFactorDetails(
                enabled: second != nil,
                email: second?.email.map { EmailAddress.masked($0) },
                hint: second?.hint
            )
        )
    }

    /// Tells the connections of a user what has become of their account.
    func tellProfile(
        of user: UserID,
        except connection: ConnectionID?,
        in tx: WriteTransaction
    ) throws {
        guard let account = try tx.reader.account(user) else { return }
        let push = NotifProfile(profile: try tx.reader.profile(of: account))
        tx.emit(.push(.notifProfile(push), to: [user], except: connection))
    }

    // MARK: - Logging in

    /// Answers `AUTH_LOGIN_CHECK_PASSWORD` (115).
    ///
    /// - Throws: `track.not.found`, `login.blocked`, `auth.blocked`.
    /// - Returns: `error.password.wrong`, when that was counted.
    /// - Note: A command.
    func authLoginCheckPassword(
        _ request: AuthLoginCheckPasswordRequest,
        _ given: HashedPassword?,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Result<AuthLoginCheckPasswordReply, RequestError> {
        let (_, idHash, account, second) = try challenge(request.trackID, in: tx)
        if let error = try refusal(of: given, for: second, of: account.id, in: tx) {
            return .failure(error)
        }
        try tx.endTrack(idHash)
        return .success(
            AuthLoginCheckPasswordReply(
                tokenAttrs: try tokenAttributes(of: account.id, from: requester, in: tx),
                profile: try tx.reader.profile(of: account)
            )
        )
    }

    /// Answers `AUTH_LOGIN_RESTORE_PASSWORD` (101): sends a code by e-mail, or takes it and removes the
    /// password.
    ///
    /// - Throws: `track.not.found`, `login.blocked`, `not.allowed` without an address, `auth.blocked`
    ///   for too many codes, `error.code.expired`.
    /// - Returns: `error.code.wrong`, when that was counted.
    /// - Note: A command.
    func authLoginRestorePassword(
        _ request: AuthLoginRestorePasswordRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Result<AuthLoginRestorePasswordReply, RequestError> {
        let (track, idHash, account, second) = try challenge(request.trackID, in: tx)
        guard let email = second.email else { throw RequestError.notAllowed }
        guard let code = request.verifyCode else {
            let digits = try sendCode(
                to: email,
                on: track,
                named: request.trackID,
                idHash,
                in: tx
            )
            return .success(
                AuthLoginRestorePasswordReply(
                    email: EmailAddress.masked(email),
                    codeLength: Int64(digits)
                )
            )
        }
        if let error = try refusal(
            of: code,
            on: track,
            named: request.trackID,
            idHash,
            in: tx
        ) {
            return .failure(error)
        }
        try tx.removePassword(of: account.id)
        try tellProfile(of: account.id, except: nil, in: tx)
        return .success(
            AuthLoginRestorePasswordReply(
                tokenAttrs: try tokenAttributes(of: account.id, from: requester, in: tx),
                profile: try tx.reader.profile(of: account)
            )
        )
    }
}
