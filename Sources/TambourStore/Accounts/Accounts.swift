package import TambourProtocol
import TambourSQL

struct AccountStatements {
    static let columns =
        "id, phone, first_name, last_name, registered, updated, blocked, seen, description, "
        + "privacy, settings_ct"
    static let columnCount = 11
    /// Returns the columns prefixed with the table's name, for joins.
    static func columns(of table: String) -> String {
        columns.split(separator: ", ").map { "\(table).\($0)" }.joined(separator: ", ")
    }

    let byID: any SQLStatement
    let blocked: any SQLStatement
    let byPhone: any SQLStatement
    let page: any SQLStatement
    let insert: any SQLStatement
    let setSeen: any SQLStatement
    let setBlocked: any SQLStatement
    let setProfile: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        byID = try sql.prepare("SELECT \(Self.columns) FROM account WHERE id = $1")
        blocked = try sql.prepare("SELECT blocked FROM account WHERE id = $1")
        byPhone = try sql.prepare("SELECT \(Self.columns) FROM account WHERE phone = $1")
        page = try sql.prepare(
            "SELECT \(Self.columns) FROM account WHERE id > $1 ORDER BY id LIMIT $2"
        )
        insert = try sql.prepare(
            """
            INSERT INTO account (id, phone, first_name, last_name, registered, updated)
            VALUES ($1, $2, $3, $4, $5, $5)
            """
        )
        setSeen = try sql.prepare(
            "UPDATE account SET seen = $2 WHERE id = $1 AND seen < $2 AND blocked <> 2"
        )
        setBlocked = try sql.prepare(
            "UPDATE account SET blocked = $2, updated = $3 WHERE id = $1"
        )
        setProfile = try sql.prepare(
            """
            UPDATE account SET first_name = $2, last_name = $3, description = $4, updated = $5
            WHERE id = $1
            """
        )
    }
}

extension ReadTransaction {
    /// Returns the account with this id, even when blocked.
    package func account(_ id: UserID) throws -> Account? {
        let statement = store.accounts.byID
        statement.bind(1, id.rawValue)
        return try first(of: statement)
    }

    /// The account with this number (digits without the plus).
    package func account(phone: Int64) throws -> Account? {
        let statement = store.accounts.byPhone
        statement.bind(1, phone)
        return try first(of: statement)
    }

    /// Accounts in the order of their ids, from the one after `id`.
    package func accounts(after id: UserID, limit: Int) throws -> [Account] {
        let statement = store.accounts.page
        defer { statement.reset() }
        statement.bind(1, id.rawValue)
        statement.bind(2, Int64(limit))
        var accounts: [Account] = []
        while try statement.step() { accounts.append(Account(row: statement)) }
        return accounts
    }

    /// Returns the account as others see it: nil when unknown or blocked by the administrator.
    package func listedAccount(_ id: UserID) throws -> Account? {
        guard let account = try account(id), !account.isBlocked else { return nil }
        return account
    }

    /// Whether others can see this user, for callers that need nothing else of the account.
    package func isListed(_ id: UserID) throws -> Bool {
        let statement = store.accounts.blocked
        defer { statement.reset() }
        statement.bind(1, id.rawValue)
        return try statement.step() && statement.int(0) == 0
    }

    private func first(of statement: any SQLStatement) throws -> Account? {
        defer { statement.reset() }
        return try statement.step() ? Account(row: statement) : nil
    }
}

extension Account {
    init(row: any SQLStatement) {
        self.init(
            id: UserID(row.int(0)),
            phone: row.int(1),
            firstName: row.string(2),
            lastName: row.isNull(3) ? nil : row.string(3),
            registered: row.int(4),
            updated: row.int(5),
            isBlocked: row.int(6) != 0,
            isErased: row.int(6) == 2,
            seen: row.int(7),
            description: row.isNull(8) ? nil : row.string(8),
            privacy: Privacy(column: row.int(9)),
            settingsVersion: row.int(10)
        )
    }

    /// First and last name separated by a space.
    package var name: String { Self.name(firstName, lastName) }

    static func name(_ firstName: String, _ lastName: String?) -> String {
        guard let lastName, !lastName.isEmpty else { return firstName }
        return "\(firstName) \(lastName)"
    }

    /// An upper estimate of the bytes that `user` takes on the wire.
    package var wireSizeEstimate: Int {
        // Each name is sent twice: alone, and in the whole name.
        192 + 2 * (firstName.utf8.count + (lastName?.utf8.count ?? 0))
            + (description?.utf8.count ?? 0)
    }

    /// Returns the user object for the wire.
    ///
    /// - Parameter showingPhone: true for the user themselves and for callers who looked the number
    ///   up.
    package func user(showingPhone: Bool) -> User {
        if isErased {
            return User(id: id, accountStatus: 2, updateTime: updated)
        }
        return User(
            id: id,
            accountStatus: isBlocked ? 1 : 0,
            updateTime: updated,
            names: [
                UserName(
                    name: name,
                    firstName: firstName,
                    lastName: lastName,
                    type: "ONEME"
                )
            ],
            options: ["ONEME"],
            phone: showingPhone ? phone : nil,
            description: description.map { Text($0) },
            registrationTime: registered
        )
    }
}
