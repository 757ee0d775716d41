import GRDB
import TambourProtocol

/// The store's settings. Each setting has a name and one value.
extension StoreTransaction {
    /// The names of the settings; one value per account.
    enum Setting: String {
        /// The server's address with its scheme, as `ServerAddress` writes it.
        case server
        /// Which servers the account trusts, as `ServerTrust` writes it; absent if the account
        /// trusts the system's authorities.
        case trust
        /// Identifies this installation to the server permanently. The `cid` of a message is unique
        /// within the installation.
        case device
        case token
        /// The process that is logged in; absent while no process is logged in.
        case online
        case user
        case phone
        /// The sync cursors that the next login sends, in Unix milliseconds of the server's clock.
        case chatsMark, contactsMark, draftsMark
        /// The position from which to continue a list of chats that a login returned only in part;
        /// absent when the list is complete.
        case chatsMarker
        /// The hash of the stored service settings.
        case configHash
        /// The time up to which entities were pulled, in Unix milliseconds of the server's clock;
        /// absent until entities are used.
        case entitiesMark
        /// The entity types that this client knew when it last pulled all entities, ordered by
        /// name.
        case entityTypes
        /// The counters for ids and operations.
        case entityCounters
        /// The sync cursor of the stored folders; absent until folders are used.
        case foldersMark
        /// The chat that was open on the screen when the program last ran.
        case openChat
        /// The last revision. Later knowledge of histories gets a higher revision and wins.
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

    /// Stores the server's address, and which servers to trust there.
    ///
    /// - Parameters:
    ///   - server: nil keeps the stored address.
    ///   - trust: nil keeps the stored trust, unless `server` is a new address.
    /// - Throws: `ClientError.invalid` when no server is known, or when trust is chosen for an
    ///   address without TLS.
    func set(server: ServerAddress?, trust: ServerTrust?) throws {
        if let server, (try? self.server()) != server {
            try set(.server, server.description)
            try set(.trust, nil)
        }
        guard let server = try self.server() else {
            throw ClientError.invalid(
                reason: "no server is known: name one, such as chat.example.org"
            )
        }
        guard let trust else { return }
        try trust.requireTLS(at: server)
        try set(.trust, trust.stored)
    }

    /// Returns the id of this installation, and creates it on the first call.
    func deviceID(random: () -> UInt64) throws -> String {
        if let known: String = try value(of: .device) { return known }
        let made = String(random(), radix: 36) + String(random(), radix: 36)
        try set(.device, made)
        return made
    }

    /// Returns a revision above all earlier revisions. Knowledge stored under it replaces earlier
    /// knowledge.
    func nextRevision() throws -> Int64 {
        let last = try lastRevision()
        try set(.revision, last + 1)
        return last + 1
    }

    /// Deletes everything except the server's address, the trust for this address, and the
    /// installation id.
    func signOut() throws {
        try execute(
            "DELETE FROM setting WHERE name NOT IN (?, ?, ?)",
            [Setting.server.rawValue, Setting.trust.rawValue, Setting.device.rawValue]
        )
        for table in [
            "sync_range", "person", "chat", "message", "history_chunk", "history_tomb", "draft",
            "draft_saved", "draft_sent", "task", "task_dependency", "overlay", "chat_setting",
            "entity", "entity_update",
            "entity_alias", "chat_refresh", "look", "errand", "scheduled", "scheduled_list",
            "folder", "comment_thread",
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

    /// The address of the server; nil if none is stored.
    ///
    /// - Throws: `ClientError.invalid` for an address that a newer version has stored.
    func server() throws -> ServerAddress? {
        let text: String? = try value(of: .server)
        return try text.map { try ServerAddress($0) }
    }

    /// Which servers the account trusts.
    func trust() throws -> ServerTrust { ServerTrust(stored: try value(of: .trust)) }

    /// Whether the store holds a token.
    func isSignedIn() throws -> Bool { try value(of: .token) as String? != nil }

    /// The account stored here, if any.
    func userID() throws -> UserID? {
        let user: Int64? = try value(of: .user)
        return user.map(UserID.init)
    }

    /// The last result of `nextRevision`.
    func lastRevision() throws -> Int64 { try value(of: .revision) ?? 0 }
}
