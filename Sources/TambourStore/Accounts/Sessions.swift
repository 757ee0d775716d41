package import TambourEvents
package import TambourProtocol
import TambourSQL

enum SessionColumn: Int, SQLColumn {
    case id, userID, device, created, lastSeen, client, info, address, dialect
}

enum LoginCodeColumn: Int, SQLColumn {
    case phone, codeHash, expires, tries, userID, invitation
}

enum RegistrationColumn: Int, SQLColumn {
    case phone, invitation
}

struct SessionStatements {
    let byToken: SQLQuery<SessionColumn>
    let byID: SQLQuery<SessionColumn>
    let ofUser: SQLQuery<SessionColumn>
    let lastID: any SQLStatement
    let insert: any SQLStatement
    let delete: any SQLStatement
    let setSeen: any SQLStatement
    let device: any SQLStatement
    let lastDevice: any SQLStatement
    let insertDevice: any SQLStatement

    let insertCode: any SQLStatement
    let code: SQLQuery<LoginCodeColumn>
    let countTry: any SQLStatement
    let spendCode: any SQLStatement
    let codesOfPhone: any SQLStatement
    let codesOfPhoneFrom: any SQLStatement
    let voidCodesOfPhone: any SQLStatement
    let codesOfAddress: any SQLStatement
    let pruneCodes: any SQLStatement
    let insertRegistration: any SQLStatement
    let registration: SQLQuery<RegistrationColumn>
    let deleteRegistration: any SQLStatement
    let pruneRegistrations: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let select = "SELECT \(SessionColumn.list) FROM session"
        byToken = try sql.query("\(select) WHERE token_hash = $1")
        byID = try sql.query("\(select) WHERE id = $1")
        ofUser = try sql.query("\(select) WHERE user_id = $1 ORDER BY last_seen DESC, id")
        lastID = try sql.prepare("SELECT max(id) FROM session")
        insert = try sql.prepare(
            """
            INSERT INTO session
              (id, user_id, device, token_hash, created, last_seen, client, info, address, dialect)
            VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, $9)
            """
        )
        delete = try sql.prepare("DELETE FROM session WHERE id = $1")
        setSeen = try sql.prepare(
            "UPDATE session SET last_seen = $2, address = COALESCE($3, address) WHERE id = $1"
        )
        device = try sql.prepare(
            "SELECT id FROM device WHERE user_id = $1 AND installation = $2"
        )
        lastDevice = try sql.prepare("SELECT max(id) FROM device")
        insertDevice = try sql.prepare(
            "INSERT INTO device (id, user_id, installation) VALUES ($1, $2, $3)"
        )

        insertCode = try sql.prepare(
            """
            INSERT INTO login_code
              (token_hash, phone, code_hash, address, created, expires, tries, user_id, invitation)
            VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8)
            """
        )
        code = try sql.query("SELECT \(LoginCodeColumn.list) FROM login_code WHERE token_hash = $1")
        countTry = try sql.prepare(
            "UPDATE login_code SET tries = tries + 1 WHERE token_hash = $1"
        )
        spendCode = try sql.prepare("UPDATE login_code SET expires = 0 WHERE token_hash = $1")
        codesOfPhone = try sql.prepare(
            "SELECT count(*) FROM login_code WHERE phone = $1 AND created > $2"
        )
        codesOfPhoneFrom = try sql.prepare(
            "SELECT count(*) FROM login_code WHERE phone = $1 AND created > $2 AND address = $3"
        )
        voidCodesOfPhone = try sql.prepare("UPDATE login_code SET expires = 0 WHERE phone = $1")
        codesOfAddress = try sql.prepare(
            "SELECT count(*) FROM login_code WHERE address = $1 AND created > $2"
        )
        pruneCodes = try sql.prepare("DELETE FROM login_code WHERE created < $1")
        insertRegistration = try sql.prepare(
            """
            INSERT INTO registration (token_hash, phone, expires, invitation)
            VALUES ($1, $2, $3, $4)
            """
        )
        registration = try sql.query(
            """
            SELECT \(RegistrationColumn.list) FROM registration
            WHERE token_hash = $1 AND expires > $2
            """
        )
        deleteRegistration = try sql.prepare("DELETE FROM registration WHERE token_hash = $1")
        pruneRegistrations = try sql.prepare("DELETE FROM registration WHERE expires < $1")
    }
}

