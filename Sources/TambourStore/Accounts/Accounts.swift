package import TambourProtocol
import TambourSQL

enum AccountColumn: Int, SQLColumn {
    case id, phone, firstName, lastName, registered, updated, blocked, seen, description, privacy
    case settingsCT
}

struct AccountStatements {
    let byID: SQLQuery<AccountColumn>
    let blocked: any SQLStatement
    let byPhone: SQLQuery<AccountColumn>
    let page: SQLQuery<AccountColumn>
    let insert: any SQLStatement
    let setSeen: any SQLStatement
    let setBlocked: any SQLStatement
    let setProfile: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let select = "SELECT \(AccountColumn.list) FROM account"
        byID = try sql.query("\(select) WHERE id = $1")
        blocked = try sql.prepare("SELECT blocked FROM account WHERE id = $1")
        byPhone = try sql.query("\(select) WHERE phone = $1")
        page = try sql.query("\(select) WHERE id > $1 ORDER BY id LIMIT $2")
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
    /// Returns the account with this id, even if the account is blocked.
    package func account(_ id: UserID) throws -> Account? {
        try store.accounts.byID.one({ $0.bind(1, id.rawValue) }, read: Account.init(row:))
    }

    /// Returns the account with this phone number (digits without the plus).
    package func account(phone: Int64) throws -> Account? {
        try store.accounts.byPhone.one({ $0.bind(1, phone) }, read: Account.init(row:))
    }

    /// Returns accounts in the order of their ids, starting after `id`.
    package func accounts(after id: UserID, limit: Int) throws -> [Account] {
        try store.accounts.page.all {
            $0.bind(1, id.rawValue)
            $0.bind(2, Int64(limit))
        } read: {
            Account(row: $0)
        }
    }

    /// Returns the account if other users can see it. Returns nil if the account is unknown,
    /// erased, or blocked by the administrator.
    package func listedAccount(_ id: UserID) throws -> Account? {
        guard let account = try account(id), !account.isBlocked else { return nil }
        return account
    }

    /// Whether other users can see this user. Faster than `listedAccount`, because it reads no
    /// other data of the account.
    package func isListed(_ id: UserID) throws -> Bool {
        try store.accounts.blocked.oneInt { $0.bind(1, id.rawValue) } == 0
    }
}

extension Account {
    init(row: SQLRow<AccountColumn>) {
        self.init(
            id: UserID(row.int(.id)),
            phone: row.int(.phone),
            firstName: row.string(.firstName),
            lastName: row.optionalString(.lastName),
            registered: row.int(.registered),
            updated: row.int(.updated),
            isBlocked: row.bool(.blocked),
            isErased: row.int(.blocked) == 2,
            seen: row.int(.seen),
            description: row.optionalString(.description),
            privacy: Privacy(column: row.int(.privacy)),
            settingsVersion: row.int(.settingsCT)
        )
    }

    /// First and last name separated by a space.
    package var name: String { Self.name(firstName, lastName) }

    static func name(_ firstName: String, _ lastName: String?) -> String {
        guard let lastName, !lastName.isEmpty else { return firstName }
        return "\(firstName) \(lastName)"
    }

    /// An upper estimate of the size of the result of `user` on the wire, in bytes.
    package var wireSizeEstimate: Int {
        // Each name is sent twice: alone, and in the full name.
        192 + 2 * (firstName.utf8.count + (lastName?.utf8.count ?? 0))
            + (description?.utf8.count ?? 0)
    }

    /// Returns the user object for the wire.
    ///
    /// - Parameter showingPhone: whether to include the phone. The caller must check who may see
    ///   the phone.
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
