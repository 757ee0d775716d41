package import TambourProtocol
import TambourSQL

/// The next chat with pending purges.
enum ChatPurgeColumn: Int, SQLColumn {
    case chat, upTo

    var sql: String {
        switch self {
        case .chat: "chat"
        case .upTo: "max(up_to)"
        }
    }
}

/// The number of messages in the part that a purge deletes next, and the first message of the part.
enum PurgePartColumn: Int, SQLColumn {
    case count, first

    var sql: String {
        switch self {
        case .count: "count(*)"
        case .first: "min(id)"
        }
    }
}

struct ChatPurgeStatements {
    let put: any SQLStatement
    let next: SQLQuery<ChatPurgeColumn>
    let ofAll: any SQLStatement
    let move: any SQLStatement
    let drop: any SQLStatement
    let dropWords: any SQLStatement
    let part: SQLQuery<PurgePartColumn>

    init(_ sql: any SQLConnection) throws {
        // A new request never makes the range of a pending purge smaller.
        put = try sql.prepare(
            """
            INSERT INTO chat_purge (chat, sender, up_to) VALUES ($1, $2, $3)
            ON CONFLICT (chat, sender) DO UPDATE SET up_to = excluded.up_to
            WHERE chat_purge.up_to < excluded.up_to
            """
        )
        next = try sql.query(
            """
            SELECT \(ChatPurgeColumn.list) FROM chat_purge WHERE chat > $1
            GROUP BY chat ORDER BY chat LIMIT 1
            """
        )
        ofAll = try sql.prepare(
            "SELECT 1 FROM chat_purge WHERE chat = $1 AND up_to = $2 AND sender = 0"
        )
        move = try sql.prepare("UPDATE chat_purge SET up_to = $3 WHERE chat = $1 AND up_to = $2")
        drop = try sql.prepare("DELETE FROM chat_purge WHERE chat = $1 AND up_to = $2")
        dropWords = try sql.prepare(
            """
            DELETE FROM search_word WHERE chat = $1 AND (scale, part, word) IN (
              SELECT scale, part, word FROM search_word WHERE chat = $1 LIMIT $2
            )
            """
        )
        part = try sql.query(
            """
            SELECT \(PurgePartColumn.list) FROM
              (SELECT id FROM message WHERE chat = $1 AND id <= $2 ORDER BY id DESC LIMIT $3) AS part
            """
        )
    }
}

extension WriteTransaction {
    /// Deletes messages up to `last` for all users. This call deletes the messages among the newest
    /// `purgedRowsPerStep` rows. Later steps delete the remaining messages, even after a restart.
    ///
    /// - Parameter senders: deletes only these users' messages and no events; nil deletes
    ///   everything.
    /// - Returns: the ids of the messages that this call deleted, ascending.
    package func remove(
        upTo last: MessageID,
        sentBy senders: [UserID]?,
        in chat: ChatState
    ) throws -> [MessageID] {
        try flush()
        try putPurge(of: chat, upTo: last, sentBy: senders)
        return try removePart(upTo: last, of: chat, limit: store.limits.purgedRowsPerStep)
    }

    /// Schedules the messages up to `last` for deletion in later steps.
    ///
    /// - Parameter senders: deletes only these users' messages and no events; nil deletes
    ///   everything.
    func putPurge(of chat: ChatState, upTo last: MessageID, sentBy senders: [UserID]?) throws {
        writes += 1
        mayHavePurges = true
        let statement = store.chatPurges.put
        for sender in senders?.map(\.rawValue) ?? [0] {
            statement.bind(1, chat.key.rawValue)
            statement.bind(2, sender)
            statement.bind(3, last.rawValue)
            try statement.run()
        }
    }

    /// Runs one step of the deletions that `putPurge` scheduled. Successive calls serve the chats
    /// in turn.
    ///
    /// - Returns: the deleted messages, or an empty list for a chat without members. Nil if no
    ///   deletion is pending.
    package func purgeMessages(limit: Int) throws -> (chat: ChatState, removed: [MessageID])? {
        guard let (key, last) = try nextChatPurge() else { return nil }
        purgedChat = key
        writes += 1
        guard let chat = try chatToErase(key) else {
            try advance(key, from: last, to: MessageID(0))
            return try purgeMessages(limit: limit)
        }
        // Nobody searches a chat without members. The search index of such a chat may therefore be
        // incomplete between steps.
        if chat.memberCount == 0, try dropWords(of: chat, limit: limit) { return (chat, []) }
        return (chat, try removePart(upTo: last, of: chat, limit: limit))
    }

    /// Runs the pending purges of a chat for the newest `limit` rows up to `last`.
    ///
    /// - Returns: the removed messages, or an empty list for a chat without members.
    private func removePart(
        upTo last: MessageID,
        of chat: ChatState,
        limit: Int
    ) throws -> [MessageID] {
        let rest = try place(beforePartUpTo: last, in: chat, limit: limit)
        var removed: [MessageID] = []
        if chat.memberCount == 0 {
            try removeDeserted(after: rest, upTo: last, in: chat)
        } else if try isPurgeOfAll(chat.key, upTo: last) {
            removed = try remove(after: rest, upTo: last, sentBy: nil, in: chat)
        } else {
            removed = try removePurged(after: rest, upTo: last, in: chat)
        }
        try advance(chat.key, from: last, to: rest)
        return removed
    }

    private func nextChatPurge() throws -> (chat: ChatKey, upTo: MessageID)? {
        for after in [purgedChat.rawValue, .min] {
            let next = try store.chatPurges.next.one {
                $0.bind(1, after)
            } read: {
                (ChatKey($0.int(.chat)), MessageID($0.int(.upTo)))
            }
            if let next { return next }
        }
        return nil
    }

    private func isPurgeOfAll(_ chat: ChatKey, upTo last: MessageID) throws -> Bool {
        try store.chatPurges.ofAll.hasRow {
            $0.bind(1, chat.rawValue)
            $0.bind(2, last.rawValue)
        }
    }

    /// Records that the purge has removed all its messages after `rest`. If `rest` is 0, the purge
    /// is complete.
    private func advance(_ chat: ChatKey, from last: MessageID, to rest: MessageID) throws {
        let statement = rest.rawValue > 0 ? store.chatPurges.move : store.chatPurges.drop
        statement.bind(1, chat.rawValue)
        statement.bind(2, last.rawValue)
        if rest.rawValue > 0 { statement.bind(3, rest.rawValue) }
        try statement.run()
    }

    private func dropWords(of chat: ChatState, limit: Int) throws -> Bool {
        try store.chatPurges.dropWords.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, Int64(limit))
        } > 0
    }

    /// Returns the id directly before the first of the newest `limit` rows up to `last`. Returns 0
    /// if fewer rows are left.
    private func place(
        beforePartUpTo last: MessageID,
        in chat: ChatState,
        limit: Int
    ) throws -> MessageID {
        try store.chatPurges.part.one {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, last.rawValue)
            $0.bind(3, Int64(limit))
        } read: {
            $0.int(.count) == Int64(limit) ? MessageID($0.int(.first)).before : MessageID(0)
        } ?? MessageID(0)
    }
}
