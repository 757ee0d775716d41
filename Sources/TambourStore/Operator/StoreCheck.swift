import TambourProtocol
import TambourSQL

/// Checks the invariants that every store must satisfy. `tambourd admin check` and the crash tests
/// use it.
package enum StoreCheck {
    /// The maximum time, in milliseconds, by which a correct commit clock may be ahead of the wall
    /// clock.
    private static let maxDriftMs: Int64 = 5_000

    /// - Parameter wall: Unix milliseconds.
    /// - Returns: the problems, one line for each; empty if there are no problems.
    package static func problems(of store: StoreConnection, wall: Int64) throws -> [String] {
        var problems: [String] = []
        if let file = store.sql as? any SQLFileConnection {
            problems += try file.quickCheck()
        }
        let clock = try store.meta.value("ct") ?? 0
        if MessageID.times.contains(clock), clock - maxDriftMs > wall {
            problems.append("the commit clock is \(clock - wall) ms ahead of the wall clock")
        }
        problems += try impossibleNumbers(in: store)
        problems += try rows(
            store.sql,
            """
            SELECT c.id, c.member_count, count(m.user_id) FROM chat c
            LEFT JOIN member m ON m.chat = c.id
            GROUP BY c.id, c.member_count HAVING c.member_count <> count(m.user_id)
            """
        ) { "chat \($0[0]): \($0[1]) members recorded, \($0[2]) found" }
        problems += try rows(
            store.sql,
            """
            SELECT t.channel, t.post, t.comments, count(m.id) FROM comment_thread t
            LEFT JOIN message m ON m.chat = t.chat AND m.status <> 2
            GROUP BY t.channel, t.post, t.comments HAVING t.comments <> count(m.id)
            """
        ) { "post \($0[1]) of chat \($0[0]): \($0[2]) comments recorded, \($0[3]) found" }
        problems += try rows(
            store.sql,
            """
            SELECT c.id FROM chat c
            WHERE c.kind = \(ChatKind.comments.rawValue) AND NOT EXISTS (SELECT 1 FROM comment_thread t WHERE t.chat = c.id)
            """
        ) { "chat \($0[0]): holds comments on no post" }
        problems += try rows(
            store.sql,
            """
            SELECT t.channel, t.post, t.chat FROM comment_thread t
            WHERE NOT EXISTS (SELECT 1 FROM chat c WHERE c.id = t.chat AND c.kind = \(ChatKind.comments.rawValue))
            """
        ) { "post \($0[1]) of chat \($0[0]): its comments, chat \($0[2]), are missing" }
        problems += try rows(
            store.sql,
            """
            SELECT chat, count(*), max(n), min(n) FROM message
            GROUP BY chat HAVING count(*) <> max(n) OR min(n) <> 1
            """
        ) { "chat \($0[0]): \($0[1]) messages are numbered \($0[3]) to \($0[2])" }
        problems += try rows(
            store.sql,
            """
            SELECT chat, id, n, earlier FROM (
              SELECT chat, id, n, lag(n) OVER (PARTITION BY chat ORDER BY id) AS earlier
              FROM message
            ) numbered WHERE n <= earlier
            """
        ) { "chat \($0[0]): message \($0[1]) has number \($0[2]), the one before it \($0[3])" }
        problems += try rows(
            store.sql,
            "SELECT user_id, chat, ct FROM member WHERE ct > (\(clockValue))"
        ) { "member \($0[0]) of chat \($0[1]): changed at \($0[2]), after the commit clock" }
        problems += try rows(
            store.sql,
            """
            SELECT m.user_id, m.chat, m.read_n FROM member m
            WHERE m.read_n > COALESCE((SELECT max(x.n) FROM message x WHERE x.chat = m.chat), 0)
            """
        ) { "member \($0[0]) of chat \($0[1]): has read \($0[2]), more than there is" }
        // If a user is erased after using an invitation, this use still counts in `uses`, but it
        // has no row in `invitation_use`.
        problems += try rows(
            store.sql,
            """
            SELECT i.id, i.max_uses, i.uses, count(u.user_id) FROM invitation i
            LEFT JOIN invitation_use u ON u.invitation = i.id
            GROUP BY i.id, i.max_uses, i.uses
            HAVING i.uses > i.max_uses OR count(u.user_id) > i.uses
            """
        ) {
            "invitation \($0[0]): for \($0[1]), \($0[2]) uses recorded, \($0[3]) users found"
        }
        return problems
    }

    /// Returns notes on valid rows that the current server would not write. The operator need not
    /// do anything about these rows.
    package static func remarks(on store: StoreConnection) throws -> [String] {
        let limit = store.limits.maxMessageContentBytes
        let content = """
            length(text) + COALESCE(length(elements), 0) + COALESCE(length(attaches), 0)
            """
        let size = "\(content) + COALESCE(length(forward), 0)"
        let forwardLimit = store.limits.maxMessageBytes - limit
        return try rows(
            store.sql,
            """
            SELECT chat, id, \(size) FROM message
            WHERE \(content) > \(limit) OR length(forward) > \(forwardLimit)
            ORDER BY chat, id LIMIT \(maxRows)
            """
        ) {
            "chat \($0[0]): message \($0[1]) has \($0[2]) bytes, more than messages may have; it is served without what "
                + "does not fit"
        }
    }

    private static let clockValue = "SELECT v FROM meta WHERE k = 'ct'"

    private static func rows(
        _ sql: any SQLConnection,
        _ text: String,
        _ line: ([Int64]) -> String
    ) throws -> [String] {
        let statement = try sql.prepare(text)
        defer { statement.reset() }
        var lines: [String] = []
        while try statement.step() {
            lines.append(line((0..<statement.columnCount).map { statement.int($0) }))
        }
        return lines
    }
}
