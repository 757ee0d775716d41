import GRDB
import TambourProtocol

/// The store's settings: one value each, by name.
extension StoreTransaction {
    /// What is kept once for an account.
    enum Setting: String {
        /// `HOST:PORT` of the server.
        case server
        /// What names this installation to the server, for ever: a message's `cid` counts within it.
        case device
        case token
        /// The process that is logged in just now; absent while none is.
        case online
        case user
        case phone
        /// What the next login says it holds, Unix milliseconds of the server.
        case chatsMark, contactsMark, draftsMark, presenceMark
        /// Where the list of chats goes on that a first login began; absent when it is complete.
        case chatsMarker
        /// Which settings of the service are held.
        case configHash
        /// Up to where objects were pulled, Unix milliseconds of the server; absent until somebody uses them.
        case entitiesMark
        /// The types of objects that were known when everything up to the mark was pulled, in the order of their names.
        case entityTypes
        /// What ids and operations are counted from.
        case entityCounters
        /// How many things were learned of histories so far: what is learned later wins.
        case revision
    }

    func value<Value: DatabaseValueConvertible>(of setting: Setting) throws -> Value? {
        try row("SELECT value FROM setting WHERE name = ?", [setting.rawValue])?[0]
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

    /// Who is signed in; nil when nobody is.
    func userID() throws -> UserID? {
        let user: Int64? = try value(of: .user)
        return user.map(UserID.init)
    }

    /// The id of this installation, made at the first call.
    func deviceID(random: () -> UInt64) throws -> String {
        if let known: String = try value(of: .device) { return known }
        let made = String(random(), radix: 36) + String(random(), radix: 36)
        try set(.device, made)
        return made
    }

    /// What `nextRevision` gave last.
    func lastRevision() throws -> Int64 { try value(of: .revision) ?? 0 }

    /// A number above all that this gave before: what is learned now wins over what was learned then.
    func nextRevision() throws -> Int64 {
        let last = try lastRevision()
        try set(.revision, last + 1)
        return last + 1
    }

    /// Forgets everything but the server and the installation: nobody is signed in any more.
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
