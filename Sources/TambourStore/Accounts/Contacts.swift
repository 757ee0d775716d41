package import TambourProtocol
import TambourSQL

/// A contact: a user as the owner of the contact sees this user. The two users of a dialog are
/// contacts of each other, even if neither has added the other.
package struct Contact: Sendable {
    package let account: Account
    /// Whether the owner added the user.
    package let isAdded: Bool
    /// Whether the owner blocked the user.
    package let isBlocked: Bool
    /// Whether the owner and the user have a dialog.
    package let isPartner: Bool
    /// The names that the owner gave to the user.
    package let firstName: String?
    package let lastName: String?
    /// Whether the user has added the owner too.
    package let isMutual: Bool
    /// The commit clock of the last change of the contact or of the user's profile.
    package let changed: Int64
    /// Whether the user is or was the owner's contact.
    package let wasMet: Bool

    /// Whether the contact still exists. The row of a removed contact stays as a tombstone.
    package var isThere: Bool { isAdded || isBlocked || isPartner }

    /// Whether the contact is stored because of the owner's actions; false if it is stored only
    /// because of a dialog.
    package var isKept: Bool { isAdded || isBlocked || wasMet && !isPartner }
}

/// The actions that a user permits to a caller.
package struct Standing: Sendable {
    /// Whether other users can see the user, and the user has not blocked the caller.
    package let isReachable: Bool
    /// Whether the caller may add the user to a group.
    package let isInvitable: Bool
}

/// The columns of the table `contact`, which the statements call `k`.
enum ContactColumn: Int, SQLColumn {
    case added, blocked, partner, firstName, lastName, ct
    /// Whether the user has added the owner.
    case isMutual

    var sql: String {
        switch self {
        case .isMutual:
            "(SELECT r.added FROM contact r WHERE r.owner = k.user_id AND r.user_id = k.owner)"
        default: "k.\(snakeCase)"
        }
    }
}

typealias PersonColumn = SQLPair<AccountColumn, ContactColumn>

enum OwnerColumn: Int, SQLColumn {
    case owner
}

enum StandingColumn: Int, SQLColumn {
    case blocked, privacy
    /// Whether the user has added or blocked the caller.
    case hasAdded, hasBlocked

    var sql: String {
        switch self {
        case .blocked, .privacy: "a.\(snakeCase)"
        case .hasAdded: "k.added"
        case .hasBlocked: "k.blocked"
        }
    }
}

struct ContactStatements {
    let byID: SQLQuery<ContactColumn>
    /// Finds an account, together with the owner's contact row if this row exists.
    let person: SQLQuery<PersonColumn>
    let standing: SQLQuery<StandingColumn>
    let changed: SQLQuery<PersonColumn>
    let current: SQLQuery<PersonColumn>
    /// The contacts that the owner added or blocked.
    let chosen: SQLQuery<PersonColumn>
    let blocks: SQLQuery<OwnerColumn>
    /// The contacts with one status, in the order of their ids.
    let listed: SQLQuery<PersonColumn>
    let countAdded: any SQLStatement
    let countBlocked: any SQLStatement
    let countKept: any SQLStatement
    let upsert: any SQLStatement
    let addPartner: any SQLStatement
    let touch: any SQLStatement
    let touchOne: any SQLStatement
    let owners: SQLQuery<SQLPair<OwnerColumn, ContactColumn>>

