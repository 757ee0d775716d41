import TambourEvents
import TambourProtocol
import TambourStore

/// Handles the user's sessions, the erasure of the account, and the service's banners.
extension SessionHandler {
    /// Answers `SESSIONS_CLOSE` (97): closes one of the caller's other sessions, or all of them.
    /// Also ends logins in progress. An intruder who has one of the devices may have approved a
    /// login or read a code.
    ///
    /// The reply repeats the caller's own token, because one client treats a missing token as a
    /// failure.
    ///
    /// - Throws: `not.allowed` for the caller's own session.
    /// - Note: A command.
    func sessionsClose(
        _ request: SessionsCloseRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> SessionsCloseReply {
        let caller = requester.requireCaller()
        if let id = request.id.map({ SessionID($0) }) {
            guard id != caller.sessionID else {
                throw RequestError.notAllowed("LOGOUT ends the own session")
            }
            if try tx.reader.session(id)?.userID == caller.userID {
                try tx.voidSignIns(of: caller.userID)
                try tx.closeSessions([id], of: caller.userID)
            }
        } else {
            try tx.closeAllSessions(of: caller.userID, except: caller.sessionID)
        }
        return SessionsCloseReply(token: requester.token)
    }

    /// Answers `SESSIONS_INFO` (96): returns the caller's sessions, the current session first.
    /// Omits sessions that do not fit the reply.
    ///
    /// - Note: A query.
    func sessionsInfo(
        _: SessionsInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> SessionsInfoReply {
        let sessions = try snapshot.sessions(of: caller.userID)
        let ordered =
            sessions.filter { $0.id == caller.sessionID }
            + sessions.filter { $0.id != caller.sessionID }
        var budget = caller.replyBudget
        let fitting = ordered.prefix { session in
            budget -= session.wireSizeEstimate
            return budget >= 0
        }
        return SessionsInfoReply(
            sessions: fitting.map { session in
                SessionInfo(
                    client: session.client,
                    info: session.info,
                    location: session.address,
                    time: session.lastSeen,
                    current: session.id == caller.sessionID,
                    id: session.id.rawValue
                )
            }
        )
    }

    /// Answers `PROFILE_DELETE` (199): schedules the erasure of the account, or cancels it.
    ///
    /// - Throws: `proto.payload` unless the request does exactly one of the two.
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
        _: ProfileDeleteTimeRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ProfileDeleteTimeReply {
        ProfileDeleteTimeReply(time: try snapshot.end(of: caller.userID).deleteAt)
    }

    /// Answers `BANNERS_GET` (302): always returns an empty list.
    ///
    /// - Note: A query.
    func bannersGet(_: BannersGetRequest, from call: QueryCall, in _: ReadTransaction) -> Answer {
        .reply(BannersGetReply(updateTime: call.time))
    }
}
