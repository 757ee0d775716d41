package import TambourProtocol
import TambourSQL

struct ReportStatements {
    let add: any SQLStatement
    let page: any SQLStatement
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
        page = try sql.prepare(
            """
            SELECT id, reporter, chat, message, user_id, reason, words, created FROM report
            WHERE id > $1 ORDER BY id LIMIT $2
            """
        )
        remove = try sql.prepare("DELETE FROM report WHERE id = $1")
        known = try sql.prepare(
            "SELECT 1 FROM report WHERE reporter = $1 AND chat = $2 AND message = $3 AND user_id = $4"
        )
        count = try sql.prepare("SELECT count(*) FROM report WHERE reporter = $1")
    }
}

/// A report for administrators to check.
package struct Report: Sendable {
    /// The reported item. It is referenced, not copied: deleting the item removes it here too.
    package enum Subject: Hashable, Sendable {
        case user(UserID)
        case chat(ChatKey)
        case message(MessageID, in: ChatKey)
    }

    package let id: Int64
    package let reporter: UserID
    package let subject: Subject
    /// A number from COMPLAIN_REASONS_GET, or any other number the client sent; 0 for none.
    package let reason: Int64
    /// The reporter's text, as sent.
    package let words: Text
    /// Commit clock of the last submission, Unix milliseconds.
    package let created: Int64
}

extension WriteTransaction {
    /// Adds a report to the moderation list; a repeated report replaces reason and words.
    package func report(
        _ subject: Report.Subject,
        by reporter: UserID,
        reason: Int64,
        words: Text
    ) throws {
        writes += 1
        let (chat, message, user) = subject.columns
        let statement = store.reports.add
        statement.bind(1, reporter.rawValue)
        statement.bind(2, chat)
        statement.bind(3, message)
        statement.bind(4, user)
        statement.bind(5, reason)
        statement.bindWords(6, words)
        statement.bind(7, ct)
        try statement.run()
    }

    /// Removes a report from the list.
    ///
    /// - Returns: false when it is not on the list.
    package func closeReport(_ id: Int64) throws -> Bool {
        store.reports.remove.bind(1, id)
        guard try store.reports.remove.run() > 0 else { return false }
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
    /// Whether a user has an open report about something.
    package func hasReported(_ subject: Report.Subject, by reporter: UserID) throws -> Bool {
        let (chat, message, user) = subject.columns
        let statement = store.reports.known
        defer { statement.reset() }
        statement.bind(1, reporter.rawValue)
        statement.bind(2, chat)
        statement.bind(3, message)
        statement.bind(4, user)
        return try statement.step()
    }

    /// Returns the number of open reports by a user.
    package func reportCount(of reporter: UserID) throws -> Int {
        let statement = store.reports.count
        defer { statement.reset() }
        statement.bind(1, reporter.rawValue)
        return try statement.step() ? statement.count(0) : 0
    }

    /// Returns reports in the order they arrived, starting after `id`.
    package func reports(after id: Int64, limit: Int) throws -> [Report] {
        let statement = store.reports.page
        defer { statement.reset() }
        statement.bind(1, id)
        statement.bind(2, Int64(limit))
        var reports: [Report] = []
        while try statement.step() { reports.append(Report(row: statement)) }
        return reports
    }
}

extension Report {
    init(row: any SQLStatement) {
        let (chat, message) = (ChatKey(row.int(2)), MessageID(row.int(3)))
        let subject: Subject =
            if row.int(4) != 0 {
                .user(UserID(row.int(4)))
            } else if message.rawValue != 0 {
                .message(message, in: chat)
            } else {
                .chat(chat)
            }
        self.init(
            id: row.int(0),
            reporter: UserID(row.int(1)),
            subject: subject,
            reason: row.int(5),
            words: Text(unchecked: Bytes(row.bytes(6))),
            created: row.int(7)
        )
    }
}