    init(_ sql: any SQLConnection) throws {
        let person = "\(AccountColumn.list(of: "a")), \(ContactColumn.list)"
        byID = try sql.query(
            """
            SELECT \(ContactColumn.list) FROM contact k WHERE k.owner = $1 AND k.user_id = $2
            """
        )
        self.person = try sql.query(
            """
            SELECT \(person)
            FROM account a LEFT JOIN contact k ON k.owner = $1 AND k.user_id = a.id
            WHERE a.id = $2
            """
        )
        standing = try sql.query(
            """
            SELECT \(StandingColumn.list)
            FROM account a LEFT JOIN contact k ON k.owner = a.id AND k.user_id = $1
            WHERE a.id = $2
            """
        )
        let ofOwner = """
            SELECT \(person)
            FROM contact k JOIN account a ON a.id = k.user_id
            WHERE k.owner = $1
            """
        let newestFirst = "ORDER BY k.ct DESC, a.id"
        changed = try sql.query("\(ofOwner) AND k.ct > $2 AND k.ct <= $3 \(newestFirst)")
        current = try sql.query(
            "\(ofOwner) AND (k.added = 1 OR k.blocked = 1 OR k.partner = 1) \(newestFirst)"
        )
        chosen = try sql.query("\(ofOwner) AND (k.added = 1 OR k.blocked = 1) \(newestFirst)")
        listed = try sql.query(
            """
            \(ofOwner) AND k.user_id > $2 AND k.blocked = $4
              AND (k.blocked = 1 OR k.added = $5 AND (k.added = 1 OR k.partner = 0))
            ORDER BY k.user_id LIMIT $3
            """
        )
        blocks = try sql.query(
            """
            SELECT \(OwnerColumn.list) FROM contact WHERE blocked = 1
              AND (owner = $1 AND user_id = $2 OR owner = $2 AND user_id = $1)
            """
        )
        countAdded = try sql.prepare(
            "SELECT count(*) FROM contact WHERE owner = $1 AND added = 1"
        )
        countBlocked = try sql.prepare(
            "SELECT count(*) FROM contact WHERE owner = $1 AND blocked = 1"
        )
        countKept = try sql.prepare(
            """
            SELECT count(*) FROM contact
            WHERE owner = $1 AND (added = 1 OR blocked = 1 OR partner = 0)
            """
        )
        upsert = try sql.prepare(
            """
            INSERT INTO contact (owner, user_id, added, blocked, partner, first_name, last_name, ct)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (owner, user_id) DO UPDATE SET
              added = excluded.added, blocked = excluded.blocked, partner = excluded.partner,
              first_name = excluded.first_name, last_name = excluded.last_name, ct = excluded.ct
            """
        )
        addPartner = try sql.prepare(
            """
            INSERT INTO contact (owner, user_id, added, blocked, partner, ct)
            VALUES ($1, $2, 0, 0, 1, $3)
            ON CONFLICT (owner, user_id) DO UPDATE SET partner = 1, ct = excluded.ct
            """
        )
        // Every user who has $1 as a contact sees the new profile.
        touch = try sql.prepare("UPDATE contact SET ct = $2 WHERE user_id = $1")
        touchOne = try sql.prepare(
            "UPDATE contact SET ct = $3 WHERE owner = $1 AND user_id = $2"
        )
        owners = try sql.query(
            """
            SELECT \(OwnerColumn.list(of: "k")), \(ContactColumn.list) FROM contact k
            WHERE k.user_id = $1 AND (k.added = 1 OR k.partner = 1)
            ORDER BY k.owner LIMIT $2
            """
        )
    }
}

extension Contact {
    init(row: SQLRow<PersonColumn>) {
        self.init(account: Account(row: row.first()), row: row.second())
    }

    init(account: Account, row: SQLRow<ContactColumn>) {
        self.init(
            account: account,
            isAdded: row.bool(.added),
            isBlocked: row.bool(.blocked),
            isPartner: row.bool(.partner),
            firstName: row.optionalString(.firstName),
            lastName: row.optionalString(.lastName),
            isMutual: row.bool(.isMutual),
            changed: row.int(.ct),
            wasMet: !row.isNull(.added)
        )
    }

    /// Creates the value for a user who is not a contact of the caller.
    ///
    /// - Parameter wasMet: whether the user was a contact of the caller earlier.
    package init(stranger account: Account, wasMet: Bool = false) {
        self.init(
            account: account,
            isAdded: false,
            isBlocked: false,
            isPartner: false,
            firstName: nil,
            lastName: nil,
            isMutual: false,
            changed: 0,
            wasMet: wasMet
        )
    }

    fileprivate var orStranger: Contact {
        isThere ? self : Contact(stranger: account, wasMet: wasMet)
    }

    /// An upper estimate of the size of the result of `user` on the wire, in bytes.
    package var wireSizeEstimate: Int {
        let given = (firstName?.utf8.count ?? 0) + (lastName?.utf8.count ?? 0)
        return account.wireSizeEstimate + 64 + 2 * given
    }

    /// Returns the user object that the owner receives. It contains the names that the owner gave
    /// to the user. It contains the phone if the owner has added the user and the user lets the
    /// owner see it.
    ///
    /// - Parameters:
    ///   - showingPhone: includes the phone even if the owner has not added the user. The user must
    ///     still let the owner see it.
    ///   - showingRemoval: marks a removed contact as removed. Clients need this mark if they still
    ///     have to delete the contact.
    package func user(showingPhone: Bool = false, showingRemoval: Bool = false) -> User {
        let mayShow = account.privacy.phoneNumber.includes(isAdded: isMutual)
        var user = account.user(showingPhone: mayShow && (showingPhone || isAdded))
        if let firstName {
            let given = UserName(
                name: Account.name(firstName, lastName),
                firstName: firstName,
                lastName: lastName,
                type: "CUSTOM"
            )
            user.names.insert(given, at: 0)
        }
        if isThere || showingRemoval { user.updateTime = max(user.updateTime, changed) }
        if isBlocked {
            user.status = "BLOCKED"
        } else if showingRemoval, !isThere {
            user.status = "REMOVED"
        }
        return user
    }
}

extension ReadTransaction {
    /// Returns the contact that `owner` has for `user`, or else a stranger.
    package func contact(_ user: Account, of owner: UserID) throws -> Contact {
        let contact = try store.contacts.byID.one {
            $0.bind(1, owner.rawValue)
            $0.bind(2, user.id.rawValue)
        } read: {
            Contact(account: user, row: $0)
        }
        return contact?.orStranger ?? Contact(stranger: user)
    }

