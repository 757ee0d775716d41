import TambourSQL

enum MessageColumn: Int, SQLColumn {
    case chat, id, n, sender, cid, device, status, updated, replyTo, text, elements, attaches
    case forward, reactions, poll
}

/// Whether the reader `$2` has deleted the message `m` for themselves.
enum IsHiddenColumn: Int, SQLColumn {
    case isHidden

    var sql: String {
        """
        CASE WHEN EXISTS (
          SELECT 1 FROM message_hidden h
          WHERE h.user_id = $2 AND h.chat = m.chat AND h.message = m.id
        ) THEN 1 ELSE 0 END
        """
    }
}

/// The columns of a message, and whether the message is hidden from the reader.
typealias ScannedMessageColumn = SQLPair<MessageColumn, IsHiddenColumn>

enum MessageNumberColumn: Int, SQLColumn {
    case id, n
}

enum ClientIDColumn: Int, SQLColumn {
    case cid, sender
}

enum MessageChangeColumn: Int, SQLColumn {
    case changed, id
}

struct MessageStatements {
    /// The value of the sender parameter for all senders whose messages the pending purges of the
    /// chat delete.
    static let purgedSenders: Int64 = -1
    private static let notHidden = """
        NOT EXISTS (
          SELECT 1 FROM message_hidden h
          WHERE h.user_id = $2 AND h.chat = m.chat AND h.message = m.id
        )
        """

