package import TambourEvents
package import TambourProtocol
import TambourSQL

enum AnnouncementColumn: Int, SQLColumn {
    case id, chat, text, created, upTo, message
}

struct AnnouncementStatements {
    let newest: SQLQuery<AnnouncementColumn>
    let add: any SQLStatement
    let deleteOthers: any SQLStatement
    let setUpTo: any SQLStatement
    let finish: any SQLStatement
    let drop: any SQLStatement
    let defaults: SQLQuery<ChatKeyColumn>
    let addDefault: any SQLStatement
    let removeDefault: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        newest = try sql.query(
            "SELECT \(AnnouncementColumn.list) FROM announcement ORDER BY id DESC LIMIT 1"
        )
        add = try sql.prepare(
            """
            INSERT INTO announcement (id, chat, text, created, up_to, message)
            VALUES ($1, $2, $3, $4, 0, 0)
            """
        )
        deleteOthers = try sql.prepare("DELETE FROM announcement WHERE id < $1")
        setUpTo = try sql.prepare("UPDATE announcement SET up_to = $2 WHERE id = $1")
        // Removes the text from this row. From now on only the post contains the text.
        finish = try sql.prepare(
            "UPDATE announcement SET message = $2, text = $3 WHERE id = $1"
        )
        drop = try sql.prepare("DELETE FROM announcement WHERE id = $1")
        defaults = try sql.query(
            "SELECT \(ChatKeyColumn.list) FROM default_chat ORDER BY added, chat"
        )
        addDefault = try sql.prepare(
            """
            INSERT INTO default_chat (chat, added) VALUES ($1, $2) ON CONFLICT (chat) DO NOTHING
            """
        )
        removeDefault = try sql.prepare("DELETE FROM default_chat WHERE chat = $1")
    }
}

/// An announcement to all users. The server first adds all users to the announcement's channel, in
/// several steps. Then it posts the announcement in this channel.
package struct Announcement: Sendable {
    /// The id, which is higher than the ids of all earlier announcements. It is also the `cid` of
    /// the post.
    package let id: Int64
    package let chat: ChatKey
    /// The text; empty after the announcement is posted.
    package let text: Text
    /// The commit clock at the creation, Unix milliseconds.
    package let created: Int64
    /// The progress: all users with ids up to this id have been added to the channel.
    package let upTo: UserID
    /// The post; nil until the announcement is posted.
    package let message: MessageID?
}

extension ReadTransaction {
    /// Returns the newest announcement. The store does not keep earlier announcements, because they
    /// are finished.
    package func announcement() throws -> Announcement? {
        try store.announcements.newest.one(read: {
            Announcement(
                id: $0.int(.id),
                chat: ChatKey($0.int(.chat)),
                text: $0.text(.text),
                created: $0.int(.created),
                upTo: UserID($0.int(.upTo)),
                message: $0.nonZero(.message).map { MessageID($0) }
            )
        })
    }

    /// Returns the chats that new accounts join, in the order in which administrators added them.
    /// Returns at most `maxDefaultChats`.
    package func defaultChats() throws -> [ChatKey] {
        try store.announcements.defaults.all(read: { ChatKey($0.int(.chat)) })
    }
}

extension WriteTransaction {
    /// Returns a group or channel that has members, without checking membership. Returns nil for
    /// any other chat.
    package func livingChat(_ key: ChatKey) throws -> ChatState? {
        guard let chat = try chat(key), chat.kind.isJoined, chat.memberCount > 0 else {
            return nil
        }
        return chat
    }

    /// Stores a pending announcement and deletes the earlier announcements.
    package func addAnnouncement(
        _ text: Text,
        in chat: ChatState,
        after earlier: Announcement?
    ) throws {
        writes += 1
        let id = max(ct, (earlier?.id ?? 0) &+ 1)
        try store.announcements.deleteOthers.run { $0.bind(1, id) }
        try store.announcements.add.run {
            $0.bind(1, id)
            $0.bind(2, chat.key.rawValue)
            $0.bindWords(3, text)
            $0.bind(4, ct)
        }
    }

    /// Records that all users with ids up to `user` have been added to the announcement's channel.
    package func setAnnounced(upTo user: UserID, _ announcement: Announcement) throws {
        writes += 1
        try store.announcements.setUpTo.run {
            $0.bind(1, announcement.id)
            $0.bind(2, user.rawValue)
        }
    }

    /// Records that an announcement was posted as `message`, and clears its stored text.
    package func finish(_ announcement: Announcement, as message: MessageID) throws {
        writes += 1
        try store.announcements.finish.run {
            $0.bind(1, announcement.id)
            $0.bind(2, message.rawValue)
            $0.bindWords(3, Text.empty)
        }
    }

    /// Deletes an announcement that will not be posted.
    package func drop(_ announcement: Announcement) throws {
        writes += 1
        try store.announcements.drop.run { $0.bind(1, announcement.id) }
    }

    /// Adds a chat to the chats that new accounts join.
    package func addDefaultChat(_ chat: ChatState) throws {
        writes += 1
        try store.announcements.addDefault.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, ct)
        }
    }

    /// - Returns: false if the chat was not one of the chats that new accounts join.
    package func removeDefaultChat(_ key: ChatKey) throws -> Bool {
        let removed = try store.announcements.removeDefault.run { $0.bind(1, key.rawValue) }
        guard removed > 0 else { return false }
        writes += 1
        return true
    }

    /// Returns those of `users` who are not members of a chat.
    ///
    /// - Parameter users: users, in the order of their ids.
    package func outsiders(among users: [UserID], of chat: ChatState) -> [UserID] {
        let members = chat.memberIDs
        return users.filter { user in
            let place = members.firstPlace(notBelow: user)
            return place == members.count || members[place] != user
        }
    }

    /// Returns the device of the user for messages that the server writes in the user's name.
    package func serverDevice(of user: UserID) throws -> DeviceID {
        writes += 1
        return try device(of: user, installation: "tambourd announcements")
    }

    /// Whether the user has signed in with this installation before.
    package func hasDevice(_ installation: String, of user: UserID) throws -> Bool {
        guard !installation.isEmpty else { return false }
        return try store.sessions.device.hasRow {
            $0.bind(1, user.rawValue)
            $0.bindWords(2, installation)
        }
    }
}
