import TambourProtocol
import TambourStore

/// Changing the phone of an account, and deleting the account.
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
    /// - Returns: `error.code.wrong`, after counting it.
    /// - Note: A command.
    func phoneBindConfirm(
        _ request: PhoneBindConfirmRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Result<PhoneBindConfirmReply, RequestError> {
        let code: LoginCode
        switch try checked(
            request.verifyCode,
            of: request.token,
            moving: caller.userID,
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

    /// Answers `PROFILE_DELETE` (199): schedules the erasure of the account, or cancels it.
    ///
    /// - Throws: `proto.payload` for a request that asks for neither or both.
    /// - Note: A command.
    func profileDelete(
        _ request: ProfileDeleteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ProfileDeleteReply {
        guard let deletes = request.delete ?? request.cancel.map({ !$0 }), request.cancel != deletes
        else { throw RequestError.protoPayload("/delete: missing, or the same as /cancel") }
        var time = try tx.reader.end(of: caller.userID).deleteAt
        if deletes != (time != 0) {
            time = deletes ? tx.ct + Int64(limits.profileDeleteDelayMs) : 0
            try tx.setDeletion(at: time, of: caller.userID)
        }
        return ProfileDeleteReply(timestamp: time)
    }

    /// Answers `PROFILE_DELETE_TIME` (200).
    ///
    /// - Note: A query.
    func profileDeleteTime(
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ProfileDeleteTimeReply {
        ProfileDeleteTimeReply(time: try snapshot.end(of: caller.userID).deleteAt)
    }
}
