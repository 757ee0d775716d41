package import TambourProtocol
import TambourSQL

struct AttachedStatements {
    let older: SQLQuery<ScannedMessageColumn>
    let newer: SQLQuery<ScannedMessageColumn>

    init(_ sql: any SQLConnection) throws {
        // The condition on `attaches` and `forward` must be the same as in the partial index
        // `message_attached`.
        let select = """
            SELECT \(MessageColumn.list(of: "m")), \(IsHiddenColumn.list) FROM message m
            WHERE m.chat = $1 AND m.id > $3 AND m.id <= $4
              AND (m.attaches IS NOT NULL OR m.forward IS NOT NULL)
            """
        older = try sql.query("\(select) ORDER BY m.id DESC LIMIT $5")
        newer = try sql.query("\(select) ORDER BY m.id LIMIT $5")
    }
}

/// The messages with attachments before or after a position, the nearest first.
package struct AttachedPage: Sendable {
    package var messages: [MessageRecord] = []
    /// The last message that was scanned; nil if no more messages exist in this direction.
    package var reached: MessageID?

    package init() {}
}

extension ReadTransaction {
    /// Returns messages at or before `place` that have an attachment that `isWanted` accepts. The
    /// newest message comes first.
    package func attached(
        in view: ChatView,
        upTo place: MessageID,
        limit: Int,
        _ budget: inout ScanBudget,
        _ isWanted: (Attach) -> Bool
    ) throws -> AttachedPage {
        try page(store.attached.older, in: view, limit, &budget, isWanted) { last in
            (view.floor, last?.before ?? place)
        }
    }

    /// Returns messages after `place` that have an attachment that `isWanted` accepts. The oldest
    /// message comes first.
    package func attached(
        in view: ChatView,
        after place: MessageID,
        limit: Int,
        _ budget: inout ScanBudget,
        _ isWanted: (Attach) -> Bool
    ) throws -> AttachedPage {
        try page(store.attached.newer, in: view, limit, &budget, isWanted) { last in
            (last ?? max(place, view.floor), MessageID(.max))
        }
    }

    /// The maximum number of rows that one statement selects. It is small, because PostgreSQL sends
    /// all selected rows even if the reader stops early.
    private static let rowsPerLook = 64

    /// - Parameter range: receives the id of the last scanned message, and returns the range of ids
    ///   to scan next.
    private func page(
        _ query: SQLQuery<ScannedMessageColumn>,
        in view: ChatView,
        _ limit: Int,
        _ budget: inout ScanBudget,
        _ isWanted: (Attach) -> Bool,
        range: (MessageID?) -> (above: MessageID, upTo: MessageID)
    ) throws -> AttachedPage {
        var page = AttachedPage()
        guard limit > 0 else { return page }
        while true {
            let (above, last) = range(page.reached)
            let most = budget.share(atMost: Self.rowsPerLook)
            var rows = 0
            var isFull = false
            try query.each {
                $0.bind(1, view.key.rawValue)
                $0.bind(2, view.viewer.rawValue)
                $0.bind(3, above.rawValue)
                $0.bind(4, last.rawValue)
                $0.bind(5, Int64(most))
            } while: { row in
                let message = row.first()
                rows += 1
                page.reached = MessageID(message.int(.id))
                let size =
                    message.borrowedBytes(.attaches).count + message.borrowedBytes(.forward).count
                budget.take(rows: 1, bytes: size)
                if !row.bool(.second(.isHidden)) {
                    let record = MessageRecord(row: message)
                    if record.shownAttaches.contains(where: isWanted) {
                        page.messages.append(record)
                    }
                }
                isFull = page.messages.count == limit || budget.isSpent
                return !isFull
            }
            if isFull { return page }
            if rows < most {
                page.reached = nil
                return page
            }
        }
    }
}