/// A requested login code. The row stays for a while after the code is used.
package struct LoginCode: Sendable {
    package let phone: Int64
    package let codeHash: [UInt8]
    /// Unix milliseconds; 0 after the code is used or voided.
    package let expires: Int64
    package let tries: Int
    /// The user whose phone number the code changes; nil for a sign-in code.
    package let user: UserID?
    /// The invitation with which a new phone may register; nil if no invitation is needed.
    package let invitation: InvitationID?
}

/// A phone whose owner may create an account, because the owner has entered the code that was sent
/// to the phone.
package struct Registration: Equatable, Sendable {
    package let phone: Int64
    /// The invitation with which the phone may register; nil if no invitation is needed.
    package let invitation: InvitationID?
}

extension ReadTransaction {
    /// Returns the session of a login token. The caller passes the SHA-256 of the token.
    package func session(tokenHash: [UInt8]) throws -> SessionRecord? {
        try store.sessions.byToken.one {
            $0.bindBlob(1, tokenHash)
        } read: {
            SessionRecord(row: $0)
        }
    }

    package func session(_ id: SessionID) throws -> SessionRecord? {
        try store.sessions.byID.one({ $0.bind(1, id.rawValue) }, read: SessionRecord.init(row:))
    }

    /// Returns all sessions of a user, the most recently seen first.
    package func sessions(of user: UserID) throws -> [SessionRecord] {
        try store.sessions.ofUser.all({ $0.bind(1, user.rawValue) }, read: SessionRecord.init(row:))
    }

    /// Returns the code request of a token. The client received the token in the reply to opcode
    /// 17. The caller passes the SHA-256 of the token.
    package func loginCode(tokenHash: [UInt8]) throws -> LoginCode? {
        try store.sessions.code.one {
            $0.bindBlob(1, tokenHash)
        } read: {
            LoginCode(
                phone: $0.int(.phone),
                codeHash: $0.bytes(.codeHash),
                expires: $0.int(.expires),
                tries: $0.count(.tries),
                user: $0.nonZero(.userID).map { UserID($0) },
                invitation: $0.nonZero(.invitation).map { InvitationID($0) }
            )
        }
    }

    /// Returns the number of codes sent to `phone` since `time` (Unix milliseconds).
    package func loginCodes(phone: Int64, since time: Int64) throws -> Int {
        try store.sessions.codesOfPhone.oneCount {
            $0.bind(1, phone)
            $0.bind(2, time)
        }
    }

    /// Returns the number of codes sent to `phone` since `time` (Unix milliseconds) that `address`
    /// requested.
    package func loginCodes(phone: Int64, address: String, since time: Int64) throws -> Int {
        try store.sessions.codesOfPhoneFrom.oneCount {
            $0.bind(1, phone)
            $0.bind(2, time)
            $0.bindText(3, address)
        }
    }

    /// Returns the number of codes requested from `address` since `time` (Unix milliseconds).
    package func loginCodes(address: String, since time: Int64) throws -> Int {
        try store.sessions.codesOfAddress.oneCount {
            $0.bindText(1, address)
            $0.bind(2, time)
        }
    }

    /// Returns the registration of a token; nil if the registration has expired. The caller passes
    /// the SHA-256 of the token.
    package func registration(tokenHash: [UInt8], now: Int64) throws -> Registration? {
        try store.sessions.registration.one {
            $0.bindBlob(1, tokenHash)
            $0.bind(2, now)
        } read: {
            Registration(
                phone: $0.int(.phone),
                invitation: $0.nonZero(.invitation).map { InvitationID($0) }
            )
        }
    }
}

extension SessionRecord {
    init(row: SQLRow<SessionColumn>) {
        self.init(
            id: SessionID(row.int(.id)),
            userID: UserID(row.int(.userID)),
            deviceID: DeviceID(row.int(.device)),
            created: row.int(.created),
            lastSeen: row.int(.lastSeen),
            client: row.string(.client),
            info: row.string(.info),
            address: row.string(.address),
            dialect: row.string(.dialect)
        )
    }
}
