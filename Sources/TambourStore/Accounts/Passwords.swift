package import TambourProtocol
import TambourSQL

struct PasswordStatements {
    let ofUser: any SQLStatement
    let put: any SQLStatement
    let delete: any SQLStatement
    let setTries: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        ofUser = try sql.prepare(
            """
            SELECT salt, hash, log_rounds, hint, email, tries, tries_since, version
            FROM password WHERE user_id = $1
            """
        )
        put = try sql.prepare(
            """
            INSERT INTO password
              (user_id, salt, hash, log_rounds, hint, email, tries, tries_since, version)
            VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7)
            ON CONFLICT (user_id) DO UPDATE SET
              salt = excluded.salt, hash = excluded.hash, log_rounds = excluded.log_rounds,
              hint = excluded.hint, email = excluded.email, tries = 0, tries_since = 0,
              version = excluded.version
            """
        )
        delete = try sql.prepare("DELETE FROM password WHERE user_id = $1")
        setTries = try sql.prepare(
            "UPDATE password SET tries = $2, tries_since = $3 WHERE user_id = $1"
        )
    }
}

/// A password as it is stored: its hash with a salt of its own.
package struct HashedPassword: Equatable, Sendable {
    package let salt: [UInt8]
    package let hash: [UInt8]
    /// The base-2 logarithm of the number of rounds.
    package let logRounds: Int
    package let version: Version

    /// The input of scrypt; the raw values are those of the column `version`.
    package enum Version: Int64, Sendable {
        /// The password's bytes: trailing NULs do not change the hash.
        case plain = 0
        /// The SHA-256 of the password's bytes.
        case digested = 1
    }

    package init(salt: [UInt8], hash: [UInt8], logRounds: Int, version: Version) {
        self.salt = salt
        self.hash = hash
        self.logRounds = logRounds
        self.version = version
    }

    /// False for a password that shares its hash with another one by trailing NULs: it is always
    /// wrong.
    package func mayBe(_ password: String) -> Bool {
        version == .digested || password.utf8.last != 0
    }

    /// Whether both were hashed in the same way, so that equal hashes mean equal passwords.
    package func isComparable(to other: HashedPassword) -> Bool {
        salt == other.salt && logRounds == other.logRounds && version == other.version
    }
}

/// The second factor of a user.
package struct PasswordRecord: Sendable {
    package let password: HashedPassword
    package let hint: Text?
    package let email: String?
    /// Wrong attempts since `triesSince` (Unix milliseconds).
    package let tries: Int
    package let triesSince: Int64
}

extension ReadTransaction {
    /// The range of the operator's limit, as base-2 logarithms.
    private static let logRounds: ClosedRange<Int64> = 1...20

    /// Returns the second factor of a user; nil for none.
    package func password(of user: UserID) throws -> PasswordRecord? {
        let statement = store.passwords.ofUser
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        guard try statement.step() else { return nil }
        // The row decides how many rounds hashing takes, so a damaged row must not pass.
        let logRounds = statement.int(2)
        guard Self.logRounds.contains(logRounds) else {
            throw ImpossibleRow("password \(user): log_rounds", logRounds)
        }
        return PasswordRecord(
            password: HashedPassword(
                salt: statement.bytes(0),
                hash: statement.bytes(1),
                logRounds: Int(clamping: logRounds),
                version: HashedPassword.Version(rawValue: statement.int(7)) ?? .plain
            ),
            hint: statement.isNull(3) ? nil : Text(unchecked: Bytes(statement.bytes(3))),
            email: statement.isNull(4) ? nil : statement.string(4),
            tries: statement.count(5),
            triesSince: statement.int(6)
        )
    }

    /// The account as its owner sees it.
    package func profile(of account: Account) throws -> Profile {
        var options: [Int64] = []
        if let record = try password(of: account.id) {
            options = [2]
            if record.email != nil { options.append(3) }
            if record.hint != nil { options.append(4) }
        }
        return Profile(contact: account.user(showingPhone: true), profileOptions: options)
    }
}

extension WriteTransaction {
    /// Sets or replaces the second factor of a user; whatever the previous one opened becomes void.
    package func setPassword(
        _ password: HashedPassword,
        hint: Text?,
        email: String?,
        of user: UserID
    ) throws {
        writes += 1
        let put = store.passwords.put
        put.bind(1, user.rawValue)
        put.bindBlob(2, password.salt)
        put.bindBlob(3, password.hash)
        put.bind(4, Int64(password.logRounds))
        put.bindWords(5, hint)
        put.bindWords(6, email)
        put.bind(7, password.version.rawValue)
        try put.run()
        try voidTracks(of: user)
    }

    /// Removes the second factor of a user; whatever it opened becomes void.
    package func removePassword(of user: UserID) throws {
        writes += 1
        store.passwords.delete.bind(1, user.rawValue)
        try store.passwords.delete.run()
        try voidTracks(of: user)
    }

    /// Stores how many wrong attempts there were since `time` (Unix milliseconds).
    package func setPasswordTries(_ tries: Int, since time: Int64, of user: UserID) throws {
        writes += 1
        store.passwords.setTries.bind(1, user.rawValue)
        store.passwords.setTries.bind(2, Int64(tries))
        store.passwords.setTries.bind(3, time)
        try store.passwords.setTries.run()
    }

    /// Voids challenges, and the tracks on which the old second factor was given or its change
    /// prepared.
    private func voidTracks(of user: UserID) throws {
        try voidChallenges(of: user)
        store.tracks.endSettingsOfUser.bind(1, user.rawValue)
        try store.tracks.endSettingsOfUser.run()
    }

    /// Voids the results of a code that are not a login yet: challenges, and tokens for a login.
    func voidChallenges(of user: UserID) throws {
        store.tracks.deleteAfterCodeOfUser.bind(1, user.rawValue)
        try store.tracks.deleteAfterCodeOfUser.run()
    }
}
