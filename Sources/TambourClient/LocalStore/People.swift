import Foundation
import GRDB
import TambourProtocol

/// People: contacts, partners in dialogs, and members of shared chats.
extension StoreTransaction {
    /// Stores a user unless a newer version is held.
    ///
    /// - Parameter isContact: whether the user is a contact, unless the user's status is REMOVED;
    ///   nil when unknown.
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

    /// The stored data of a user; nil when there is none.
    func person(_ user: UserID) throws -> User? {
        let row = try row("SELECT data FROM person WHERE id = ?", [user.rawValue])
        return row.flatMap { User(stored: $0["data"]) }
    }

    /// Stores the presence of a user.
    func put(_ presence: Presence, of user: UserID) throws {
        try execute(
            "UPDATE person SET isOnline = ?, seen = coalesce(?, seen) WHERE id = ?",
            [presence.status == 1, presence.seen.map { $0 * 1000 }, user.rawValue]
        )
        changes.people.insert(user)
    }

    /// Marks everybody as offline: without a connection nobody's presence is known.
    func forgetWhoIsOnline() throws {
        for row in try rows("SELECT id FROM person WHERE isOnline") {
            changes.people.insert(UserID(row[0]))
        }
        try execute("UPDATE person SET isOnline = 0 WHERE isOnline")
    }
}

extension User {
    /// The name to show: the one that this account gave, else the one that the user chose.
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

    /// Reads a value from a column; nil when the data is corrupt.
    init?(stored bytes: Data) {
        let value = Packed<Self>(unchecked: Bytes([UInt8](bytes))).stored
        guard let value else { return nil }
        self = value
    }
}
