import Foundation
import GRDB
import TambourProtocol

/// Reads messages as the server last sent them, without unconfirmed changes of this device.
extension StoreReading {
    /// Returns a message; nil when it is not stored.
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

    /// Returns the revision at which the stored version of a message was received; nil when the
    /// message is not stored.
    func revision(of message: MessageID, in chat: ChatID) throws -> Int64? {
        try int(
            "SELECT revision FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        )
    }

    /// Returns the server's id of a message that this account sent; nil when no such message from
    /// the server is stored. Messages in a channel are stored without a sender.
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

    /// Returns the first message of another sender after the account's read mark.
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

    /// Returns the positions of the stored messages before `position`, down to and including
    /// `bound`, nearest first.
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

    /// Returns the positions of the stored messages after `position`, up to and including `bound`,
    /// nearest first.
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

    /// Returns the last messages of a chat, oldest first.
    ///
    /// - Parameters:
    ///   - bound: the message that ends the range; nil for the end of the chat.
    ///   - isInclusive: whether the result may include `bound`.
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

    /// Returns the first `count` messages of a chat after a message, oldest first.
    func messages(of chat: ChatID, after message: MessageID, count: Int) throws -> [Message] {
        try rows(
            "SELECT data FROM message WHERE chat = ? AND id > ? ORDER BY id LIMIT ?",
            [chat.rawValue, message.rawValue, count]
        ).compactMap { Message(stored: $0["data"]) }
    }

    // MARK: - Threads

    /// Returns the id of the message that `message` answers; nil when `message` answers none or is
    /// not stored.
    func messageAnswered(by message: MessageID, in chat: ChatID) throws -> MessageID? {
        try int(
            "SELECT replyTo FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        ).map(MessageID.init)
    }

    /// Returns the direct and indirect answers to a message, oldest first. In a cycle, the result
    /// includes the message itself.
    func answers(
        to message: MessageID,
        in chat: ChatID,
        limit: Int
    ) throws -> [(id: MessageID, answered: MessageID)] {
        // UNION drops rows that were found before, so the query ends even in a cycle.
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

    /// Returns the messages with words that begin with the words of `query`, newest first.
    ///
    /// - Parameter chat: nil for all chats; the search then omits comments.
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
            WHERE message_search MATCH ? AND (? IS NOT NULL AND message.chat = ? OR
              ? IS NULL AND message.chat NOT IN (SELECT post FROM comment_thread))
            ORDER BY message.id DESC LIMIT ?
            """,
            [pattern, chat?.rawValue, chat?.rawValue, chat?.rawValue, limit]
        ).compactMap { row in
            Message(stored: row["data"]).map { (ChatID(row["chat"]), $0) }
        }
    }

    /// Returns whether one of the newest 100 unread messages of a chat mentions a person or answers
    /// one of that person's messages.
    func hasUnread(in chat: ChatID, concerning user: UserID) throws -> Bool {
        try rows(
            """
            SELECT data FROM (
              SELECT sender, data FROM message
              WHERE chat = ? AND id > (SELECT (readMark << 16) | 65535 FROM chat WHERE id = ?)
              ORDER BY id DESC LIMIT 100
            ) WHERE sender IS NOT ? AND (instr(data, CAST('USER_MENTION' AS BLOB)) > 0
              OR instr(data, CAST('REPLY' AS BLOB)) > 0)
            """,
            [chat.rawValue, chat.rawValue, user.rawValue]
        ).contains { Message(stored: $0["data"])?.concerns(user) == true }
    }

    /// Calls `body` with each message that mentions a person or answers one of that person's
    /// messages, newest first, until `body` returns false. Omits comments.
    func forEachMessage(
        concerning user: UserID,
        _ body: (ChatID, Message) throws -> Bool
    ) throws {
        // There is no index of mentions. A byte search preselects the messages to decode.
        let rows = try Row.fetchCursor(
            db.cachedStatement(
                sql: """
                    SELECT chat, data FROM message
                    WHERE sender IS NOT ? AND chat NOT IN (SELECT post FROM comment_thread)
                      AND (instr(data, CAST('USER_MENTION' AS BLOB)) > 0
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
