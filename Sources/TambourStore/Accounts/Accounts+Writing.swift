package import TambourEvents
package import TambourProtocol
import TambourSQL

extension WriteTransaction {
    /// Stores a new user under a random id.
    ///
    /// - Throws: `SQLError` if the phone already has an account.
    package func createAccount(
        phone: Int64,
        firstName: String,
        lastName: String?
    ) throws -> UserID {
        writes += 1
        let id = try newUserID()
        try store.accounts.insert.run {
            $0.bind(1, id.rawValue)
            $0.bind(2, phone)
            $0.bindWords(3, firstName)
            $0.bindWords(4, lastName)
            $0.bind(5, ct)
        }
        try indexName(of: id, firstName: firstName, lastName: lastName)
        return id
    }

    /// Whether other users can see this user. A positive answer is cached between batches, because
    /// sending any message needs it.
    package func isListed(_ user: UserID) throws -> Bool {
        if listed.contains(user) { return true }
        guard try reader.isListed(user) else { return false }
        listed.insert(user)
        return true
    }

    /// Blocks or unblocks an account. Everyone who has the user as a contact receives the change at
    /// the next login.
    package func setBlocked(_ isBlocked: Bool, _ user: UserID) throws {
        writes += 1
        listed.remove(user)
        try store.accounts.setBlocked.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, isBlocked ? 1 : 0)
            $0.bind(3, ct)
        }
        try touchContacts(of: user)
    }

    /// Records when a user and the user's session were last online, Unix milliseconds.
    ///
    /// - Parameter address: the session's current address; nil keeps the stored address.
    package func setSeen(
        _ time: Int64,
        user: UserID,
        session: SessionID,
        address: String? = nil
    ) throws {
        try setSeen(time, of: user)
        try store.sessions.setSeen.run {
            $0.bind(1, session.rawValue)
            $0.bind(2, time)
            $0.bindText(3, address)
        }
    }

    /// Records that the user was online at `time`, Unix milliseconds.
    package func setSeen(_ time: Int64, of user: UserID) throws {
        writes += 1
        try store.accounts.setSeen.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
        }
    }

    /// Opens a session on the device that `origin` names. The device has the same id in all its
    /// sessions.
    package func createSession(
        of user: UserID,
        tokenHash: [UInt8],
        origin: SessionOrigin
    ) throws -> SessionID {
        writes += 1
        lastSessionID += 1
        try store.meta.set(Self.lastSessionKey, lastSessionID)
        // A client that does not name its installation gets a new device at each login. Otherwise
        // two such clients could share idempotency keys (cids). Devices are never deleted, so their
        // ids are never reused.
        let installation =
            origin.installation.isEmpty ? "device \(lastDeviceID + 1)" : origin.installation
        let device = try device(of: user, installation: installation)
        try store.sessions.insert.run {
            $0.bind(1, lastSessionID)
            $0.bind(2, user.rawValue)
            $0.bind(3, device.rawValue)
            $0.bindBlob(4, tokenHash)
            $0.bind(5, ct)
            $0.bindWords(6, origin.client)
            $0.bindWords(7, origin.info)
            $0.bindText(8, origin.address)
            $0.bindText(9, origin.dialect)
        }
        return SessionID(lastSessionID)
    }

    func device(of user: UserID, installation: String) throws -> DeviceID {
        let known = try store.sessions.device.oneInt {
            $0.bind(1, user.rawValue)
            $0.bindWords(2, installation)
        }
        if let known { return DeviceID(known) }
        lastDeviceID += 1
        try store.sessions.insertDevice.run {
            $0.bind(1, lastDeviceID)
            $0.bind(2, user.rawValue)
            $0.bindWords(3, installation)
        }
        return DeviceID(lastDeviceID)
    }

    /// Whether a session still exists. A positive answer is cached between batches, because every
    /// command needs it.
    package func isOpen(_ session: SessionID) throws -> Bool {
        if openSessions.contains(session) { return true }
        guard try reader.session(session) != nil else { return false }
        openSessions.insert(session)
        return true
    }

    /// Closes these sessions of `user`: revokes the sessions' tokens and voids the logins that the
    /// sessions approved. The connections of the sessions close after the commit.
    package func closeSessions(_ sessions: [SessionID], of user: UserID) throws {
        for session in sessions { try voidSignIns(approvedBy: session, of: user) }
        try deleteSessions(sessions, of: user)
    }

    /// Closes all sessions of `user` except `kept`, and voids every code that could open a new
    /// session.
    ///
    /// If `kept` is the only session, voids only the logins that this session approved. Otherwise
    /// somebody who stole the session could void the owner's codes again and again, and the owner
    /// could never sign in.
    ///
    /// - Returns: the closed sessions.
    @discardableResult
    package func closeAllSessions(
        of user: UserID,
        except kept: SessionID? = nil
    ) throws -> [SessionID] {
        let sessions = try reader.sessions(of: user).map(\.id).filter { $0 != kept }
        if let kept, sessions.isEmpty {
            try voidSignIns(approvedBy: kept, of: user)
        } else {
            try voidSignIns(of: user)
        }
        try deleteSessions(sessions, of: user)
        return sessions
    }

    private func deleteSessions(_ sessions: [SessionID], of user: UserID) throws {
        guard !sessions.isEmpty else { return }
        openSessions.subtract(sessions)
        for session in sessions {
            try store.sessions.delete.run { $0.bind(1, session.rawValue) }
        }
        emit(.sessionsClosed(sessions, of: user))
    }

    /// Stores a code request. Deletes requests older than `keptSince` (Unix milliseconds) and
    /// expired registrations.
    ///
    /// - Parameters:
    ///   - user: the user whose phone number the code changes; nil for a sign-in code.
    ///   - invitation: the invitation with which a new phone may register; nil if no invitation is
    ///     needed.
    package func createLoginCode(
        tokenHash: [UInt8],
        codeHash: [UInt8],
        phone: Int64,
        user: UserID? = nil,
        invitation: InvitationID? = nil,
        address: String,
        now: Int64,
        expires: Int64,
        keptSince: Int64
    ) throws {
        writes += 1
        try store.sessions.pruneCodes.run { $0.bind(1, keptSince) }
        try store.sessions.pruneRegistrations.run { $0.bind(1, now) }
        try store.sessions.insertCode.run {
            $0.bindBlob(1, tokenHash)
            $0.bind(2, phone)
            $0.bindBlob(3, codeHash)
            $0.bindText(4, address)
            $0.bind(5, now)
            $0.bind(6, expires)
            $0.bind(7, user?.rawValue ?? 0)
            $0.bind(8, invitation?.rawValue ?? 0)
        }
    }

    package func countLoginTry(tokenHash: [UInt8]) throws {
        writes += 1
        try store.sessions.countTry.run { $0.bindBlob(1, tokenHash) }
    }

    /// Voids a code after its use. The code's row stays for a while, because it counts towards the
    /// hourly limit of codes.
    package func spendLoginCode(tokenHash: [UInt8]) throws {
        writes += 1
        try store.sessions.spendCode.run { $0.bindBlob(1, tokenHash) }
    }

    package func createRegistration(
        tokenHash: [UInt8],
        phone: Int64,
        invitation: InvitationID? = nil,
        expires: Int64
    ) throws {
        writes += 1
        try store.sessions.insertRegistration.run {
            $0.bindBlob(1, tokenHash)
            $0.bind(2, phone)
            $0.bind(3, expires)
            $0.bind(4, invitation?.rawValue ?? 0)
        }
    }

    package func spendRegistration(tokenHash: [UInt8]) throws {
        writes += 1
        try store.sessions.deleteRegistration.run { $0.bindBlob(1, tokenHash) }
    }
}