    /// Returns the contact that `owner` has for the user with this id, or else a stranger; nil for
    /// an unknown user.
    package func contact(_ user: UserID, of owner: UserID) throws -> Contact? {
        try store.contacts.person.one {
            $0.bind(1, owner.rawValue)
            $0.bind(2, user.rawValue)
        } read: {
            Contact(row: $0).orStranger
        }
    }

    /// Returns the contacts of `owner` that changed after `since` and not after `end` (commit
    /// clock), the newest change first. Includes removed contacts.
    package func changedContacts(
        of owner: UserID,
        since: Int64,
        upTo end: Int64 = .max
    ) throws -> [Contact] {
        try store.contacts.changed.all {
            $0.bind(1, owner.rawValue)
            $0.bind(2, since)
            $0.bind(3, end)
        } read: {
            Contact(row: $0)
        }
    }

    /// Returns the existing contacts of `owner`, the newest change first.
    ///
    /// - Parameter withPartners: includes users who are contacts only because of a dialog.
    package func contacts(of owner: UserID, withPartners: Bool) throws -> [Contact] {
        let query = withPartners ? store.contacts.current : store.contacts.chosen
        return try query.all({ $0.bind(1, owner.rawValue) }, read: Contact.init(row:))
    }

    /// The number of users whom `owner` has added.
    package func addedContactCount(of owner: UserID) throws -> Int {
        try store.contacts.countAdded.oneCount { $0.bind(1, owner.rawValue) }
    }

    /// The number of users whom `owner` has blocked.
    package func blockedContactCount(of owner: UserID) throws -> Int {
        try store.contacts.countBlocked.oneCount { $0.bind(1, owner.rawValue) }
    }

    /// Returns the number of contacts for which `Contact.isKept` is true.
    package func keptContactCount(of owner: UserID) throws -> Int {
        try store.contacts.countKept.oneCount { $0.bind(1, owner.rawValue) }
    }

    /// Returns contacts of `owner` with a given status and with ids above `id`, in the order of
    /// their ids. The status selects the blocked contacts, the added contacts that are not blocked,
    /// or the removed contacts.
    package func contacts(
        of owner: UserID,
        status: ContactStatus,
        after id: Int64,
        limit: Int
    ) throws -> [Contact] {
        try store.contacts.listed.all {
            $0.bind(1, owner.rawValue)
            $0.bind(2, id)
            $0.bind(3, Int64(limit))
            $0.bind(4, status == .blocked ? 1 : 0)
            $0.bind(5, status == .active ? 1 : 0)
        } read: {
            Contact(row: $0)
        }
    }

    /// Returns the users, of these two, who have blocked the other user.
    package func blockers(_ a: UserID, _ b: UserID) throws -> Set<UserID> {
        var blockers: Set<UserID> = []
        try store.contacts.blocks.each {
            $0.bind(1, a.rawValue)
            $0.bind(2, b.rawValue)
        } do: {
            blockers.insert(UserID($0.int(.owner)))
        }
        return blockers
    }

    /// Returns the actions that `user` permits to `caller`; nil for an unknown user.
    package func standing(of caller: UserID, with user: UserID) throws -> Standing? {
        try store.contacts.standing.one {
            $0.bind(1, caller.rawValue)
            $0.bind(2, user.rawValue)
        } read: { row in
            let audience = Privacy(column: row.int(.privacy)).chatsInvite
            return Standing(
                isReachable: !row.bool(.blocked) && !row.bool(.hasBlocked),
                isInvitable: audience.includes(isAdded: row.bool(.hasAdded))
            )
        }
    }

    package func isReachable(_ user: UserID, for caller: UserID) throws -> Bool {
        try standing(of: caller, with: user)?.isReachable ?? false
    }

    /// Whether `owner` has added `user`.
    package func hasAdded(_ owner: UserID, _ user: UserID) throws -> Bool {
        try store.contacts.byID.one {
            $0.bind(1, owner.rawValue)
            $0.bind(2, user.rawValue)
        } read: {
            $0.bool(.added)
        } ?? false
    }

    /// Returns the account with `phone` if its user permits `caller` to find it by phone.
    package func account(phone: Int64, findableBy caller: UserID) throws -> Account? {
        guard let account = try account(phone: phone), !account.isBlocked else { return nil }
        if account.id == caller { return account }
        let audience = account.privacy.searchByPhone
        if audience == .all { return account }
        return audience.includes(isAdded: try hasAdded(account.id, caller)) ? account : nil
    }

    /// Returns users who have added `user` or have a dialog with `user`, in the order of their ids.
    /// Each user comes with the contact that this user has for `user`.
    package func owners(
        of user: Account,
        limit: Int
    ) throws -> [(owner: UserID, contact: Contact)] {
        try store.contacts.owners.all {
            $0.bind(1, user.id.rawValue)
            $0.bind(2, Int64(limit))
        } read: {
            (UserID($0.int(.first(.owner))), Contact(account: user, row: $0.second()))
        }
    }
}
