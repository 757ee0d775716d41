import TambourEvents
import TambourProtocol
import TambourStore

/// Handles codes by e-mail. They serve to set the address of a second factor, and to reset a
/// forgotten password.
extension AuthHandler {
    /// Answers `AUTH_VERIFY_EMAIL` (109).
    ///
    /// - Throws: `track.not.found`, `not.allowed` before the old password was given, `auth.blocked`
    ///   after too many codes for the track, the caller or the address, `proto.payload`.
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
        try requireRoom(for: request.email, in: tx)
        let digits = try sendCode(
            to: request.email,
            of: caller.userID,
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

    /// Limits the codes sent to one address per hour, because the address may belong to somebody
    /// who did not request them. The limit does not apply to the reset of a forgotten password,
    /// because the address of the account was verified earlier. Other people therefore cannot block
    /// a reset by using up the limit.
    ///
    /// - Throws: `auth.blocked` after too many codes to the address. The requests of all accounts
    ///   count.
    private func requireRoom(for email: String, in tx: WriteTransaction) throws {
        let codes = try tx.reader.emailCodes(to: Self.recipient(email), since: tx.ct - Self.hourMs)
        guard codes < limits.maxCodesPerEmailPerHour else { throw RequestError.authBlocked }
    }

    /// Returns the hash under which the store counts codes to an address. The store does not need
    /// the address itself to count.
    private static func recipient(_ email: String) -> [UInt8] { Tokens.hash(email.lowercased()) }

    /// - Parameter user: the user whose account the code is for.
    /// - Returns: the number of digits of the code.
    /// - Throws: `auth.blocked` after too many codes for the track or the account, `overloaded`.
    private func sendCode(
        to email: String,
        of user: UserID,
        on track: Track,
        named secret: String,
        _ idHash: [UInt8],
        in tx: WriteTransaction
    ) throws -> Int {
        guard hasRoomForCodes() else { throw RequestError.overloaded }
        let hourAgo = tx.ct - Self.hourMs
        guard track.codesSent < limits.maxEmailCodesPerTrack,
            try tx.reader.emailCodes(of: user, since: hourAgo) < limits.maxEmailCodesPerUserPerHour
        else { throw RequestError.authBlocked }
        let code = fixedCode ?? Tokens.makeCode(digits: limits.loginCodeDigits, environment)
        try tx.setEmailCode(
            Tokens.hash(code: code, request: secret),
            to: email,
            expires: tx.ct + Int64(limits.loginCodeLifetimeMs),
            track: idHash
        )
        try tx.countEmailCode(to: Self.recipient(email), of: user, keptSince: hourAgo)
        tx.emit(.code(code, to: .email(email)))
        return code.count
    }

    /// Answers `AUTH_CHECK_EMAIL` (110).
    ///
    /// - Throws: `track.not.found`, `error.code.expired`.
    /// - Returns: the reply, or `error.code.wrong`. This error is returned instead of thrown, so
    ///   that the store keeps the count of wrong codes.
    /// - Note: A command.
    func authCheckEmail(
        _ request: AuthCheckEmailRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Result<AuthCheckEmailReply, RequestError> {
        let caller = requester.requireCaller()
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
            of: caller.userID,
            from: requester.origin,
            in: tx
        ) {
            return .failure(error)
        }
        try tx.checkEmail(track: idHash)
        return .success(AuthCheckEmailReply(email: track.email))
    }

    /// - Throws: `error.code.expired`.
    /// - Returns: nil if the code is right. Otherwise counts the wrong code and returns
    ///   `error.code.wrong`.
    private func refusal(
        of code: String,
        on track: Track,
        named secret: String,
        _ idHash: [UInt8],
        of user: UserID,
        from origin: SessionOrigin,
        in tx: WriteTransaction
    ) throws -> RequestError? {
        guard track.codeExpires > tx.ct, track.codeTries < limits.loginCodeTries else {
            throw RequestError.errorCodeExpired
        }
        let given = Tokens.hash(code: code, request: secret)
        if Tokens.areEqual(given, track.codeHash) { return nil }
        try tx.countEmailTry(track: idHash)
        try tx.countRefusal(.codeRefused, of: user, from: origin.address)
        return .errorCodeWrong
    }

    /// Answers `AUTH_LOGIN_RESTORE_PASSWORD` (101). If the request has no code, the handler sends a
    /// code by e-mail. If the request has the right code, the handler removes the password and logs
    /// in.
    ///
    /// - Throws: `track.not.found`, `login.blocked`, `not.allowed` without an address,
    ///   `auth.blocked` for too many codes, `error.code.expired`.
    /// - Returns: the reply, or `error.code.wrong`. This error is returned instead of thrown, so
    ///   that the store keeps the count of wrong codes.
    /// - Note: A command.
    func authLoginRestorePassword(
        _ request: AuthLoginRestorePasswordRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Result<AuthLoginRestorePasswordReply, RequestError> {
        let (track, idHash, account, second) = try challenge(
            request.trackID,
            in: tx.reader,
            now: tx.ct
        )
        guard let email = second.email else { throw RequestError.notAllowed }
        guard let code = request.verifyCode else {
            let digits = try sendCode(
                to: email,
                of: account.id,
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
            of: account.id,
            from: requester.origin,
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
