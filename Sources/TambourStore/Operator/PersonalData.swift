package import TambourProtocol
import TambourSQL

/// A chat that the user was a member of.
package struct FormerChat: Sendable {
    package let key: ChatKey
    /// Unix milliseconds.
    package let joined: Int64
    /// When the membership ended, commit clock.
    package let left: Int64
}

/// A reaction of one user.
package struct OwnReaction: Sendable {
    package let message: MessageID
    package let reaction: Text
}

// The data stored about one person, for `tambourd admin export`.
extension ReadTransaction {
    package func chatKeys(of user: UserID) throws -> [ChatKey] {
        try rows("SELECT chat FROM member WHERE user_id = $1 ORDER BY chat", user.rawValue) {
            ChatKey($0.int(0))
        }
    }

    package func formerChats(of user: UserID) throws -> [FormerChat] {
        try rows(
            "SELECT chat, joined, ct FROM former_member WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { FormerChat(key: ChatKey($0.int(0)), joined: $0.int(1), left: $0.int(2)) }
    }

    /// Returns the channels that ban `user` from commenting.
    package func channelsBanning(_ user: UserID) throws -> [ChatKey] {
        try rows(
            "SELECT chat FROM comment_ban WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { ChatKey($0.int(0)) }
    }

    /// Returns the posts under which `user` has written, reacted or hidden something.
    package func commentedPosts(
        of user: UserID
    ) throws -> [(key: ChatKey, channel: ChatKey, post: MessageID)] {
        try rows(
            """
            SELECT t.chat, t.channel, t.post FROM commenter c
            JOIN comment_thread t ON t.chat = c.chat WHERE c.user_id = $1
            ORDER BY t.channel, t.post
            """,
            user.rawValue
        ) { (ChatKey($0.int(0)), ChatKey($0.int(1)), MessageID($0.int(2))) }
    }

    /// Returns the messages that `user` wrote in a chat and that still exist, smallest id first,
    /// starting after `id`.
    package func ownMessages(
        of user: UserID,
        in chat: ChatKey,
        after id: MessageID,
        limit: Int
    ) throws -> [MessageRecord] {
        try rows(
            """
            SELECT \(MessageStatements.columns) FROM message m
            WHERE m.chat = $1 AND m.id > $2 AND m.sender = $3 AND m.status <> 2 AND m.device <> 0
            ORDER BY m.id LIMIT $4
            """,
            chat.rawValue,
            id.rawValue,
            user.rawValue,
            Int64(limit)
        ) { MessageRecord(row: $0) }
    }

    package func reactions(of user: UserID, in chat: ChatKey) throws -> [OwnReaction] {
        try rows(
            """
            SELECT message, reaction FROM reaction WHERE chat = $1 AND user_id = $2
            ORDER BY message
            """,
            chat.rawValue,
            user.rawValue
        ) {
            OwnReaction(
                message: MessageID($0.int(0)),
                reaction: Text(unchecked: Bytes($0.bytes(1)))
            )
        }
    }

    package func votes(
        of user: UserID,
        in chat: ChatKey
    ) throws -> [(message: MessageID, answer: Int64, voted: Int64)] {
        try rows(
            """
            SELECT message, answer, voted FROM poll_vote WHERE chat = $1 AND user_id = $2
            ORDER BY message, answer
            """,
            chat.rawValue,
            user.rawValue
        ) { (MessageID($0.int(0)), $0.int(1), $0.int(2)) }
    }

    /// Returns all messages that `user` has scheduled.
    package func delayed(of user: UserID) throws -> [DelayedRecord] {
        try rows(
            """
            SELECT \(DelayedStatements.columns) FROM delayed_message WHERE user_id = $1
            ORDER BY peer, fire, id
            """,
            user.rawValue
        ) { DelayedRecord(row: $0) }
    }

    /// Returns the chats that `user` has asked to join.
    package func joinRequests(by user: UserID) throws -> [(chat: ChatKey, asked: Int64)] {
        try rows(
            "SELECT chat, asked FROM join_request WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { (ChatKey($0.int(0)), $0.int(1)) }
    }

    /// Returns the messages that `user` has deleted only for themselves.
    package func hiddenMessages(of user: UserID, in chat: ChatKey) throws -> [MessageID] {
        try rows(
            """
            SELECT message FROM message_hidden WHERE user_id = $1 AND chat = $2 ORDER BY message
            """,
            user.rawValue,
            chat.rawValue
        ) { MessageID($0.int(0)) }
    }

    /// Returns the names of a user's installations, as chosen by clients.
    package func installations(of user: UserID) throws -> [(id: DeviceID, name: String)] {
        try rows(
            "SELECT id, installation FROM device WHERE user_id = $1 ORDER BY id",
            user.rawValue
        ) { (DeviceID($0.int(0)), $0.string(1)) }
    }

    /// Returns the open reports that `user` made, in the order they arrived.
    package func reports(by user: UserID) throws -> [Report] {
        try rows(
            """
            SELECT id, reporter, chat, message, user_id, reason, words, created FROM report
            WHERE reporter = $1 ORDER BY id
            """,
            user.rawValue
        ) { Report(row: $0) }
    }

    /// Returns a user's login codes, password changes and similar attempts that are in progress or
    /// still counted.
    package func attempts(of account: Account) throws -> [(kind: String, created: Int64)] {
        try rows(
            """
            SELECT CAST(0 AS bigint), created FROM login_code WHERE phone = $1 OR user_id = $2
            UNION ALL SELECT CAST(1 AS bigint), created FROM track WHERE user_id = $2 ORDER BY 2
            """,
            account.phone,
            account.id.rawValue
        ) { ($0.int(0) == 0 ? "code" : "track", $0.int(1)) }
    }
}
