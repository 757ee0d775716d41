import TambourSQL

enum MemberColumn: Int, SQLColumn {
    case userID, joined, readTime, readN, ct, big, permissions, floor, hiddenN, shownTime
}

/// The data of a member that other users see.
enum MembershipColumn: Int, SQLColumn {
    case shownTime, permissions
}

typealias MemberAccountColumn = SQLPair<AccountColumn, MembershipColumn>

enum MarkColumn: Int, SQLColumn {
    case userID, shownTime, permissions
}

enum FloorColumn: Int, SQLColumn {
    case userID, floor
}

enum AdminColumn: Int, SQLColumn {
    case userID, permissions
}

enum JoinedColumn: Int, SQLColumn {
    case joined
}

/// The columns of the tables `former_member` (as `f`) and `chat` (as `c`).
enum FormerMemberColumn: Int, SQLColumn {
    case chat, owner, joined, ct, created

    var sql: String {
        switch self {
        case .created: "c.created"
        default: "f.\(snakeCase)"
        }
    }
}

struct MemberStatements {
    let byID: SQLQuery<MemberColumn>
    let ofChat: SQLQuery<MemberColumn>
    let idsOfChat: SQLQuery<UserIDColumn>
    let marksOfChat: SQLQuery<MarkColumn>
    let readersOfBig: any SQLStatement
    let floored: SQLQuery<FloorColumn>
    let adminsOfChat: SQLQuery<AdminColumn>
    let pageOfChat: SQLQuery<MemberAccountColumn>
    let pageOfAdmins: SQLQuery<MemberAccountColumn>
    let insert: any SQLStatement
    let setMarks: any SQLStatement
    let setClock: any SQLStatement
    let remove: any SQLStatement
    let makeBig: any SQLStatement
    let setPermissions: any SQLStatement
    let setFloor: any SQLStatement
    let setHidden: any SQLStatement
    let bury: any SQLStatement
    let removeAll: any SQLStatement
    let buryAll: any SQLStatement
    /// Deletes the record of a former membership and returns the time at which the membership
    /// began.
    let revive: SQLQuery<JoinedColumn>
    let formerChanged: SQLQuery<FormerMemberColumn>

    init(_ sql: any SQLConnection) throws {
        let ofChat = "FROM member WHERE chat = $1"
        byID = try sql.query(
            "SELECT \(MemberColumn.list) FROM member WHERE user_id = $1 AND chat = $2"
        )
        self.ofChat = try sql.query("SELECT \(MemberColumn.list) \(ofChat) ORDER BY user_id")
        idsOfChat = try sql.query("SELECT \(UserIDColumn.list) \(ofChat) ORDER BY user_id")
        marksOfChat = try sql.query("SELECT \(MarkColumn.list) \(ofChat) ORDER BY user_id")
        // The index `member_read` contains only members of big chats. SQLite answers this query
        // from the index, without reading the table.
        readersOfBig = try sql.prepare(
            """
            SELECT count(*) FROM (
              SELECT 1 FROM member
              WHERE chat = $1 AND big = 1 AND read_time >= $2 AND read_time < $3 LIMIT $4) AS part
            """
        )
        floored = try sql.query(
            "SELECT \(FloorColumn.list) \(ofChat) AND floor > 0 AND floor >= $2"
        )
        let accountsOfChat = """
            SELECT \(AccountColumn.list(of: "a")), \(MembershipColumn.list(of: "m"))
            FROM member m JOIN account a ON a.id = m.user_id
            WHERE m.chat = $1 AND m.user_id > $2
            """
        // Sort by `m.user_id`, because it is a column of the index. If the query sorted by `a.id`,
        // SQLite would have to sort all members.
        pageOfChat = try sql.query("\(accountsOfChat) ORDER BY m.user_id LIMIT $3")
        // The owner's row may have no permissions, so the second half of the query finds this row
        // by its key.
        pageOfAdmins = try sql.query(
            """
            \(accountsOfChat) AND m.permissions > 0
            UNION ALL
            \(accountsOfChat) AND m.permissions = 0 AND m.user_id = $4
            ORDER BY 1 LIMIT $3
            """
        )
        adminsOfChat = try sql.query(
            "SELECT \(AdminColumn.list) \(ofChat) AND permissions > 0 ORDER BY user_id"
        )
        insert = try sql.prepare(
            """
            INSERT INTO member
              (user_id, chat, ct, read_time, read_n, shown_time, joined, big, floor)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """
        )
        setMarks = try sql.prepare(
            """
            UPDATE member SET ct = $3, read_time = $4, read_n = $5, shown_time = $6
            WHERE user_id = $1 AND chat = $2
            """
        )
        setClock = try sql.prepare("UPDATE member SET ct = $3 WHERE user_id = $1 AND chat = $2")
        remove = try sql.prepare("DELETE FROM member WHERE user_id = $1 AND chat = $2")
        makeBig = try sql.prepare("UPDATE member SET big = 1 WHERE chat = $1")
        setPermissions = try sql.prepare(
            "UPDATE member SET permissions = $3 WHERE user_id = $1 AND chat = $2"
        )
        setFloor = try sql.prepare(
            "UPDATE member SET floor = $3 WHERE user_id = $1 AND chat = $2"
        )
        setHidden = try sql.prepare(
            "UPDATE member SET hidden_n = $3 WHERE user_id = $1 AND chat = $2"
        )
        bury = try sql.prepare(
            """
            INSERT INTO former_member (user_id, chat, owner, joined, ct)
            VALUES ($1, $2, $3, $4, $5)
            """
        )
        removeAll = try sql.prepare("DELETE FROM member WHERE chat = $1")
        buryAll = try sql.prepare(
            """
            INSERT INTO former_member (user_id, chat, owner, joined, ct)
            SELECT user_id, chat, CAST($2 AS bigint), joined, CAST($3 AS bigint)
            FROM member WHERE chat = $1
            """
        )
        revive = try sql.query(
            """
            DELETE FROM former_member WHERE user_id = $1 AND chat = $2
            RETURNING \(JoinedColumn.list)
            """
        )
        formerChanged = try sql.query(
            """
            SELECT \(FormerMemberColumn.list) FROM former_member f
            JOIN chat c ON c.id = f.chat
            WHERE f.user_id = $1 AND f.ct > $2 AND f.ct <= $3
            ORDER BY f.ct DESC, f.chat LIMIT $4
            """
        )
    }
}
