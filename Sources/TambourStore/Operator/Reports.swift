package import TambourProtocol
import TambourSQL

enum ReportColumn: Int, SQLColumn {
    case id, reporter, chat, message, userID, reason, words, created
}

struct ReportStatements {
    let add: any SQLStatement
    let page: SQLQuery<ReportColumn>
    let remove: any SQLStatement
    let known: any SQLStatement
    let count: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        add = try sql.prepare(
            """
            INSERT INTO report (id, reporter, chat, message, user_id, reason, words, created)
            VALUES ((SELECT COALESCE(max(id), 0) + 1 FROM report), $1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (reporter, chat, message, user_id) DO UPDATE SET
              reason = excluded.reason, words = excluded.words, created = excluded.created
            """
        )
        page = try sql.query(
            "SELECT \(ReportColumn.list) FROM report WHERE id > $1 ORDER BY id LIMIT $2"
        )
        remove = try sql.prepare("DELETE FROM report WHERE id = $1")
        known = try sql.prepare(
            "SELECT 1 FROM report WHERE reporter = $1 AND chat = $2 AND message = $3 AND user_id = $4"
        )
        count = try sql.prepare("SELECT count(*) FROM report WHERE reporter = $1")
    }
}

/// A report that administrators must check.
package struct Report: Sendable {
    /// The reported item. The report contains only the id of the item. If the item is deleted, the
    /// report no longer shows it.
    package enum Subject: Hashable, Sendable {
        case user(UserID)
        case chat(ChatKey)
        case message(MessageID, in: ChatKey)
    }

    package let id: Int64
    package let reporter: UserID
    package let subject: Subject
    /// The number that the client sent, usually from COMPLAIN_REASONS_GET; 0 if the client sent no
    /// number.
    package let reason: Int64
    /// The reporter's text, as the client sent it.
    package let words: Text
    /// The commit clock when the report was last sent, Unix milliseconds.
    package let created: Int64
}

extension WriteTransaction {
    /// Adds a report to the moderation list. If the reporter sends the report again, the new
    /// reason, words and time replace the old ones.
    package func report(
        _ subject: Report.Subject,
        by reporter: UserID,
        reason: Int64,
        words: Text
    ) throws {
        writes += 1
        let (chat, message, user) = subject.columns
        try store.reports.add.run {
            $0.bind(1, reporter.rawValue)
            $0.bind(2, chat)
            $0.bind(3, message)
            $0.bind(4, user)
            $0.bind(5, reason)
            $0.bindWords(6, words)
            $0.bind(7, ct)
        }
    }

    /// Removes a report from the moderation list.
    ///
    /// - Returns: false if the report is not on the list.
    package func closeReport(_ id: Int64) throws -> Bool {
        guard try store.reports.remove.run({ $0.bind(1, id) }) > 0 else { return false }
        writes += 1
        return true
    }
}

extension Report.Subject {
    /// The values of the columns `chat`, `message` and `user_id`.
    fileprivate var columns: (chat: Int64, message: Int64, user: Int64) {
        switch self {
        case .user(let user): (0, 0, user.rawValue)
        case .chat(let chat): (chat.rawValue, 0, 0)
        case .message(let id, let chat): (chat.rawValue, id.rawValue, 0)
        }
    }
}

extension ReadTransaction {
    /// Whether a user has an open report about this subject.
    package func hasReported(_ subject: Report.Subject, by reporter: UserID) throws -> Bool {
        let (chat, message, user) = subject.columns
        return try store.reports.known.hasRow {
            $0.bind(1, reporter.rawValue)
            $0.bind(2, chat)
            $0.bind(3, message)
            $0.bind(4, user)
        }
    }

    /// Returns the number of open reports by a user.
    package func reportCount(of reporter: UserID) throws -> Int {
        try store.reports.count.oneCount { $0.bind(1, reporter.rawValue) }
    }

    /// Returns reports after `id`, the oldest first.
    package func reports(after id: Int64, limit: Int) throws -> [Report] {
        try store.reports.page.all {
            $0.bind(1, id)
            $0.bind(2, Int64(limit))
        } read: {
            Report(row: $0)
        }
    }
}

extension Report {
    init(row: SQLRow<ReportColumn>) {
        let (chat, message) = (ChatKey(row.int(.chat)), MessageID(row.int(.message)))
        let subject: Subject =
            if let user = row.nonZero(.userID) {
                .user(UserID(user))
            } else if message.rawValue != 0 {
                .message(message, in: chat)
            } else {
                .chat(chat)
            }
        self.init(
            id: row.int(.id),
            reporter: UserID(row.int(.reporter)),
            subject: subject,
            reason: row.int(.reason),
            words: row.text(.words),
            created: row.int(.created)
        )
    }
}
