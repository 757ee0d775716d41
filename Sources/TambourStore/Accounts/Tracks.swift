package import TambourEvents
package import TambourProtocol
import TambourSQL

enum TrackColumn: Int, SQLColumn {
    case kind, userID, session, created, expires, checked, email, emailChecked, codeHash
    case codeExpires, codeTries, codesSent
}

enum TrackKeyColumn: Int, SQLColumn {
    case idHash
}

struct TrackStatements {
    let byID: SQLQuery<TrackColumn>
    let byLink: SQLQuery<SQLPair<TrackColumn, TrackKeyColumn>>
    let countOfUser: any SQLStatement
    let insert: any SQLStatement
    let check: any SQLStatement
    let approve: any SQLStatement
    let setCode: any SQLStatement
    let countTry: any SQLStatement
    let checkEmail: any SQLStatement
    let end: any SQLStatement
    let endSettingsOfUser: any SQLStatement
    let deleteAfterCodeOfUser: any SQLStatement
    let endSignInsOfUser: any SQLStatement
    let endSignInsOfSession: any SQLStatement
    let prune: any SQLStatement
    let emailCodesTo: any SQLStatement
    let emailCodesOf: any SQLStatement
    let insertEmailCode: any SQLStatement
    let pruneEmailCodes: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        byID = try sql.query("SELECT \(TrackColumn.list) FROM track WHERE id_hash = $1")
        byLink = try sql.query(
            """
            SELECT \(TrackColumn.list), \(TrackKeyColumn.list) FROM track
            WHERE link_hash = $1
            """
        )
        countOfUser = try sql.prepare(
            "SELECT count(*) FROM track WHERE user_id = $1 AND created > $2 AND kind = $3"
        )
        insert = try sql.prepare(
            """
            INSERT INTO track (id_hash, kind, user_id, session, link_hash, created, expires)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            """
        )
        check = try sql.prepare("UPDATE track SET checked = 1 WHERE id_hash = $1")
        approve = try sql.prepare(
            "UPDATE track SET user_id = $2, session = $3 WHERE id_hash = $1"
        )
        setCode = try sql.prepare(
            """
            UPDATE track SET email = $2, email_checked = 0, code_hash = $3, code_expires = $4,
              code_tries = 0, codes_sent = codes_sent + 1
            WHERE id_hash = $1
            """
        )
        countTry = try sql.prepare(
            "UPDATE track SET code_tries = code_tries + 1 WHERE id_hash = $1"
        )
        checkEmail = try sql.prepare(
            "UPDATE track SET email_checked = 1, code_expires = 0 WHERE id_hash = $1"
        )
        // The row stays for a while, because it counts towards the hourly limit.
        let end = "UPDATE track SET expires = 0, email = NULL, code_hash = NULL"
        self.end = try sql.prepare("\(end) WHERE id_hash = $1")
        endSettingsOfUser = try sql.prepare(
            "\(end) WHERE user_id = $1 AND kind = 0 AND expires > 0"
        )
        deleteAfterCodeOfUser = try sql.prepare(
            "DELETE FROM track WHERE user_id = $1 AND kind IN (1, 3)"
        )
        let endSignIns =
            "UPDATE track SET expires = 0 WHERE user_id = $1 AND kind IN (1, 2, 3) AND expires > 0"
        endSignInsOfUser = try sql.prepare(endSignIns)
        endSignInsOfSession = try sql.prepare("\(endSignIns) AND session = $2")
        prune = try sql.prepare("DELETE FROM track WHERE created < $1")
        emailCodesTo = try sql.prepare(
            "SELECT count(*) FROM email_code WHERE recipient = $1 AND created > $2"
        )
        emailCodesOf = try sql.prepare(
            "SELECT count(*) FROM email_code WHERE user_id = $1 AND created > $2"
        )
        insertEmailCode = try sql.prepare(
            "INSERT INTO email_code (recipient, user_id, created) VALUES ($1, $2, $3)"
        )
        pruneEmailCodes = try sql.prepare("DELETE FROM email_code WHERE created < $1")
    }
}

/// A process of several requests. All these requests contain the same secret.
package struct Track: Sendable {
    package enum Kind: Int64, Sendable {
        /// Setting, changing or removing the caller's password.
        case settings = 0
        /// Entering the password during a login, after the code.
        case challenge = 1
        /// Logging in by a QR code.
        case qr = 2
        /// Requesting a login token after the code.
        case signIn = 3
    }

    package let kind: Kind
    /// The user to whom the track belongs. For a QR login, the user who approved it; nil before the
    /// approval.
    package let user: UserID?
    /// The session that opened the track. For a QR login, the session that approved it. Nil if
    /// there is no such session.
    package let session: SessionID?
    /// Unix milliseconds, like all expiry times in this file.
    package let expires: Int64
    /// Whether the user has entered the correct old password.
    package let isChecked: Bool
    /// The e-mail address to which a code was sent.
    package let email: String?
    package let isEmailChecked: Bool
    package let codeHash: [UInt8]
    package let codeExpires: Int64
    package let codeTries: Int
    package let codesSent: Int

    init(row: SQLRow<TrackColumn>) {
        kind = Kind(rawValue: row.int(.kind)) ?? .settings
        user = row.nonZero(.userID).map { UserID($0) }
        session = row.nonZero(.session).map { SessionID($0) }
        expires = row.int(.expires)
        isChecked = row.bool(.checked)
        email = row.optionalString(.email)
        isEmailChecked = row.bool(.emailChecked)
        codeHash = row.bytes(.codeHash)
        codeExpires = row.int(.codeExpires)
        codeTries = row.count(.codeTries)
        codesSent = row.count(.codesSent)
    }
}

