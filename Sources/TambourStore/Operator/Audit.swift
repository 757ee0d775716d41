package import TambourProtocol
import TambourSQL

enum AuditColumn: Int, SQLColumn {
    case id, created, last, times, action, userID, address, detail
}

struct AuditStatements {
    let add: any SQLStatement
    let countAgain: any SQLStatement
    let lastID: any SQLStatement
    let lastNumber: any SQLStatement
    let trim: any SQLStatement
    let prune: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        add = try sql.prepare(
            """
            INSERT INTO audit
              (id, kind, n, created, last, times, action, user_id, address, detail)
            VALUES ($1, $2, $3, $4, $4, 1, $5, $6, $7, $8)
            """
        )
        countAgain = try sql.prepare(
            """
            UPDATE audit SET times = times + 1, last = $4, address = $5
            WHERE id = (
              SELECT id FROM audit WHERE user_id = $1 AND action = $2 AND created > $3
              ORDER BY created DESC LIMIT 1
            )
            """
        )
        lastID = try sql.prepare("SELECT max(id) FROM audit")
        lastNumber = try sql.prepare("SELECT max(n) FROM audit WHERE kind = $1")
        trim = try sql.prepare(
            """
            DELETE FROM audit WHERE kind = $1 AND n IN (
              SELECT n FROM audit WHERE kind = $1 AND n <= $2 ORDER BY n LIMIT $3
            )
            """
        )
        prune = try sql.prepare(
            """
            DELETE FROM audit WHERE id < (SELECT min(id) FROM audit) + $2 AND created < $1
            """
        )
    }
}

/// An entry of the audit log. It records an action of an administrator, a sign-in, or refused
/// sign-ins.
package struct AuditEntry: Sendable {
    /// Each kind has its own maximum number of entries. Refused sign-ins by strangers therefore
    /// cannot displace entries of other kinds. The raw values are the values of the column `kind`.
    package enum Kind: Int64, CaseIterable, Sendable {
        case admin = 1
        case signIn = 2
        case refused = 3

        /// The word for the kind in lists and filters.
        package var word: String {
            switch self {
            case .admin: "admin"
            case .signIn: "sign-in"
            case .refused: "refused"
            }
        }
    }

    /// The raw values are the values of the column `action`.
    package enum Action: String, CaseIterable, Sendable {
        case createUsers = "create-users"
        case block, unblock, erase, export
        case endSession = "end-session"
        case endSessions = "end-sessions"
        case vacuum, reload
        case closeReport = "close-report"
        case announce
        case addDefaultChat = "add-default-chat"
        case removeDefaultChat = "remove-default-chat"
        case createInvitation = "create-invitation"
        case invite
        case revokeInvitation = "revoke-invitation"

        case registration
        /// A sign-in on a device that the account has used before.
        case signIn = "sign-in"
        case newDevice = "new-device"

        case codeRefused = "code-refused"
        case passwordRefused = "password-refused"

        package var kind: Kind {
            switch self {
            case .registration, .signIn, .newDevice: .signIn
            case .codeRefused, .passwordRefused: .refused
            default: .admin
            }
        }
    }

    package let id: Int64
    /// The commit clock of the first occurrence, Unix milliseconds.
    package let created: Int64
    /// The commit clock of the last occurrence, Unix milliseconds.
    package let last: Int64
    /// The number of occurrences between `created` and `last`. Only entries of refused sign-ins
    /// have more than one.
    package let times: Int64
    /// The raw value of an `Action`, or an action that only a later version knows.
    package let action: String
    /// The user whom the entry concerns.
    package let user: UserID?
    /// The client's address; empty for actions of administrators.
    package let address: String
    package let detail: String

    package var kind: Kind? { Action(rawValue: action)?.kind }

    init(row: SQLRow<AuditColumn>) {
        id = row.int(.id)
        created = row.int(.created)
        last = row.int(.last)
        times = row.int(.times)
        action = row.string(.action)
        user = row.nonZero(.userID).map { UserID($0) }
        address = row.string(.address)
        detail = row.string(.detail)
    }
}

extension WriteTransaction {
    /// Adds an entry to the audit log. If its kind then has more than `maxAuditRows` entries,
    /// deletes the oldest of them.
    ///
    /// - Parameter detail: details for the administrator. They must not contain codes, tokens,
    ///   phone numbers or message texts.
    package func record(
        _ action: AuditEntry.Action,
        about user: UserID?,
        from address: String = "",
        _ detail: String = ""
    ) throws {
        writes += 1
        lastAuditID += 1
        let kind = action.kind.rawValue
        // The entries of a kind are numbered without gaps. The difference of two numbers is
        // therefore a number of entries.
        let last = try store.audit.lastNumber.oneInt { $0.bind(1, kind) } ?? 0
        let number = min(max(last, 0), StoreCheck.ids.upperBound) + 1
        try store.audit.add.run {
            $0.bind(1, lastAuditID)
            $0.bind(2, kind)
            $0.bind(3, number)
            $0.bind(4, ct)
            $0.bindText(5, action.rawValue)
            $0.bind(6, user?.rawValue ?? 0)
            $0.bindText(7, address)
            $0.bindWords(8, detail)
        }
        try store.audit.trim.run {
            $0.bind(1, kind)
            $0.bind(2, number - Int64(store.limits.maxAuditRows))
            $0.bind(3, Int64(store.limits.auditRowsPerStep))
        }
    }

    /// Counts a refused sign-in. For each action, an account gets at most one entry per hour,
    /// because strangers can cause any number of refusals.
    package func countRefusal(
        _ action: AuditEntry.Action,
        of user: UserID,
        from address: String
    ) throws {
        let counted = try store.audit.countAgain.run {
            $0.bind(1, user.rawValue)
            $0.bindText(2, action.rawValue)
            $0.bind(3, ct - Self.refusalsMs)
            $0.bind(4, ct)
            $0.bindText(5, address)
        }
        writes += counted
        if counted == 0 { try record(action, about: user, from: address) }
    }

    /// The maximum time between the first and the last refusal in one entry, in milliseconds.
    private static let refusalsMs: Int64 = 3_600_000

    /// Deletes entries that were created before `time` (Unix milliseconds), the oldest first.
    /// Deletes at most `auditRowsPerStep` entries.
    ///
    /// - Returns: false if no entry was deleted.
    package func pruneAudit(before time: Int64) throws -> Bool {
        let deleted = try store.audit.prune.run {
            $0.bind(1, time)
            $0.bind(2, Int64(store.limits.auditRowsPerStep))
        }
        guard deleted > 0 else { return false }
        writes += 1
        return true
    }
}

extension ReadTransaction {
    /// Returns entries of the audit log after `id`, the oldest first.
    package func auditEntries(after id: Int64, limit: Int) throws -> [AuditEntry] {
        try select(
            AuditColumn.self,
            "FROM audit WHERE id > $1 ORDER BY id LIMIT $2",
            id,
            Int64(limit)
        ) { AuditEntry(row: $0) }
    }

    /// Returns the entries about one user after `id`, the oldest first.
    package func auditEntries(
        about user: UserID,
        after id: Int64,
        limit: Int
    ) throws -> [AuditEntry] {
        try select(
            AuditColumn.self,
            "FROM audit WHERE user_id = $3 AND id > $1 ORDER BY id LIMIT $2",
            id,
            Int64(limit),
            user.rawValue
        ) { AuditEntry(row: $0) }
    }
}
