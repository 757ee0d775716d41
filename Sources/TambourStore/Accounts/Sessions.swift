package import TambourProtocol
import TambourSQL

struct SessionStatements {
    static let columns = "id, user_id, device, created, last_seen, client, info, address, dialect"

    let byToken: any SQLStatement
    let byID: any SQLStatement
    let ofUser: any SQLStatement
    let lastID: any SQLStatement
    let insert: any SQLStatement
    let delete: any SQLStatement
    let setSeen: any SQLStatement
    let device: any SQLStatement
    let lastDevice: any SQLStatement
    let insertDevice: any SQLStatement

    let insertCode: any SQLStatement
    let code: any SQLStatement
    let countTry: any SQLStatement
    let spendCode: any SQLStatement
    let codesOfPhone: any SQLStatement
    let codesOfPhoneFrom: any SQLStatement
    let voidCodesOfPhone: any SQLStatement
    let codesOfAddress: any SQLStatement
    let pruneCodes: any SQLStatement
    let insertRegistration: any SQLStatement
    let registration: any SQLStatement
    let deleteRegistration: any SQLStatement
    let pruneRegistrations: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        byToken = try sql.prepare("SELECT \(Self.columns) FROM session WHERE token_hash = $1")
        byID = try sql.prepare("SELECT \(Self.columns) FROM session WHERE id = $1")
        ofUser = try sql.prepare(
            "SELECT \(Self.columns) FROM session WHERE user_id = $1 ORDER BY last_seen DESC, id"
        )
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
              (token_hash, phone, code_hash, address, created, expires, tries, user_id)
            VALUES ($1, $2, $3, $4, $5, $6, 0, $7)
            """
        )
        code = try sql.prepare(
            "SELECT phone, code_hash, expires, tries, user_id FROM login_code WHERE token_hash = $1"
        )
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
            "INSERT INTO registration (token_hash, phone, expires) VALUES ($1, $2, $3)"
        )
        registration = try sql.prepare(
            "SELECT phone FROM registration WHERE token_hash = $1 AND expires > $2"
        )
        deleteRegistration = try sql.prepare("DELETE FROM registration WHERE token_hash = $1")
        pruneRegistrations = try sql.prepare("DELETE FROM registration WHERE expires < $1")
    }
}

/// A login code that was requested and not used yet.
package struct LoginCode: Sendable {
    package let phone: Int64
    package let codeHash: [UInt8]
    /// Unix milliseconds; 0 once the code was used.
    package let expires: Int64
    package let tries: Int
    /// The user whose phone number the code changes; nil for a sign-in code.
    package let user: UserID?
}

extension ReadTransaction {
    /// Returns the session of a login token (as its SHA-256).
    package func session(tokenHash: [UInt8]) throws -> SessionRecord? {
        let statement = store.sessions.byToken
        defer { statement.reset() }
        statement.bindBlob(1, tokenHash)
        return try statement.step() ? SessionRecord(row: statement) : nil
    }

    package func session(_ id: SessionID) throws -> SessionRecord? {
        let statement = store.sessions.byID
        defer { statement.reset() }
        statement.bind(1, id.rawValue)
        return try statement.step() ? SessionRecord(row: statement) : nil
    }

    /// Returns all sessions of a user, the most recently seen first.
    package func sessions(of user: UserID) throws -> [SessionRecord] {
        let statement = store.sessions.ofUser
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        var sessions: [SessionRecord] = []
        while try statement.step() { sessions.append(SessionRecord(row: statement)) }
        return sessions
    }

    /// Returns the code request of a token from the reply to 17 (as its SHA-256).
    package func loginCode(tokenHash: [UInt8]) throws -> LoginCode? {
        let statement = store.sessions.code
        defer { statement.reset() }
        statement.bindBlob(1, tokenHash)
        guard try statement.step() else { return nil }
        return LoginCode(
            phone: statement.int(0),
            codeHash: statement.bytes(1),
            expires: statement.int(2),
            tries: statement.count(3),
            user: statement.int(4) == 0 ? nil : UserID(statement.int(4))
        )
    }

    /// Returns the number of codes sent to `phone` since `time` (Unix milliseconds).
    package func loginCodes(phone: Int64, since time: Int64) throws -> Int {
        let statement = store.sessions.codesOfPhone
        defer { statement.reset() }
        statement.bind(1, phone)
        statement.bind(2, time)
        return try statement.step() ? statement.count(0) : 0
    }

    /// Returns the number of codes sent to `phone` since `time` (Unix milliseconds) at the request
    /// of `address`.
    package func loginCodes(phone: Int64, address: String, since time: Int64) throws -> Int {
        let statement = store.sessions.codesOfPhoneFrom
        defer { statement.reset() }
        statement.bind(1, phone)
        statement.bind(2, time)
        statement.bindText(3, address)
        return try statement.step() ? statement.count(0) : 0
    }

    /// Returns the number of codes requested from `address` since `time` (Unix milliseconds).
    package func loginCodes(address: String, since time: Int64) throws -> Int {
        let statement = store.sessions.codesOfAddress
        defer { statement.reset() }
        statement.bindText(1, address)
        statement.bind(2, time)
        return try statement.step() ? statement.count(0) : 0
    }

    /// Returns the phone of a registration token (as its SHA-256); nil if it has expired.
    package func registrationPhone(tokenHash: [UInt8], now: Int64) throws -> Int64? {
        let statement = store.sessions.registration
        defer { statement.reset() }
        statement.bindBlob(1, tokenHash)
        statement.bind(2, now)
        return try statement.step() ? statement.int(0) : nil
    }
}

extension SessionRecord {
    init(row: any SQLStatement) {
        self.init(
            id: SessionID(row.int(0)),
            userID: UserID(row.int(1)),
            deviceID: DeviceID(row.int(2)),
            created: row.int(3),
            lastSeen: row.int(4),
            client: row.string(5),
            info: row.string(6),
            address: row.string(7),
            dialect: row.string(8)
        )
    }
}
