package import TambourEvents
package import TambourProtocol
import TambourSQL

/// A chat as administrators see it, without its messages.
package struct InspectedChat: Sendable {
    package let key: ChatKey
    package let kind: ChatKind
    /// The two users of a dialog. For saved messages, the same user twice. Nil for groups and
    /// channels.
    package let pair: (low: UserID, high: UserID)?
    package let owner: UserID
    package let title: Text?
    package let description: Text?
    /// Unix milliseconds.
    package let created: Int64
    package let memberCount: Int64
    package let options: RoleTable.Options
    package let link: Text?
    /// The newest message, even if it is removed.
    package let head: ChatHead

    fileprivate init(row: SQLRow<InspectedChatColumn>) {
        key = ChatKey(row.int(.id))
        kind = ChatKind(rawValue: row.int(.kind)) ?? .group
        pair =
            row.isNull(.lowUser)
            ? nil : (UserID(row.int(.lowUser)), UserID(row.int(.highUser)))
        owner = UserID(row.int(.owner))
        title = row.optionalText(.title)
        description = row.optionalText(.description)
        created = row.int(.created)
        memberCount = row.int(.memberCount)
        options = RoleTable.Options(rawValue: row.int(.options))
        link = row.optionalText(.link)
        head = ChatHead(id: MessageID(row.int(.headID)), number: row.int(.headNumber))
    }
}

private enum InspectedChatColumn: Int, SQLColumn {
    case id, kind, lowUser, highUser, owner, title, description, created, memberCount, options, link
    case headID, headNumber

    var sql: String {
        switch self {
        case .headID: "COALESCE((SELECT max(m.id) FROM message m WHERE m.chat = c.id), 0)"
        case .headNumber:
            """
            COALESCE((SELECT m.n FROM message m WHERE m.chat = c.id ORDER BY m.id DESC LIMIT 1), 0)
            """
        default: "c.\(snakeCase)"
        }
    }
}

private enum InspectedMemberColumn: Int, SQLColumn {
    case userID, joined, permissions
}

/// A member as administrators see the member.
package struct InspectedMember: Sendable {
    package let id: UserID
    /// Unix milliseconds.
    package let joined: Int64
    package let permissions: RoleTable.Permissions
}

/// The numbers of rows that the store has for one user.
package struct UserCounts: Equatable, Sendable {
    package let sessions: Int64
    package let devices: Int64
    /// The number of contacts that the user has added or blocked.
    package let contacts: Int64
    package let chats: Int64
    package let drafts: Int64
    package let folders: Int64
    package let entities: Int64
    /// The number of open reports about the user.
    package let reports: Int64
}

// Administrators rarely run these queries. The statements are prepared for each use, so readers
// need not keep them.
extension ReadTransaction {
    /// Returns chats in the order of their keys, starting after `key`. Groups come before dialogs,
    /// because their keys are negative.
    package func inspectedChats(after key: ChatKey?, limit: Int) throws -> [InspectedChat] {
        try select(
            InspectedChatColumn.self,
            """
            FROM chat c
            WHERE c.id > $1 AND c.kind <> \(ChatKind.comments.rawValue) ORDER BY c.id LIMIT $2
            """,
            key?.rawValue ?? .min,
            Int64(limit)
        ) { InspectedChat(row: $0) }
    }

    /// Returns the chats of one user, in the same order as `inspectedChats(after:limit:)`.
    package func inspectedChats(of user: UserID, after key: ChatKey?, limit: Int) throws
        -> [InspectedChat]
    {
        try select(
            InspectedChatColumn.self,
            """
            FROM member x JOIN chat c ON c.id = x.chat
            WHERE c.id > $1 AND x.user_id = $3 ORDER BY c.id LIMIT $2
            """,
            key?.rawValue ?? .min,
            Int64(limit),
            user.rawValue
        ) { InspectedChat(row: $0) }
    }

    package func inspectedChat(_ key: ChatKey) throws -> InspectedChat? {
        try select(InspectedChatColumn.self, "FROM chat c WHERE c.id = $1", key.rawValue) {
            InspectedChat(row: $0)
        }.first
    }

    /// Returns members in the order of their ids, starting after `id`.
    package func inspectedMembers(of chat: ChatKey, after id: UserID, limit: Int) throws
        -> [InspectedMember]
    {
        try select(
            InspectedMemberColumn.self,
            "FROM member WHERE chat = $1 AND user_id > $2 ORDER BY user_id LIMIT $3",
            chat.rawValue,
            id.rawValue,
            Int64(limit)
        ) {
            InspectedMember(
                id: UserID($0.int(.userID)),
                joined: $0.int(.joined),
                permissions: RoleTable.Permissions(rawValue: $0.int(.permissions))
            )
        }
    }

    /// Returns sessions in the order of their ids, starting after `id`.
    package func sessions(after id: SessionID, limit: Int) throws -> [SessionRecord] {
        try select(
            SessionColumn.self,
            "FROM session WHERE id > $1 ORDER BY id LIMIT $2",
            id.rawValue,
            Int64(limit)
        ) { SessionRecord(row: $0) }
    }

    package func counts(of user: UserID) throws -> UserCounts {
        func count(_ rest: String) throws -> Int64 {
            let count = try store.sql.prepare("SELECT count(*) FROM \(rest)")
            return try count.oneInt { $0.bind(1, user.rawValue) } ?? 0
        }
        return UserCounts(
            sessions: try count("session WHERE user_id = $1"),
            devices: try count("device WHERE user_id = $1"),
            contacts: try count("contact WHERE owner = $1 AND (added = 1 OR blocked = 1)"),
            chats: try count("member WHERE user_id = $1"),
            drafts: try count("draft WHERE user_id = $1 AND saved > 0"),
            folders: try count("folder WHERE user_id = $1"),
            entities: try count("object WHERE user_id = $1 AND deleted = 0"),
            reports: try count("report WHERE user_id = $1")
        )
    }

    /// Prepares a SELECT, runs it once and reads its rows.
    ///
    /// - Parameters:
    ///   - rest: the SQL after the list of columns.
    ///   - values: the values of `$1`, `$2` ….
    func select<Column, Row>(
        _ columns: Column.Type,
        _ rest: String,
        _ values: Int64...,
        read: (SQLRow<Column>) throws -> Row
    ) throws -> [Row] {
        let query: SQLQuery<Column> = try store.sql.query("SELECT \(Column.list) \(rest)")
        return try query.all { statement in
            for (index, value) in values.enumerated() { statement.bind(index + 1, value) }
        } read: {
            try read($0)
        }
    }
}
