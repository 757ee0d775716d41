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

/// A password as it is stored: what came out of hashing it with a salt of its own.
package struct HashedPassword: Equatable, Sendable {
    package let salt: [UInt8]
    package let hash: [UInt8]
    /// Powers of two of the rounds it was hashed with.
    package let logRounds: Int
    package let version: Version

    /// What of the password went into scrypt; the raw values are those of the column `version`.
    package enum Version: Int64, Sendable {
        /// Its bytes: a password and the same with NULs after it have one hash.
        case plain = 0
        /// Their SHA-256.
        case digested = 1
    }

    package init(salt: [UInt8], hash: [UInt8], logRounds: Int, version: Version) {
        self.salt = salt
        self.hash = hash
        self.logRounds = logRounds
        self.version = version
    }

    /// False for a password that has the hash of another one: it is wrong, whatever it hashes to.
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
    /// Wrong tries since `triesSince` (Unix milliseconds).
    package let tries: Int
    package let triesSince: Int64
}

extension ReadTransaction {
    /// What the limit of an operator allows, powers of two.
    private static let logRounds: ClosedRange<Int64> = 1...20

    /// Nil for a user without a second factor.
    package func password(of user: UserID) throws -> PasswordRecord? {
        let statement = store.passwords.ofUser
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        guard try statement.step() else { return nil }
        // Hashing takes as many rounds as the row says.
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
    /// Sets the second factor of a user, or takes another one; what the one before opened is void.
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

    /// Takes the second factor of a user away; what it opened is void.
    package func removePassword(of user: UserID) throws {
        writes += 1
        store.passwords.delete.bind(1, user.rawValue)
        try store.passwords.delete.run()
        try voidTracks(of: user)
    }

    /// Says how many wrong tries there were since `time` (Unix milliseconds).
    package func setPasswordTries(_ tries: Int, since time: Int64, of user: UserID) throws {
        writes += 1
        store.passwords.setTries.bind(1, user.rawValue)
        store.passwords.setTries.bind(2, Int64(tries))
        store.passwords.setTries.bind(3, time)
        try store.passwords.setTries.run()
    }

    /// Voids challenges, and the tracks on which the second factor so far was given or its change prepared.
    private func voidTracks(of user: UserID) throws {
        try voidChallenges(of: user)
        store.tracks.endSettingsOfUser.bind(1, user.rawValue)
        try store.tracks.endSettingsOfUser.run()
    }

    /// Voids what a code has led to and is no login yet: challenges, and tokens for one.
    func voidChallenges(of user: UserID) throws {
        store.tracks.deleteAfterCodeOfUser.bind(1, user.rawValue)
        try store.tracks.deleteAfterCodeOfUser.run()
    }
}
