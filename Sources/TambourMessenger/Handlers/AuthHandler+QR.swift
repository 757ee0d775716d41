import TambourProtocol
import TambourStore

/// Handles login by a QR code. The new device shows the code, and a logged-in device scans it.
extension AuthHandler {
    private static let linkPrefix = "tambour:login/"

    /// Answers `GET_QR` (288): returns a link to show, and a separate secret for polling.
    ///
    /// - Note: A command.
    func getQr(_: GetQrRequest, from _: Requester, in tx: WriteTransaction) throws -> GetQrReply {
        let link = Tokens.make(environment)
        let track = try openTrack(
            .qr,
            user: nil,
            link: link,
            lifetimeMs: limits.qrLifetimeMs,
            in: tx
        )
        return GetQrReply(
            qrLink: Self.linkPrefix + link,
            trackID: track,
            pollingInterval: Int64(limits.qrPollingIntervalMs),
            ttl: Int64(limits.qrLifetimeMs),
            expiresAt: tx.ct + Int64(limits.qrLifetimeMs)
        )
    }

    /// Answers `GET_QR_STATUS` (289).
    ///
    /// - Throws: `track.not.found`.
    /// - Note: A query.
    func getQrStatus(
        _ request: GetQrStatusRequest,
        from _: Requester,
        in snapshot: ReadTransaction
    ) throws -> Answer {
        let track = try snapshot.track(
            idHash: Tokens.hash(request.trackID),
            now: environment.wallMs()
        )
        guard let track, track.kind == .qr else { throw RequestError.trackNotFound }
        let status = QRStatus(expiresAt: track.expires, loginAvailable: track.user != nil)
        return .reply(GetQrStatusReply(status: status))
    }

    /// Answers `AUTH_QR_APPROVE` (290): lets the device that shows the link log in as the caller.
    ///
    /// - Throws: `track.not.found`, also if another user has already approved the login. Throws
    ///   `auth.blocked` if the caller has approved too many logins within an hour.
    /// - Note: A command.
    func authQrApprove(
        _ request: AuthQrApproveRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> AuthQrApproveReply {
        guard request.qrLink.hasPrefix(Self.linkPrefix) else { throw RequestError.trackNotFound }
        let link = String(request.qrLink.dropFirst(Self.linkPrefix.count))
        guard let found = try tx.reader.track(linkHash: Tokens.hash(link), now: tx.ct),
            found.track.user == nil || found.track.user == caller.userID
        else { throw RequestError.trackNotFound }
        guard found.track.user == nil else { return AuthQrApproveReply() }
        let hourAgo = tx.ct - Self.hourMs
        guard
            try tx.reader.tracks(.qr, of: caller.userID, since: hourAgo)
                < limits.maxQRApprovalsPerHour
        else { throw RequestError.authBlocked }
        try tx.approveTrack(found.idHash, by: caller.userID, session: caller.sessionID)
        return AuthQrApproveReply()
    }

    /// Answers `LOGIN_BY_QR` (291): logs in as the user who approved the login. The reply is the
    /// same as for AUTH.
    ///
    /// - Throws: `track.not.found`, `not.allowed` before the approval, `login.blocked`.
    /// - Note: A command.
    func loginByQr(
        _ request: LoginByQrRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> LoginByQrReply {
        let idHash = Tokens.hash(request.trackID)
        guard let track = try tx.reader.track(idHash: idHash, now: tx.ct), track.kind == .qr else {
            throw RequestError.trackNotFound
        }
        guard let user = track.user else { throw RequestError.notAllowed }
        guard let account = try tx.reader.account(user) else { throw RequestError.trackNotFound }
        guard !account.isBlocked else { throw RequestError.loginBlocked }
        try tx.endTrack(idHash)
        let reply = try admit(account, approvedBy: track.session, from: requester, in: tx)
        return LoginByQrReply(
            tokenAttrs: reply.tokenAttrs,
            passwordChallenge: reply.passwordChallenge,
            profile: reply.profile
        )
    }
}
