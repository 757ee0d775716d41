import Foundation
import GRDB
import TambourProtocol

/// Reading messages as the server has them.
extension StoreReading {
    /// A message; nil when it is not stored.
    func message(_ message: MessageID, in chat: ChatID) throws -> Message? {
        try row(
            "SELECT data FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        ).flatMap { Message(stored: $0["data"]) }
    }

    func holds(_ message: MessageID, in chat: ChatID) throws -> Bool {
        try exists(
            "SELECT 1 FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        )
    }

    /// The revision at which the stored version of a message was learned; nil when it is not
    /// stored.
    func revision(of message: MessageID, in chat: ChatID) throws -> Int64? {
        try int(
            "SELECT revision FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        )
    }

    /// The server's id of one of this account's messages; nil when the server is not known to have
    /// it. In a channel it is stored without a sender.
    func ownMessage(cid: Int64, in chat: ChatID, me: UserID) throws -> MessageID? {
        try int(
            """
            SELECT id FROM message WHERE chat = ? AND cid = ? AND (sender = ? OR sender IS NULL)
            """,
            [chat.rawValue, cid, me.rawValue]
        ).map(MessageID.init)
    }

    // MARK: - Places in a history

    /// The last stored message of a chat.
    func lastMessageID(in chat: ChatID) throws -> MessageID? {
        try int("SELECT max(id) FROM message WHERE chat = ?", [chat.rawValue]).map(MessageID.init)
    }

    func hasMessages(in chat: ChatID, before message: MessageID) throws -> Bool {
        try exists(
            "SELECT 1 FROM message WHERE chat = ? AND id < ? LIMIT 1",
            [chat.rawValue, message.rawValue]
        )
    }

    /// The first message by somebody else after the account's read mark.
    func firstUnread(in chat: ChatID, me: UserID) throws -> MessageID? {
        try int(
            """
            SELECT id FROM message
            WHERE chat = ? AND sender IS NOT ?
              AND id > (SELECT (readMark << 16) | 65535 FROM chat WHERE id = ?)
            ORDER BY id LIMIT 1
            """,
            [chat.rawValue, me.rawValue, chat.rawValue]
        ).map(MessageID.init)
    }

    /// The stored messages from one position, exclusive, back to another, nearest first.
    func positions(
        in chat: ChatID,
        before position: Position,
        downTo bound: Position,
        limit: Int
    ) throws -> [Position] {
        try rows(
            "SELECT id FROM message WHERE chat = ? AND id < ? AND id >= ? ORDER BY id DESC LIMIT ?",
            [chat.rawValue, position.rawValue, bound.rawValue, limit]
        ).map { Position($0[0]) }
    }

    /// The stored messages from one position, exclusive, on to another, nearest first.
    func positions(
        in chat: ChatID,
        after position: Position,
        upTo bound: Position,
        limit: Int
    ) throws -> [Position] {
        try rows(
            "SELECT id FROM message WHERE chat = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?",
            [chat.rawValue, position.rawValue, bound.rawValue, limit]
        ).map { Position($0[0]) }
    }

    /// The last messages of a chat, oldest first.
    ///
    /// - Parameters:
    ///   - bound: the message at which they end; nil for the end of the chat.
    ///   - isInclusive: whether `bound` is one of them.
    func messages(
        of chat: ChatID,
        upTo bound: MessageID? = nil,
        isInclusive: Bool = true,
        count: Int
    ) throws -> [Message] {
        try rows(
            """
            SELECT data FROM message WHERE chat = ? AND id \(isInclusive ? "<=" : "<") ?
            ORDER BY id DESC LIMIT ?
            """,
            [chat.rawValue, bound?.rawValue ?? Int64.max, count]
        ).reversed().compactMap { Message(stored: $0["data"]) }
    }

    /// The messages of a chat that follow a message, oldest first.
    func messages(of chat: ChatID, after message: MessageID, count: Int) throws -> [Message] {
        try rows(
            "SELECT data FROM message WHERE chat = ? AND id > ? ORDER BY id LIMIT ?",
            [chat.rawValue, message.rawValue, count]
        ).compactMap { Message(stored: $0["data"]) }
    }

    // MARK: - Threads

    /// The message that a message answers; nil when it answers none or is not stored.
    func messageAnswered(by message: MessageID, in chat: ChatID) throws -> MessageID? {
        try int(
            "SELECT replyTo FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        ).map(MessageID.init)
    }

    /// The messages that answer a message, directly or not, oldest first; in a cycle the message
    /// itself too.
    func answers(
        to message: MessageID,
        in chat: ChatID,
        limit: Int
    ) throws -> [(id: MessageID, answered: MessageID)] {
        // UNION drops rows that were found before, so a cycle ends.
        try rows(
            """
            WITH RECURSIVE answer (id, replyTo) AS (
              SELECT id, replyTo FROM message WHERE chat = :chat AND replyTo = :message
              UNION
              SELECT message.id, message.replyTo FROM answer
              JOIN message ON message.chat = :chat AND message.replyTo = answer.id
              ORDER BY 1 LIMIT :limit
            )
            SELECT id, replyTo FROM answer ORDER BY id
            """,
            ["chat": chat.rawValue, "message": message.rawValue, "limit": limit]
        ).map { (MessageID($0[0]), MessageID($0[1])) }
    }

    // MARK: - Searching

    /// The messages with words that begin with the words of `query`, newest first.
    ///
    /// - Parameter chat: nil for all chats.
    func messages(
        matching query: String,
        in chat: ChatID?,
        limit: Int
    ) throws -> [(chat: ChatID, message: Message)] {
        guard let pattern = FTS5Pattern(matchingAllPrefixesIn: query) else { return [] }
        return try rows(
            """
            SELECT message.chat, message.data FROM message_search
            JOIN message ON message.row = message_search.rowid
            WHERE message_search MATCH ? AND (? IS NULL OR message.chat = ?)
            ORDER BY message.id DESC LIMIT ?
            """,
            [pattern, chat?.rawValue, chat?.rawValue, limit]
        ).compactMap { row in
            Message(stored: row["data"]).map { (ChatID(row["chat"]), $0) }
        }
    }

    /// Calls `body` with the messages that mention a person or answer one of their messages, newest
    /// first, until it returns false.
    func forEachMessage(
        concerning user: UserID,
        _ body: (ChatID, Message) throws -> Bool
    ) throws {
        // There is no index of mentions: a byte search finds the messages worth decoding.
        let rows = try Row.fetchCursor(
            db.cachedStatement(
                sql: """
                    SELECT chat, data FROM message
                    WHERE sender IS NOT ? AND (instr(data, CAST('USER_MENTION' AS BLOB)) > 0
                      OR instr(data, CAST('REPLY' AS BLOB)) > 0)
                    ORDER BY id DESC
                    """
            ),
            arguments: [user.rawValue]
        )
        while let row = try rows.next() {
            guard let message = Message(stored: row["data"]), message.concerns(user) else {
                continue
            }
            guard try body(ChatID(row["chat"]), message) else { return }
        }
    }
}
