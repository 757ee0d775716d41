import TambourSQL

enum ChatColumn: Int, SQLColumn {
    case id, kind, lowUser, highUser, owner, title, created, memberCount, ctHead, description
    case options, pinned, link, reactions, isPublic
    /// Whether the chat is big. This column is read from a member's row, because the threshold may
    /// have changed since the chat was created.
    case big

    var sql: String {
        switch self {
        case .big: "(SELECT m.big FROM member m WHERE m.chat = chat.id ORDER BY m.user_id LIMIT 1)"
        default: snakeCase
        }
    }
}

/// The columns of the tables `chat` (as `c`) and `member` (as `m`) from which a member's `Chat` is
/// built.
enum ChatViewColumn: Int, SQLColumn {
    case id, kind, lowUser, highUser, owner, title, created, memberCount, ctHead
    case userID, joined, readTime, readN, ct, big
    case description, options, pinned, permissions, floor, link, reactions, isPublic
    case hiddenN, delayedUpdated, delayedFailed

    var sql: String {
        switch self {
        case .userID, .joined, .readTime, .readN, .ct, .big, .permissions, .floor, .hiddenN,
            .delayedUpdated, .delayedFailed:
            "m.\(snakeCase)"
        default: "c.\(snakeCase)"
        }
    }
}

/// The time of the chat's last event.
enum ChatActivityColumn: Int, SQLColumn {
    case active

    var sql: String {
        """
        COALESCE(
          (SELECT max(x.id) FROM message x WHERE x.chat = m.chat) / 65536, c.created) AS active
        """
    }
}

/// The columns that users who have not joined may see.
enum ChatCardColumn: Int, SQLColumn {
    case id, kind, owner, title, created, memberCount, description, isPublic, link, options
}

/// The other user of a dialog.
enum PartnerColumn: Int, SQLColumn {
    case id, seen
}

struct ChatStatements {
    let byID: SQLQuery<ChatColumn>
    let byPair: any SQLStatement
    let begun: any SQLStatement
    let lastPositiveID: any SQLStatement
    let insert: any SQLStatement
    let setClock: any SQLStatement
    let setDetails: any SQLStatement
    let setMemberCount: any SQLStatement
    let byLink: SQLQuery<ChatCardColumn>
    let view: SQLQuery<ChatViewColumn>
    let changedViews: SQLQuery<ChatViewColumn>
    let changedBigViews: SQLQuery<ChatViewColumn>
    let pageOfViews: SQLQuery<SQLPair<ChatViewColumn, ChatActivityColumn>>
    let tiedCount: any SQLStatement
    let recentPartners: SQLQuery<PartnerColumn>

    init(_ sql: any SQLConnection) throws {
        byID = try sql.query("SELECT \(ChatColumn.list) FROM chat WHERE id = $1")
        byPair = try sql.prepare("SELECT id FROM chat WHERE low_user = $1 AND high_user = $2")
        begun = try sql.prepare(
            """
            SELECT created FROM chat WHERE kind = 0 AND owner = $1 AND created > $2
            ORDER BY created DESC LIMIT 1 OFFSET $3
            """
        )
        lastPositiveID = try sql.prepare("SELECT max(id) FROM chat WHERE id > 0")
        insert = try sql.prepare(
            """
            INSERT INTO chat
              (id, kind, low_user, high_user, owner, title, created, member_count, ct_head)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """
        )
        setClock = try sql.prepare("UPDATE chat SET ct_head = $2 WHERE id = $1")
        setDetails = try sql.prepare(
            """
            UPDATE chat SET owner = $2, title = $3, description = $4, options = $5, pinned = $6,
              link = $7, reactions = $8, is_public = $9
            WHERE id = $1
            """
        )
        byLink = try sql.query(
            "SELECT \(ChatCardColumn.list(of: "c")) FROM chat c WHERE c.link = $1"
        )
        setMemberCount = try sql.prepare("UPDATE chat SET member_count = $2 WHERE id = $1")
        let viewsOfUser = """
            SELECT \(ChatViewColumn.list) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1
            """
        view = try sql.query("\(viewsOfUser) AND m.chat = $2")
        changedViews = try sql.query(
            """
            \(viewsOfUser) AND m.big = 0 AND m.ct > $2 AND m.ct <= $3
            ORDER BY m.ct DESC, m.chat LIMIT $4
            """
        )
        // A change in a big chat updates only the chat's own clock. The query must therefore read
        // the rows of all big chats of the user.
        changedBigViews = try sql.query(
            """
            \(viewsOfUser) AND m.big = 1 AND (m.ct > $2 OR c.ct_head > $2)
              AND m.ct <= $3 AND c.ct_head <= $3
            ORDER BY c.ct_head DESC, m.chat
            """
        )
        let ofUserByActivity = """
            SELECT \(ChatViewColumn.list), \(ChatActivityColumn.list)
            FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1
            """
        pageOfViews = try sql.query(
            """
            SELECT * FROM (\(ofUserByActivity)) AS mine WHERE active <= $2
            ORDER BY active DESC, id LIMIT $3 OFFSET $4
            """
        )
        tiedCount = try sql.prepare(
            """
            SELECT count(*) FROM (\(ofUserByActivity)) AS mine WHERE active = $2
            """
        )
        recentPartners = try sql.query(
            """
            SELECT \(PartnerColumn.list(of: "a"))
            FROM (SELECT chat FROM member WHERE user_id = $1 AND ct > $3
              ORDER BY ct DESC LIMIT $2) AS recent
            JOIN chat c ON c.id = recent.chat
            JOIN account a ON a.id = c.low_user + c.high_user - $1
            WHERE c.kind = 0 AND a.privacy % 2 = 0 AND NOT EXISTS (
              SELECT 1 FROM contact k WHERE k.owner = a.id AND k.user_id = $1 AND k.blocked = 1)
            """
        )
    }
}