    let insert: any SQLStatement
    let byID: SQLQuery<MessageColumn>
    let head: SQLQuery<MessageNumberColumn>
    let lastVisible: SQLQuery<MessageColumn>
    let previous: any SQLStatement
    let numberAt: SQLQuery<MessageNumberColumn>
    let anyCID: any SQLStatement
    let newestCIDs: SQLQuery<ClientIDColumn>
    let byCID: SQLQuery<MessageColumn>
    let byCreationCID: SQLQuery<MessageColumn>
    let backward: SQLQuery<MessageColumn>
    let forward: SQLQuery<MessageColumn>
    let edit: any SQLStatement
    let remove: any SQLStatement
    /// The parameters are the chat, the id before the range, the last id of the range, and the
    /// sender. The sender is a user, 0 for all users, or `purgedSenders`.
    let inRange: SQLQuery<MessageNumberColumn>
    let removeInRange: any SQLStatement
    let hide: any SQLStatement
    let hiddenCount: any SQLStatement
    let changes: SQLQuery<MessageChangeColumn>
    let isHidden: any SQLStatement
    let hiders: SQLQuery<UserIDColumn>
    let removedAfter: any SQLStatement
    let hiddenAfter: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        insert = try sql.prepare(
            """
            INSERT INTO message
              (chat, id, n, sender, cid, device, status, updated, reply_to,
               text, elements, attaches, forward, poll)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
            """
        )
        let select = "SELECT \(MessageColumn.list(of: "m")) FROM message m"
        let selectNumber = "SELECT \(MessageNumberColumn.list) FROM message"
        byID = try sql.query("\(select) WHERE m.chat = $1 AND m.id = $2")
        head = try sql.query("\(selectNumber) WHERE chat = $1 ORDER BY id DESC LIMIT 1")
        lastVisible = try sql.query(
            """
            \(select)
            WHERE m.chat = $1 AND m.id > $3 AND m.status <> 2 AND \(Self.notHidden)
            ORDER BY m.id DESC LIMIT 1
            """
        )
        previous = try sql.prepare(
            "SELECT id FROM message WHERE chat = $1 AND id < $2 ORDER BY id DESC LIMIT 1"
        )
        numberAt = try sql.query(
            "\(selectNumber) WHERE chat = $1 AND id <= $2 ORDER BY id DESC LIMIT 1"
        )
        anyCID = try sql.prepare(
            "SELECT id FROM message WHERE cid = $1 AND sender = $2 LIMIT 1"
        )
        newestCIDs = try sql.query(
            "SELECT \(ClientIDColumn.list) FROM message WHERE cid < $1 ORDER BY cid DESC LIMIT $2"
        )
        byCID = try sql.query(
            "\(select) WHERE m.cid = $1 AND m.sender = $2 AND m.chat = $3 AND m.device = $4"
        )
        byCreationCID = try sql.query(
            """
            \(select)
            WHERE m.cid = $1 AND m.sender = $2 AND m.chat < 0 AND m.n = 1 AND m.device = $3
            """
        )
        backward = try sql.query(
            """
            \(select)
            WHERE m.chat = $1 AND m.id <= $3 AND m.id >= $4 AND m.status <> 2
              AND \(Self.notHidden)
            ORDER BY m.id DESC LIMIT $5
            """
        )
        forward = try sql.query(
            """
            \(select)
            WHERE m.chat = $1 AND m.id > $3 AND m.id <= $4 AND m.status <> 2
              AND \(Self.notHidden)
            ORDER BY m.id LIMIT $5
            """
        )
        let remove = """
            UPDATE message
            SET status = 2, updated = $3, changed = $3, text = $4, elements = NULL,
                attaches = NULL, forward = NULL, reply_to = 0, reactions = NULL, poll = 0
            """
        // Selects the messages of one sender, the messages of the senders whom a purge names, or
        // everything. A message without a device is an event. The message that created a group is
        // also an event.
        let inRange = """
            chat = $1 AND id > $2 AND id <= $3 AND status <> 2
              AND (CAST($4 AS bigint) = 0 OR device <> 0 AND (n > 1 OR chat > 0)
                AND (sender = $4 OR CAST($4 AS bigint) = \(Self.purgedSenders) AND sender IN (
                  SELECT p.sender FROM chat_purge p WHERE p.chat = $1 AND p.up_to = $3
                )))
            """
        self.inRange = try sql.query("\(selectNumber) WHERE \(inRange) ORDER BY id")
        removeInRange = try sql.prepare(
            "\(remove.replacing("$3", with: "$5").replacing("$4", with: "$6")) WHERE \(inRange)"
        )
        self.remove = try sql.prepare("\(remove) WHERE chat = $1 AND id = $2")
        edit = try sql.prepare(
            """
            UPDATE message
            SET status = 1, updated = $8, changed = $3, text = $4, elements = $5, attaches = $6,
                poll = $7
            WHERE chat = $1 AND id = $2
            """
        )
        // SQLite starts its scan at the first lower bound in the statement. The bound by `$2` and
        // `$3` must therefore come before the condition of the partial index, `m.changed > 0`.
        changes = try sql.query(
            """
            SELECT \(MessageChangeColumn.list(of: "m")) FROM message m
            WHERE m.chat = $1 AND (m.changed, m.id) > ($2, $3) AND m.changed > 0 AND m.id > $4
              AND NOT EXISTS (
                SELECT 1 FROM message_hidden h
                WHERE h.user_id = $5 AND h.chat = m.chat AND h.message = m.id)
            UNION ALL
            SELECT ct, message FROM message_hidden
            WHERE user_id = $5 AND chat = $1 AND (ct, message) > ($2, $3) AND message > $4
            ORDER BY 1, 2 LIMIT $6
            """
        )
        hiddenCount = try sql.prepare(
            "SELECT count(*) FROM message_hidden WHERE user_id = $1 AND chat = $2"
        )
        hide = try sql.prepare(
            """
            INSERT INTO message_hidden (user_id, chat, message, ct) VALUES ($1, $2, $3, $4)
            ON CONFLICT (user_id, chat, message) DO NOTHING
            """
        )
        isHidden = try sql.prepare(
            "SELECT 1 FROM message_hidden WHERE user_id = $1 AND chat = $2 AND message = $3"
        )
        hiders = try sql.query(
            "SELECT \(UserIDColumn.list) FROM message_hidden WHERE chat = $1 AND message = $2"
        )
        removedAfter = try sql.prepare(
            """
            SELECT count(*) FROM (
              SELECT 1 FROM message WHERE chat = $1 AND status = 2 AND id > $2 LIMIT $3) AS part
            """
        )
        // A message that is both hidden and removed must count once. `removedAfter` counts it, so
        // this statement does not.
        hiddenAfter = try sql.prepare(
            """
            SELECT count(*) FROM (
              SELECT 1 FROM message_hidden h
              JOIN message m ON m.chat = h.chat AND m.id = h.message
              WHERE h.user_id = $1 AND h.chat = $2 AND h.message > $3 AND m.status <> 2
              LIMIT $4) AS part
            """
        )
    }
}
