package import TambourEvents
package import TambourProtocol
import TambourSQL

/// A chat of which the user was a member earlier.
package struct FormerChat: Sendable {
    package let key: ChatKey
    /// Unix milliseconds.
    package let joined: Int64
    /// The commit clock at the end of the membership.
    package let left: Int64
}

/// A reaction of one user.
package struct OwnReaction: Sendable {
    package let message: MessageID
    package let reaction: Text
}

private enum FormerChatColumn: Int, SQLColumn {
    case chat, joined, ct
}

private enum CommentedPostColumn: Int, SQLColumn {
    case chat, channel, post
}

private enum OwnReactionColumn: Int, SQLColumn {
    case message, reaction
}

private enum OwnVoteColumn: Int, SQLColumn {
    case message, answer, voted
}

private enum OwnRequestColumn: Int, SQLColumn {
    case chat, asked
}

private enum InvitationUseColumn: Int, SQLColumn {
    case invitation, used
}

private enum InstallationColumn: Int, SQLColumn {
    case id, installation
}

/// The columns of an attempt. For the table `login_code`, `isTrack` is 0; for the table `track`, it
/// is 1.
private enum AttemptColumn: Int, SQLColumn {
    case isTrack, created

    var sql: String {
        switch self {
        case .isTrack: "CAST(0 AS bigint)"
        case .created: "created"
        }
    }
}

// These functions read the data that the store contains about one user, for `tambourd admin
// export`.
extension ReadTransaction {
    package func chatKeys(of user: UserID) throws -> [ChatKey] {
        try select(
            ChatKeyColumn.self,
            "FROM member WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { ChatKey($0.int(.chat)) }
    }

    package func formerChats(of user: UserID) throws -> [FormerChat] {
        try select(
            FormerChatColumn.self,
            "FROM former_member WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { FormerChat(key: ChatKey($0.int(.chat)), joined: $0.int(.joined), left: $0.int(.ct)) }
    }

    /// Returns the channels that ban `user` from commenting.
    package func channelsBanning(_ user: UserID) throws -> [ChatKey] {
        try select(
            ChatKeyColumn.self,
            "FROM comment_ban WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { ChatKey($0.int(.chat)) }
    }

    /// Returns the posts on which `user` has written, reacted to or hidden a comment.
    package func commentedPosts(
        of user: UserID
    ) throws -> [(key: ChatKey, channel: ChatKey, post: MessageID)] {
        let query: SQLQuery<CommentedPostColumn> = try store.sql.query(
            """
            SELECT \(CommentedPostColumn.list(of: "t")) FROM commenter c
            JOIN comment_thread t ON t.chat = c.chat WHERE c.user_id = $1
            ORDER BY t.channel, t.post
            """
        )
        return try query.all {
            $0.bind(1, user.rawValue)
        } read: {
            (ChatKey($0.int(.chat)), ChatKey($0.int(.channel)), MessageID($0.int(.post)))
        }
    }

    /// Returns the messages that `user` wrote in a chat and that are not removed. They start after
    /// `id` and are in the order of their ids.
    package func ownMessages(
        of user: UserID,
        in chat: ChatKey,
        after id: MessageID,
        limit: Int
    ) throws -> [MessageRecord] {
        try select(
            MessageColumn.self,
            """
            FROM message
            WHERE chat = $1 AND id > $2 AND sender = $3 AND status <> 2 AND device <> 0
            ORDER BY id LIMIT $4
            """,
            chat.rawValue,
            id.rawValue,
            user.rawValue,
            Int64(limit)
        ) { MessageRecord(row: $0) }
    }

    package func reactions(of user: UserID, in chat: ChatKey) throws -> [OwnReaction] {
        try select(
            OwnReactionColumn.self,
            "FROM reaction WHERE chat = $1 AND user_id = $2 ORDER BY message",
            chat.rawValue,
            user.rawValue
        ) { OwnReaction(message: MessageID($0.int(.message)), reaction: $0.text(.reaction)) }
    }

    package func votes(
        of user: UserID,
        in chat: ChatKey
    ) throws -> [(message: MessageID, answer: Int64, voted: Int64)] {
        try select(
            OwnVoteColumn.self,
            "FROM poll_vote WHERE chat = $1 AND user_id = $2 ORDER BY message, answer",
            chat.rawValue,
            user.rawValue
        ) { (MessageID($0.int(.message)), $0.int(.answer), $0.int(.voted)) }
    }

    /// Returns all messages that `user` has scheduled.
    package func delayed(of user: UserID) throws -> [DelayedRecord] {
        try select(
            DelayedColumn.self,
            "FROM delayed_message WHERE user_id = $1 ORDER BY peer, fire, id",
            user.rawValue
        ) { DelayedRecord(row: $0) }
    }

    /// Returns the chats to which `user` has a pending join request.
    package func joinRequests(by user: UserID) throws -> [(chat: ChatKey, asked: Int64)] {
        try select(
            OwnRequestColumn.self,
            "FROM join_request WHERE user_id = $1 ORDER BY chat",
            user.rawValue
        ) { (ChatKey($0.int(.chat)), $0.int(.asked)) }
    }

    /// Returns the messages that `user` has deleted for themselves only.
    package func hiddenMessages(of user: UserID, in chat: ChatKey) throws -> [MessageID] {
        try select(
            MessageIDColumn.self,
            "FROM message_hidden WHERE user_id = $1 AND chat = $2 ORDER BY message",
            user.rawValue,
            chat.rawValue
        ) { MessageID($0.int(.message)) }
    }

    /// Returns the names of a user's installations. The clients have chosen these names.
    package func installations(of user: UserID) throws -> [(id: DeviceID, name: String)] {
        try select(
            InstallationColumn.self,
            "FROM device WHERE user_id = $1 ORDER BY id",
            user.rawValue
        ) { (DeviceID($0.int(.id)), $0.string(.installation)) }
    }

    /// Returns the invitation with which `user` registered, and the time of the registration. Nil
    /// if the user registered without an invitation.
    package func invitationUse(
        by user: UserID
    ) throws -> (invitation: InvitationID, used: Int64)? {
        try select(
            InvitationUseColumn.self,
            "FROM invitation_use WHERE user_id = $1",
            user.rawValue
        ) { (InvitationID($0.int(.invitation)), $0.int(.used)) }.first
    }

    /// Returns the invitations that the user of an account has made, and the invitation for the
    /// account's phone.
    package func invitations(concerning account: Account) throws -> [Invitation] {
        try select(
            InvitationColumn.self,
            "FROM invitation WHERE user_id = $1 OR phone = $2 ORDER BY id",
            account.id.rawValue,
            account.phone
        ) { Invitation(row: $0) }
    }

    /// Returns the open reports that `user` made, the oldest first.
    package func reports(by user: UserID) throws -> [Report] {
        try select(ReportColumn.self, "FROM report WHERE reporter = $1 ORDER BY id", user.rawValue)
        {
            Report(row: $0)
        }
    }

    /// Returns the user's stored attempts, such as login codes and password changes. An attempt is
    /// stored while it is in progress, and while it counts towards a limit.
    package func attempts(of account: Account) throws -> [(kind: String, created: Int64)] {
        try select(
            AttemptColumn.self,
            """
            FROM login_code WHERE phone = $1 OR user_id = $2
            UNION ALL SELECT CAST(1 AS bigint), created FROM track WHERE user_id = $2 ORDER BY 2
            """,
            account.phone,
            account.id.rawValue
        ) { ($0.bool(.isTrack) ? "track" : "code", $0.int(.created)) }
    }
}
