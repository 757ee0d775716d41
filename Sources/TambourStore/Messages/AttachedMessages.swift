package import TambourProtocol
import TambourSQL

struct AttachedStatements {
    let older: any SQLStatement
    let newer: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        // The same condition as in the partial index `message_attached`.
        let select = """
            SELECT \(MessageStatements.columns), \(MessageStatements.isHiddenColumn) FROM message m
            WHERE m.chat = $1 AND m.id > $3 AND m.id <= $4
              AND (m.attaches IS NOT NULL OR m.forward IS NOT NULL)
            """
        older = try sql.prepare("\(select) ORDER BY m.id DESC LIMIT $5")
        newer = try sql.prepare("\(select) ORDER BY m.id LIMIT $5")
    }
}

/// Messages with attachments on one side of a position, the nearest first.
package struct AttachedPage: Sendable {
    package var messages: [MessageRecord] = []
    /// The last message scanned; nil when nothing is left on this side.
    package var reached: MessageID?

    package init() {}
}

extension ReadTransaction {
    /// Returns messages at or before `place` with attachments that `isWanted` accepts, newest
    /// first.
    package func attached(
        in view: ChatView,
        upTo place: MessageID,
        limit: Int,
        _ budget: inout ScanBudget,
        _ isWanted: (Attach) -> Bool
    ) throws -> AttachedPage {
        let statement = store.attached.older
        return try page(limit, &budget, isWanted) { last in
            statement.bind(3, view.floor.rawValue)
            statement.bind(4, (last?.before ?? place).rawValue)
            return (statement, view)
        }
    }

    /// Returns messages after `place` with attachments that `isWanted` accepts, oldest first.
    package func attached(
        in view: ChatView,
        after place: MessageID,
        limit: Int,
        _ budget: inout ScanBudget,
        _ isWanted: (Attach) -> Bool
    ) throws -> AttachedPage {
        let statement = store.attached.newer
        return try page(limit, &budget, isWanted) { last in
            statement.bind(3, (last ?? max(place, view.floor)).rawValue)
            statement.bind(4, Int64.max)
            return (statement, view)
        }
    }

    /// Rows read at once: PostgreSQL sends all rows that a statement selects.
    private static let rowsPerLook = 64

    /// - Parameter statement: returns the statement bound to the messages beyond the last one
    ///   scanned.
    private func page(
        _ limit: Int,
        _ budget: inout ScanBudget,
        _ isWanted: (Attach) -> Bool,
        _ statement: (MessageID?) -> (any SQLStatement, ChatView)
    ) throws -> AttachedPage {
        var page = AttachedPage()
        guard limit > 0 else { return page }
        while true {
            let (statement, view) = statement(page.reached)
            defer { statement.reset() }
            statement.bind(1, view.key.rawValue)
            statement.bind(2, view.viewer.rawValue)
            let most = budget.share(atMost: Self.rowsPerLook)
            statement.bind(5, Int64(most))
            var rows = 0
            while try statement.step() {
                rows += 1
                page.reached = MessageID(statement.int(1))
                let size = statement.borrowedBytes(11).count + statement.borrowedBytes(12).count
                budget.take(rows: 1, bytes: size)
                if !statement.bool(MessageStatements.columnCount) {
                    let record = MessageRecord(row: statement)
                    if record.shownAttaches.contains(where: isWanted) {
                        page.messages.append(record)
                    }
                }
                if page.messages.count == limit || budget.isSpent { return page }
            }
            if rows < most {
                page.reached = nil
                return page
            }
        }
    }
}
