import Foundation
import GRDB
import TambourProtocol

/// People: contacts, partners of dialogs, members one has met.
extension StoreTransaction {
    /// Stores a user unless a newer version is held.
    ///
    /// - Parameter isContact: whether who is not said to be removed is a contact; nil when that is not known.
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

    /// What is held of a user; nil when nothing is.
    func person(_ user: UserID) throws -> User? {
        let row = try row("SELECT data FROM person WHERE id = ?", [user.rawValue])
        return row.flatMap { User(stored: $0["data"]) }
    }

    /// Notes whether users are online, or when they were last.
    func put(_ presence: Presence, of user: UserID) throws {
        try execute(
            "UPDATE person SET isOnline = ?, seen = coalesce(?, seen) WHERE id = ?",
            [presence.status == 1, presence.seen.map { $0 * 1000 }, user.rawValue]
        )
        changes.people.insert(user)
    }

    /// Nobody is known to be online when the connection is gone.
    func forgetWhoIsOnline() throws {
        for row in try rows("SELECT id FROM person WHERE isOnline") {
            changes.people.insert(UserID(row[0]))
        }
        try execute("UPDATE person SET isOnline = 0 WHERE isOnline")
    }
}

extension User {
    /// The name to show: the one the asking user gave, else the one the user chose.
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
    /// The value as it travels, for a column.
    var storedBytes: Data {
        var writer = MessagePackWriter()
        writer.capabilities = .all
        write(to: &writer)
        return Data(writer.finish())
    }

    /// What a column holds; nil when the file went bad.
    init?(stored bytes: Data) {
        let value = Packed<Self>(unchecked: Bytes([UInt8](bytes))).stored
        guard let value else { return nil }
        self = value
    }
}
