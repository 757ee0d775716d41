package import TambourProtocol
import TambourSQL

struct ChatPurgeStatements {
    let put: any SQLStatement
    let next: any SQLStatement
    let move: any SQLStatement
    let drop: any SQLStatement
    let dropWords: any SQLStatement
    let part: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        // What is to be removed already stays so.
        put = try sql.prepare(
            """
            INSERT INTO chat_purge (chat, sender, up_to) VALUES ($1, $2, $3)
            ON CONFLICT (chat, sender) DO UPDATE SET up_to = excluded.up_to
            WHERE chat_purge.up_to < excluded.up_to
            """
        )
        next = try sql.prepare("SELECT chat, sender, up_to FROM chat_purge LIMIT 1")
        move = try sql.prepare("UPDATE chat_purge SET up_to = $3 WHERE chat = $1 AND sender = $2")
        drop = try sql.prepare("DELETE FROM chat_purge WHERE chat = $1 AND sender = $2")
        dropWords = try sql.prepare(
            """
            DELETE FROM search_word WHERE chat = $1 AND (scale, part, word) IN (
              SELECT scale, part, word FROM search_word WHERE chat = $1 LIMIT $2
            )
            """
        )
        part = try sql.prepare(
            """
            SELECT count(*), min(id) FROM
              (SELECT id FROM message WHERE chat = $1 AND id <= $2 ORDER BY id DESC LIMIT $3) AS part
            """
        )
    }
}

/// Messages of a chat that are to be removed for all, newest first.
private struct ChatPurge {
    let chat: ChatKey
    /// Whose messages; nil for everything.
    let sender: UserID?
    /// The newest message that may still be there.
    let upTo: MessageID

    init(chat: ChatKey, sender: UserID?, upTo: MessageID) {
        self.chat = chat
        self.sender = sender
        self.upTo = upTo
    }

    init(row: any SQLStatement) {
        chat = ChatKey(row.int(0))
        sender = row.int(1) == 0 ? nil : UserID(row.int(1))
        upTo = MessageID(row.int(2))
    }
}

extension WriteTransaction {
    /// Deletes for all what is there up to a message: at once what is among the newest
    /// `purgedRowsPerStep` rows, the rest in later steps, also after a restart.
    ///
    /// - Parameter sender: whose messages, events left out; nil for everything.
    /// - Returns: the ids of what was deleted at once, smallest first.
    package func remove(
        upTo last: MessageID,
        sentBy sender: UserID?,
        in chat: ChatState
    ) throws -> [MessageID] {
        try flush()
        let limit = store.limits.purgedRowsPerStep
        let rest = try place(beforePartUpTo: last, in: chat, limit: limit)
        if rest.rawValue > 0 {
            try put(ChatPurge(chat: chat.key, sender: sender, upTo: rest))
        }
        return try remove(after: rest, upTo: last, sentBy: sender, in: chat)
    }

    /// Does a step of what `remove(upTo:sentBy:in:)` has left.
    ///
    /// - Returns: what it has deleted, nothing of a chat without members; nil when nothing is left to do.
    package func purgeMessages(limit: Int) throws -> (chat: ChatState, removed: [MessageID])? {
        guard let purge = try nextChatPurge() else { return nil }
        writes += 1
        guard let chat = try chatToErase(purge.chat) else {
            try drop(purge)
            return try purgeMessages(limit: limit)
        }
        let isDeserted = chat.memberCount == 0
        // Nobody searches there: the index need not be right in between.
        if isDeserted, try dropWords(of: chat, limit: limit) { return (chat, []) }
        let rest = try place(beforePartUpTo: purge.upTo, in: chat, limit: limit)
        if rest.rawValue > 0 {
            let statement = store.chatPurges.move
            statement.bind(1, purge.chat.rawValue)
            statement.bind(2, purge.sender?.rawValue ?? 0)
            statement.bind(3, rest.rawValue)
            try statement.run()
        } else {
            try drop(purge)
        }
        if isDeserted {
            try removeDeserted(after: rest, upTo: purge.upTo, in: chat)
            return (chat, [])
        }
        return (
            chat,
            try remove(after: rest, upTo: purge.upTo, sentBy: purge.sender, in: chat)
        )
    }

    private func nextChatPurge() throws -> ChatPurge? {
        let statement = store.chatPurges.next
        defer { statement.reset() }
        return try statement.step() ? ChatPurge(row: statement) : nil
    }

    private func put(_ purge: ChatPurge) throws {
        writes += 1
        mayHavePurges = true
        let statement = store.chatPurges.put
        statement.bind(1, purge.chat.rawValue)
        statement.bind(2, purge.sender?.rawValue ?? 0)
        statement.bind(3, purge.upTo.rawValue)
        try statement.run()
    }

    private func drop(_ purge: ChatPurge) throws {
        let statement = store.chatPurges.drop
        statement.bind(1, purge.chat.rawValue)
        statement.bind(2, purge.sender?.rawValue ?? 0)
        try statement.run()
    }

    private func dropWords(of chat: ChatState, limit: Int) throws -> Bool {
        let statement = store.chatPurges.dropWords
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, Int64(limit))
        return try statement.run() > 0
    }

    /// The id before the newest `limit` rows up to a message; 0 when there are no more.
    private func place(
        beforePartUpTo last: MessageID,
        in chat: ChatState,
        limit: Int
    ) throws -> MessageID {
        let statement = store.chatPurges.part
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, last.rawValue)
        statement.bind(3, Int64(limit))
        guard try statement.step(), statement.int(0) == Int64(limit) else { return MessageID(0) }
        return MessageID(statement.int(1) - 1)
    }
}
