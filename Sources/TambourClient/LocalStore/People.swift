import Foundation
import GRDB
import TambourProtocol

/// People: contacts, partners in dialogs, and members of shared chats.
extension StoreTransaction {
    /// Stores a user, unless a newer version is stored.
    ///
    /// - Parameter isContact: whether the user is a contact; nil when unknown. A user with the
    ///   status REMOVED is never a contact.
    func put(_ user: User, isContact: Bool? = nil) throws {
        let isRemoved = user.status.map { String(describing: $0) } == "REMOVED"
        let isContact = isRemoved ? false : isContact
        try execute(
            """
            INSERT INTO person (id, name, isContact, updateTime, data) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET
              name = excluded.name, updateTime = excluded.updateTime, data = excluded.data,
              isContact = CASE WHEN ? THEN excluded.isContact ELSE isContact END, isStale = 0
            WHERE excluded.updateTime >= updateTime OR isStale
            """,
            [
                user.id.rawValue, user.shownName, isContact ?? false, user.updateTime,
                user.storedBytes, isContact != nil,
            ]
        )
        changes.people.insert(user.id)
    }

    /// Stores a user from a list of members. The server sends the same list to everybody. The list
    /// therefore lacks the names that this account gave, the phone, and whether this account has
    /// blocked the user.
    func put(member: User) throws {
        var user = member
        if let known = try self.user(user.id) {
            user.names.insert(contentsOf: known.names.filter { $0.type == "CUSTOM" }, at: 0)
            user.phone = user.phone ?? known.phone
            user.status = user.status ?? known.status
        }
        try put(user)
    }

    /// Stores the presence of a user.
    func put(_ presence: Presence, of user: UserID) throws {
        try execute(
            "UPDATE person SET isOnline = ?, seen = coalesce(?, seen) WHERE id = ?",
            [presence.status == 1, presence.seen.map { $0 * 1000 }, user.rawValue]
        )
        changes.people.insert(user)
    }

    /// Marks all people as offline, because presence is unknown without a connection.
    func forgetWhoIsOnline() throws {
        for row in try rows("SELECT id FROM person WHERE isOnline") {
            changes.people.insert(UserID(row[0]))
        }
        try execute("UPDATE person SET isOnline = 0 WHERE isOnline")
    }

    /// Lets the next record of a person replace the stored record, even if the next record is
    /// older.
    func distrustPerson(_ user: UserID) throws {
        try execute("UPDATE person SET isStale = 1 WHERE id = ?", [user.rawValue])
    }

    /// Records that nobody is a contact, and lets the next record of each person replace the stored
    /// record. Called before a full list is stored.
    func distrustContacts() throws {
        try execute("UPDATE person SET isContact = 0, isStale = 1")
    }
}

extension StoreReading {
    /// Returns the server's description of a person; nil when nothing about them is stored.
    func user(_ user: UserID) throws -> User? {
        let row = try row("SELECT data FROM person WHERE id = ?", [user.rawValue])
        return row.flatMap { User(stored: $0["data"]) }
    }

    /// Returns a person for display; nil when nothing about them is stored.
    func person(_ user: UserID) throws -> Person? {
        try row("SELECT * FROM person WHERE id = ?", [user.rawValue]).map { Person($0) }
    }

    /// Returns the contacts, sorted by name.
    func contacts() throws -> [Person] {
        try rows("SELECT * FROM person WHERE isContact ORDER BY name, id").map { Person($0) }
    }

    /// Returns everybody about whom something is stored, sorted by name.
    func knownPeople() throws -> [Person] {
        try rows("SELECT * FROM person ORDER BY name, id").map { Person($0) }
    }

    func isKnown(_ user: UserID) throws -> Bool {
        try exists("SELECT 1 FROM person WHERE id = ?", [user.rawValue])
    }

    /// Returns the name of a person; nil when nothing about them is stored.
    func name(of user: UserID) throws -> String? {
        try row("SELECT name FROM person WHERE id = ?", [user.rawValue])?[0]
    }

    func isOnline(_ user: UserID) throws -> Bool {
        try row("SELECT isOnline FROM person WHERE id = ?", [user.rawValue])?[0] ?? false
    }
}

extension Person {
    fileprivate init(_ row: Row) {
        let user = User(stored: row["data"])
        self.init(
            id: UserID(row["id"]),
            name: row["name"],
            isContact: row["isContact"],
            isOnline: row["isOnline"],
            seenMs: row["seen"],
            phone: user?.phone.map { "\($0)" },
            about: user?.description.map { "\($0)" },
            link: user?.link.map { "\($0)" }
        )
    }
}

extension User {
    /// The name to show: the name that this account gave, otherwise the user's own.
    var shownName: String {
        let name =
            names.first { $0.type == "CUSTOM" } ?? names.first { $0.type == "ONEME" } ?? names.first
        guard let name else { return "" }
        if let whole = name.name, !whole.isEmpty { return whole }
        return [name.firstName, name.lastName].compactMap { $0 }.filter { !$0.isEmpty }
            .joined(separator: " ")
    }
}

extension WireValue {
    /// The value in wire format, for a column.
    var storedBytes: Data {
        var writer = MessagePackWriter()
        writer.capabilities = .all
        write(to: &writer)
        return Data(writer.finish())
    }

    /// Decodes a value from a column; nil when the data is corrupt.
    init?(stored bytes: Data) {
        let value = Packed<Self>(unchecked: Bytes([UInt8](bytes))).stored
        guard let value else { return nil }
        self = value
    }
}