extension ReadTransaction {
    /// Returns the track of a secret; nil if the track has expired at `now`. The caller passes the
    /// SHA-256 of the secret.
    package func track(idHash: [UInt8], now: Int64) throws -> Track? {
        let track = try store.tracks.byID.one({ $0.bindBlob(1, idHash) }, read: Track.init(row:))
        guard let track, track.expires > now else { return nil }
        return track
    }

    /// Returns the QR login of a link, with the hash of the track's secret; nil if the QR login has
    /// expired. The caller passes the SHA-256 of the link.
    package func track(linkHash: [UInt8], now: Int64) throws -> (track: Track, idHash: [UInt8])? {
        let found = try store.tracks.byLink.one {
            $0.bindBlob(1, linkHash)
        } read: {
            (track: Track(row: $0.first()), idHash: $0.bytes(.second(.idHash)))
        }
        guard let found, found.track.expires > now else { return nil }
        return found
    }

    /// Returns the number of codes sent to an e-mail address after `time` (Unix milliseconds).
    ///
    /// - Parameter recipient: the SHA-256 of the address.
    package func emailCodes(to recipient: [UInt8], since time: Int64) throws -> Int {
        try store.tracks.emailCodesTo.oneCount {
            $0.bindBlob(1, recipient)
            $0.bind(2, time)
        }
    }

    /// Returns the number of e-mail codes that the account of `user` requested after `time` (Unix
    /// milliseconds).
    package func emailCodes(of user: UserID, since time: Int64) throws -> Int {
        try store.tracks.emailCodesOf.oneCount {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
        }
    }

    /// Returns the number of tracks of a kind that `user` opened after `time` (Unix milliseconds).
    package func tracks(_ kind: Track.Kind, of user: UserID, since time: Int64) throws -> Int {
        try store.tracks.countOfUser.oneCount {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
            $0.bind(3, kind.rawValue)
        }
    }
}

extension WriteTransaction {
    /// Opens a track and deletes tracks older than `keptSince` (Unix milliseconds).
    package func createTrack(
        _ kind: Track.Kind,
        idHash: [UInt8],
        linkHash: [UInt8]? = nil,
        user: UserID? = nil,
        session: SessionID? = nil,
        expires: Int64,
        keptSince: Int64
    ) throws {
        writes += 1
        try store.tracks.prune.run { $0.bind(1, keptSince) }
        let insert = store.tracks.insert
        insert.bindBlob(1, idHash)
        insert.bind(2, kind.rawValue)
        insert.bind(3, user?.rawValue ?? 0)
        insert.bind(4, session?.rawValue ?? 0)
        if let linkHash { insert.bindBlob(5, linkHash) } else { insert.bindNull(5) }
        insert.bind(6, ct)
        insert.bind(7, expires)
        try insert.run()
    }

    /// Records that the user has entered the correct old password.
    package func checkTrack(_ idHash: [UInt8]) throws {
        try run(store.tracks.check, idHash)
    }

    package func approveTrack(
        _ idHash: [UInt8],
        by user: UserID,
        session: SessionID
    ) throws {
        store.tracks.approve.bind(2, user.rawValue)
        store.tracks.approve.bind(3, session.rawValue)
        try run(store.tracks.approve, idHash)
    }

    /// Stores a code that is sent to an e-mail address. The previous code of the track becomes
    /// void.
    package func setEmailCode(
        _ codeHash: [UInt8],
        to email: String,
        expires: Int64,
        track idHash: [UInt8]
    ) throws {
        store.tracks.setCode.bindWords(2, email)
        store.tracks.setCode.bindBlob(3, codeHash)
        store.tracks.setCode.bind(4, expires)
        try run(store.tracks.setCode, idHash)
    }

    /// Records that a code is sent to an e-mail address. Deletes the records that are older than
    /// `keptSince` (Unix milliseconds).
    ///
    /// - Parameter recipient: the SHA-256 of the address.
    package func countEmailCode(
        to recipient: [UInt8],
        of user: UserID,
        keptSince: Int64
    ) throws {
        writes += 1
        try store.tracks.pruneEmailCodes.run { $0.bind(1, keptSince) }
        try store.tracks.insertEmailCode.run {
            $0.bindBlob(1, recipient)
            $0.bind(2, user.rawValue)
            $0.bind(3, ct)
        }
    }

    package func countEmailTry(track idHash: [UInt8]) throws {
        try run(store.tracks.countTry, idHash)
    }

    package func checkEmail(track idHash: [UInt8]) throws {
        try run(store.tracks.checkEmail, idHash)
    }

    /// Ends a track. The track expires, and its e-mail address and code are deleted.
    package func endTrack(_ idHash: [UInt8]) throws {
        try run(store.tracks.end, idHash)
    }

    /// Voids the QR logins that a session approved. Also voids the challenges that these QR logins
    /// opened.
    func voidSignIns(approvedBy session: SessionID, of user: UserID) throws {
        writes += 1
        try store.tracks.endSignInsOfSession.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, session.rawValue)
        }
    }

    /// Voids everything that could open a new session of `user`: approved QR logins, challenges,
    /// logins after a code, and codes sent to the phone.
    package func voidSignIns(of user: UserID) throws {
        writes += 1
        try store.tracks.endSignInsOfUser.run { $0.bind(1, user.rawValue) }
        guard let account = try reader.account(user) else { return }
        try store.sessions.voidCodesOfPhone.run { $0.bind(1, account.phone) }
    }

    private func run(_ statement: any SQLStatement, _ idHash: [UInt8]) throws {
        writes += 1
        statement.bindBlob(1, idHash)
        try statement.run()
    }
}
