import GRDB
import TambourProtocol

/// The store's settings: one value each, by name.
extension StoreTransaction {
    /// The settings; one value per account.
    enum Setting: String {
        /// `HOST:PORT` of the server.
        case server
        /// Identifies this installation to the server permanently; the `cid` of a message is unique
        /// within it.
        case device
        case token
        /// The process that is logged in; absent while none is.
        case online
        case user
        case phone
        /// The marks that the next login sends, in Unix milliseconds of the server.
        case chatsMark, contactsMark, draftsMark, presenceMark
        /// Where to continue reading the list of chats after a first login; absent when the list is
        /// complete.
        case chatsMarker
        /// The hash of the service settings that are held.
        case configHash
        /// The time up to which entities were pulled, in Unix milliseconds of the server; absent
        /// until they are used.
        case entitiesMark
        /// The entity types that were known when everything up to the mark was pulled, ordered by
        /// name.
        case entityTypes
        /// The counters for ids and operations.
        case entityCounters
        /// The last revision; newer knowledge of histories has a higher one and wins.
        case revision
    }

    func set(_ setting: Setting, _ value: (any DatabaseValueConvertible)?) throws {
        guard let value else {
            return try execute("DELETE FROM setting WHERE name = ?", [setting.rawValue])
        }
        try execute(
            "INSERT INTO setting VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [setting.rawValue, value]
        )
    }

    /// The id of this installation, made on the first call.
    func deviceID(random: () -> UInt64) throws -> String {
        if let known: String = try value(of: .device) { return known }
        let made = String(random(), radix: 36) + String(random(), radix: 36)
        try set(.device, made)
        return made
    }

    /// Returns a revision above all earlier ones, so that newer knowledge wins.
    func nextRevision() throws -> Int64 {
        let last = try lastRevision()
        try set(.revision, last + 1)
        return last + 1
    }

    /// Deletes everything except the server's address and the installation id.
    func signOut() throws {
        try execute(
            "DELETE FROM setting WHERE name NOT IN (?, ?)",
            [Setting.server.rawValue, Setting.device.rawValue]
        )
        for table in [
            "sync_range", "person", "chat", "message", "history_chunk", "history_tomb", "draft",
            "draft_saved", "draft_sent", "task", "task_dependency", "overlay", "chat_setting",
            "entity", "entity_update",
            "entity_alias", "chat_refresh", "look", "errand",
        ] {
            try execute("DELETE FROM \(table)")
        }
        changes.everything = true
    }
}

extension StoreReading {
    func value<Value: DatabaseValueConvertible>(
        of setting: StoreTransaction.Setting
    ) throws -> Value? {
        try row("SELECT value FROM setting WHERE name = ?", [setting.rawValue])?[0]
    }

    /// Whether the store holds a token.
    func isSignedIn() throws -> Bool { try value(of: .token) as String? != nil }

    /// The account held here, if any.
    func userID() throws -> UserID? {
        let user: Int64? = try value(of: .user)
        return user.map(UserID.init)
    }

    /// The last result of `nextRevision`.
    func lastRevision() throws -> Int64 { try value(of: .revision) ?? 0 }
}
