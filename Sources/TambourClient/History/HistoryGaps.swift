/// The places in a list of stored rows where messages may be missing.
package struct HistoryGaps: Equatable, Sendable {
    /// Before the first row.
    package var before: Bool
    /// Between each row and the next row. There is one element fewer than there are rows.
    package var between: [Bool]
    /// After the last row.
    package var behind: Bool
}

extension ChatHistory {
    /// Returns whether all messages between two positions are stored, including both.
    package func isWithoutGap(from older: Position, to newer: Position) -> Bool {
        chunk(containing: older)?.contains(newer) ?? false
    }

    /// - Parameters:
    ///   - rows: consecutive stored rows, smallest first.
    ///   - end: nil until a login has named the newest message.
    package func gaps(in rows: [Position], end: ChatEnd?) -> HistoryGaps {
        guard let first = rows.first, let last = rows.last else {
            let isWhole = end.map { isWithoutGap(from: .min, to: $0.position) } ?? false
            return HistoryGaps(before: !isWhole, between: [], behind: !isWhole)
        }
        return HistoryGaps(
            before: !isWithoutGap(from: .min, to: first),
            between: zip(rows, rows.dropFirst()).map { !isWithoutGap(from: $0, to: $1) },
            behind: end.map { !isWithoutGap(from: last, to: max(last, $0.position)) } ?? true
        )
    }
}
