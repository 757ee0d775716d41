package import TambourProtocol
import TambourSQL

enum PasswordColumn: Int, SQLColumn {
    case salt, hash, logRounds, hint, email, tries, triesSince, version
}

struct PasswordStatements {
    let ofUser: SQLQuery<PasswordColumn>
    let put: any SQLStatement
    let delete: any SQLStatement
    let setTries: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        ofUser = try sql.query("SELECT \(PasswordColumn.list) FROM password WHERE user_id = $1")
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

/// A password as it is stored: the hash and the salt.
package struct HashedPassword: Equatable, Sendable {
    package let salt: [UInt8]
    package let hash: [UInt8]
    /// The base-2 logarithm of the number of rounds.
    package let logRounds: Int
    package let version: Version

    /// The data that scrypt hashes. The raw values are the values of the column `version`.
    package enum Version: Int64, Sendable {
        /// The password's bytes. Trailing NULs do not change the hash.
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

    /// Whether the hash can be a hash of `password`. A plain hash ignores trailing NULs. For such a
    /// hash, a password that ends with NUL is therefore always wrong.
    package func mayBe(_ password: String) -> Bool {
        version == .digested || password.utf8.last != 0
    }

    /// Whether the two passwords were hashed with the same parameters. Only then do equal hashes
    /// mean equal passwords.
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
    /// The valid range of `passwordHashLogRounds`, which the operator chooses.
    private static let logRounds: ClosedRange<Int64> = 1...20

    /// Returns the second factor of a user; nil if the user has none.
    package func password(of user: UserID) throws -> PasswordRecord? {
        try store.passwords.ofUser.one {
            $0.bind(1, user.rawValue)
        } read: { row in
            // The row determines the number of hashing rounds, so a damaged row must be rejected.
            let logRounds = row.int(.logRounds)
            guard Self.logRounds.contains(logRounds) else {
                throw ImpossibleRow("password \(user): log_rounds", logRounds)
            }
            return PasswordRecord(
                password: HashedPassword(
                    salt: row.bytes(.salt),
                    hash: row.bytes(.hash),
                    logRounds: Int(clamping: logRounds),
                    version: HashedPassword.Version(rawValue: row.int(.version)) ?? .plain
                ),
                hint: row.optionalText(.hint),
                email: row.optionalString(.email),
                tries: row.count(.tries),
                triesSince: row.int(.triesSince)
            )
        }
    }

    /// Returns the account as its owner sees it.
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
    /// Sets or replaces the second factor of a user. Voids all challenges and tracks that belong to
    /// the previous factor.
    package func setPassword(
        _ password: HashedPassword,
        hint: Text?,
        email: String?,
        of user: UserID
    ) throws {
        writes += 1
        try store.passwords.put.run {
            $0.bind(1, user.rawValue)
            $0.bindBlob(2, password.salt)
            $0.bindBlob(3, password.hash)
            $0.bind(4, Int64(password.logRounds))
            $0.bindWords(5, hint)
            $0.bindWords(6, email)
            $0.bind(7, password.version.rawValue)
        }
        try voidTracks(of: user)
    }

    /// Removes the second factor of a user. Voids all challenges and tracks that belong to it.
    package func removePassword(of user: UserID) throws {
        writes += 1
        try store.passwords.delete.run { $0.bind(1, user.rawValue) }
        try voidTracks(of: user)
    }

    /// Stores the number of wrong attempts since `time` (Unix milliseconds).
    package func setPasswordTries(_ tries: Int, since time: Int64, of user: UserID) throws {
        writes += 1
        try store.passwords.setTries.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, Int64(tries))
            $0.bind(3, time)
        }
    }

    /// Voids the user's challenges. Also voids the tracks in which the old second factor was
    /// checked or a change of it was prepared.
    private func voidTracks(of user: UserID) throws {
        try voidChallenges(of: user)
        try store.tracks.endSettingsOfUser.run { $0.bind(1, user.rawValue) }
    }

    /// Voids what the user received after entering a code: challenges and login tokens.
    func voidChallenges(of user: UserID) throws {
        try store.tracks.deleteAfterCodeOfUser.run { $0.bind(1, user.rawValue) }
    }
}
