import TambourEvents
import TambourProtocol
import TambourStore

/// A password from a request, with the parameters for its hash. It is hashed before the command
/// runs.
struct PasswordToHash: Sendable {
    let password: String
    let salt: [UInt8]
    let logRounds: Int
    let version: HashedPassword.Version
}

/// Handles the second factor: tracks, the password of an account, and the password challenge after
/// the login code.
extension AuthHandler {
    static let hourMs: Int64 = 3_600_000
    private static let saltBytes = 16

    // MARK: - Tracks

    /// Answers `AUTH_CREATE_TRACK` (112).
    ///
    /// - Throws: `auth.blocked` when the user has opened too many tracks within an hour.
    /// - Note: A command.
    func authCreateTrack(
        _: AuthCreateTrackRequest,
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

    /// - Returns: the secret that identifies the new track.
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

    /// Returns a track for password settings that the caller's session opened.
    ///
    /// - Throws: `track.not.found`.
    func settings(
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
    func challenge(
        _ secret: String,
        in snapshot: ReadTransaction,
        now: Int64
    ) throws -> (track: Track, idHash: [UInt8], account: Account, second: PasswordRecord) {
        let idHash = Tokens.hash(secret)
        guard let track = try snapshot.track(idHash: idHash, now: now),
            track.kind == .challenge, let user = track.user,
            let account = try snapshot.account(user),
            let second = try snapshot.password(of: user)
        else { throw RequestError.trackNotFound }
        guard !account.isBlocked else { throw RequestError.loginBlocked }
        return (track, idHash, account, second)
    }

    // MARK: - Validating

    /// Answers `AUTH_VALIDATE_PASSWORD` (107).
    ///
    /// - Throws: `track.not.found`, `not.allowed` before the old password was given,
    ///   `proto.payload` for an invalid password.
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
    /// - Throws: `track.not.found`, `proto.payload` for an empty hint.
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

    func requireOldPassword(
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
        let controls = password.unicodeScalars.contains {
            $0.properties.generalCategory == .control
        }
        guard !controls else { throw RequestError.protoPayload("/password: a control character") }
    }

    // MARK: - The password

    /// Returns the password that must be hashed before a command runs. The hash is computed outside
    /// the command, because hashing takes long.
    ///
    /// - Returns: nil when the command needs no hash. In this case it contains no password, or its
    ///   outcome does not depend on the hash.
    func passwordToHash(
        of request: CommandRequest,
        from requester: Requester,
        in snapshot: ReadTransaction
    ) throws -> PasswordToHash? {
        let now = environment.wallMs()
        func guess(_ password: String, at second: PasswordRecord) throws -> PasswordToHash? {
            _ = try tries(of: second, now: now)
            guard second.password.mayBe(password) else { return nil }
            return PasswordToHash(
                password: password,
                salt: second.password.salt,
                logRounds: second.password.logRounds,
                version: second.password.version
            )
        }
        do {
            switch request {
            case .authCheckPassword(let request):
                let caller = requester.requireCaller()
                _ = try settings(request.trackID, of: caller, in: snapshot, now: now)
                guard let second = try snapshot.password(of: caller.userID) else { return nil }
                return try guess(request.password, at: second)
            case .authLoginCheckPassword(let request):
                let second = try challenge(request.trackID, in: snapshot, now: now).second
                return try guess(request.password, at: second)
            case .authSet2fa(let request):
                let caller = requester.requireCaller()
                _ = try change(by: request, from: caller, in: snapshot, now: now)
                guard !request.removes, let password = request.password else { return nil }
                return PasswordToHash(
                    password: password,
                    salt: environment.randomBytes(Self.saltBytes),
                    logRounds: limits.passwordHashLogRounds,
                    version: .digested
                )
            default: return nil
            }
        } catch is RequestError {
            // Ignore the error, because the handler makes the same checks and answers with the
            // error.
            return nil
        }
    }

    /// Returns the number of wrong passwords in the current series of attempts. A series ends one
    /// hour after its first wrong password.
    ///
    /// - Throws: `auth.blocked` after too many wrong passwords.
    private func tries(of second: PasswordRecord, now: Int64) throws -> Int {
        let tries = second.triesSince > now - Self.hourMs ? second.tries : 0
        guard tries < limits.maxPasswordTriesPerHour else {
            throw RequestError.authBlocked.retrying(
                afterMs: second.triesSince + Self.hourMs - now
            )
        }
        return tries
    }

    /// Returns nil when the password is correct, and `error.password.wrong` otherwise. Counts the
    /// wrong passwords of all tracks together.
    ///
    /// - Parameter given: the hash of `password`; nil when nothing was hashed.
    /// - Throws: `auth.blocked` after too many wrong passwords. Throws `track.not.found` when the
    ///   account's password changed while the given password was hashed.
    private func refusal(
        of password: String,
        _ given: HashedPassword?,
        for second: PasswordRecord,
        of user: UserID,
        from origin: SessionOrigin,
        in tx: WriteTransaction
    ) throws -> RequestError? {
        let tries = try tries(of: second, now: tx.ct)
        if second.password.mayBe(password) {
            guard let given, given.isComparable(to: second.password) else {
                throw RequestError.trackNotFound
            }
            if Tokens.areEqual(given.hash, second.password.hash) {
                if second.tries > 0 { try tx.setPasswordTries(0, since: 0, of: user) }
                return nil
            }
        }
        let since = tries == 0 ? tx.ct : second.triesSince
        try tx.setPasswordTries(tries + 1, since: since, of: user)
        try tx.countRefusal(.passwordRefused, of: user, from: origin.address)
        return .errorPasswordWrong
    }

    /// Answers `AUTH_CHECK_PASSWORD` (113).
    ///
    /// - Throws: `track.not.found`, `not.allowed` when the account has no password, `auth.blocked`.
    /// - Returns: the reply, or `error.password.wrong`. This error is returned instead of thrown,
    ///   so that the store keeps the count of wrong passwords.
    /// - Note: A command.
    func authCheckPassword(
        _ request: AuthCheckPasswordRequest,
        from call: CommandCall,
        in tx: WriteTransaction
    ) throws -> Result<AuthCheckPasswordReply, RequestError> {
        let caller = call.caller
        let (_, idHash) = try settings(request.trackID, of: caller, in: tx.reader, now: tx.ct)
        guard let second = try tx.reader.password(of: caller.userID) else {
            throw RequestError.notAllowed
        }
        if let error = try refusal(
            of: request.password,
            call.password,
            for: second,
            of: caller.userID,
            from: call.requester.origin,
            in: tx
        ) {
            return .failure(error)
        }
        try tx.checkTrack(idHash)
        return .success(AuthCheckPasswordReply())
    }

    /// The change that AUTH_SET_2FA makes.
    private struct PasswordChange {
        let idHash: [UInt8]
        /// The second factor before the change.
        let second: PasswordRecord?
        let hint: Text?
        let email: String?
    }

    /// Makes all checks of AUTH_SET_2FA. The checks run before the password is hashed, and again in
    /// the transaction.
    ///
    /// - Throws: the errors of `authSet2fa`.
    private func change(
        by request: AuthSet2faRequest,
        from caller: Caller,
        in snapshot: ReadTransaction,
        now: Int64
    ) throws -> PasswordChange {
        let (track, idHash) = try settings(request.trackID, of: caller, in: snapshot, now: now)
        let second = try snapshot.password(of: caller.userID)
        try requireOldPassword(on: track, of: caller, in: snapshot)
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
        if !request.removes {
            if let password = request.password {
                try requireGood(password)
                if let hint, "\(hint)".contains(password) {
                    throw RequestError.protoPayload("/hint: holds the password")
                }
            } else if second == nil {
                throw RequestError.protoPayload("/password: missing")
            }
        }
        return PasswordChange(idHash: idHash, second: second, hint: hint, email: email)
    }

    /// Answers `AUTH_SET_2FA` (111): sets, changes or removes the password.
    ///
    /// - Throws: `track.not.found`, `proto.payload`. Throws `not.allowed` if the old password was
    ///   not given, or if the client expects a change that was not prepared.
    /// - Note: A command.
    func authSet2fa(
        _ request: AuthSet2faRequest,
        from call: CommandCall,
        in tx: WriteTransaction
    ) throws -> AuthSet2faReply {
        let caller = call.caller
        let change = try change(by: request, from: caller, in: tx.reader, now: tx.ct)
        if request.removes {
            try tx.removePassword(of: caller.userID)
        } else {
            // If the hash is missing, the state has changed since `passwordToHash` ran. The client
            // must start again.
            guard
                let password =
                    request.password == nil ? change.second?.password : call.password
            else { throw RequestError.trackNotFound }
            try tx.setPassword(
                password,
                hint: change.hint ?? change.second?.hint,
                email: change.email ?? change.second?.email,
                of: caller.userID
            )
        }
        try tx.endTrack(change.idHash)
        try tellProfile(of: caller.userID, except: nil, in: tx)
        return AuthSet2faReply()
    }

    /// Answers `AUTH_2FA_DETAILS` (104).
    ///
    /// - Note: A query.
    func auth2faDetails(
        _: Auth2faDetailsRequest,
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

    /// Pushes the profile to a user's connections.
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
    /// - Returns: the reply, or `error.password.wrong`. This error is returned instead of thrown,
    ///   so that the store keeps the count of wrong passwords.
    /// - Note: A command.
    func authLoginCheckPassword(
        _ request: AuthLoginCheckPasswordRequest,
        from call: CommandCall,
        in tx: WriteTransaction
    ) throws -> Result<AuthLoginCheckPasswordReply, RequestError> {
        let (_, idHash, account, second) = try challenge(
            request.trackID,
            in: tx.reader,
            now: tx.ct
        )
        if let error = try refusal(
            of: request.password,
            call.password,
            for: second,
            of: account.id,
            from: call.requester.origin,
            in: tx
        ) {
            return .failure(error)
        }
        try tx.endTrack(idHash)
        return .success(
            AuthLoginCheckPasswordReply(
                tokenAttrs: try tokenAttributes(of: account.id, from: call.requester, in: tx),
                profile: try tx.reader.profile(of: account)
            )
        )
    }
}
