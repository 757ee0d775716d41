import TambourProtocol
import TambourStore

/// Changes the phone of an account.
extension AuthHandler {
    /// Answers `PHONE_BIND_REQUEST` (98).
    ///
    /// - Throws: `error.phone.wrong`, `auth.blocked`.
    /// - Note: A command.
    func phoneBindRequest(
        _ request: PhoneBindRequestRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> PhoneBindRequestReply {
        let asked = try sendCode(
            to: request.phone,
            moving: requester.requireCaller().userID,
            from: requester,
            in: tx
        )
        return PhoneBindRequestReply(
            token: asked.token,
            codeLength: asked.codeLength,
            requestMaxDuration: asked.requestMaxDuration,
            requestCountLeft: asked.requestCountLeft,
            altActionDuration: asked.altActionDuration
        )
    }

    /// Answers `PHONE_BIND_CONFIRM` (99): moves the account to the phone that received the code.
    ///
    /// - Throws: `error.code.expired`, `error.phone.taken`.
    /// - Returns: the reply, or `error.code.wrong`. This error is returned instead of thrown, so
    ///   that the store keeps the count of wrong codes.
    /// - Note: A command.
    func phoneBindConfirm(
        _ request: PhoneBindConfirmRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> Result<PhoneBindConfirmReply, RequestError> {
        let caller = requester.requireCaller()
        let code: LoginCode
        switch try checked(
            request.verifyCode,
            of: request.token,
            moving: caller.userID,
            from: requester.origin,
            in: tx
        ) {
        case .failure(let error): return .failure(error)
        case .success(let known): code = known
        }
        if let owner = try tx.reader.account(phone: code.phone), owner.id != caller.userID {
            throw RequestError.errorPhoneTaken
        }
        try tx.spendLoginCode(tokenHash: Tokens.hash(request.token))
        try tx.setPhone(code.phone, of: caller.userID)
        guard let account = try tx.reader.account(caller.userID) else {
            throw ImpossibleRow("session: user_id", caller.userID.rawValue)
        }
        try tellProfile(of: caller.userID, except: caller.connectionID, in: tx)
        try tx.tellContacts(of: account, limit: limits.maxContactAudience)
        return .success(PhoneBindConfirmReply(profile: try tx.reader.profile(of: account)))
    }
}
