import TambourClient
import TambourProtocol

/// Computes scroll positions. A scroll position is the number of lines between the bottom of the
/// pane and the end of the messages.
extension ScreenView {
    /// A line of a message.
    struct LineOfMessage: Equatable {
        let row: HistoryRow.ID
        let line: Int
        /// The number of lines of the message.
        let height: Int
    }

    /// Returns the line of a message that is nearest to the bottom of the pane, at the bottom or
    /// above it; nil if there is no such line.
    func bottomLine(of state: ScreenState, _ width: Int) -> LineOfMessage? {
        let lines = lines(of: state, width)
        let end = max(0, lines.count - state.scroll)
        return lines[..<end].reversed().lazy.compactMap(Self.place).first
    }

    /// Returns the scroll position at which the line `kept` is at the bottom of the pane; nil if
    /// its message no longer exists.
    ///
    /// If the number of lines of the message has changed, uses the line at the same relative place.
    func scroll(of state: ScreenState, _ width: Int, keeping kept: LineOfMessage) -> Int? {
        let lines = lines(of: state, width)
        let last = lines.lastIndex { Self.place($0)?.row == kept.row }
        guard let last, let place = Self.place(lines[last]) else { return nil }
        let line = (kept.line + 1) * place.height / kept.height - 1
        return lines.count - (last - (place.line - max(0, line))) - 1
    }

    /// Returns the scroll position that centers a message. If the message is missing, centers the
    /// next newer message, or else the newest one.
    func scroll(
        of state: ScreenState,
        _ width: Int,
        centering message: MessageID,
        in rows: Int
    ) -> Int {
        let lines = lines(of: state, width)
        let sent = state.rows.lazy.compactMap(\.message)
        guard let target = sent.first(where: { $0 >= message }) ?? sent.last else { return 0 }
        let index = lines.firstIndex { line in
            if case .message(let row, _, _) = line { row.message == target } else { false }
        }
        guard let index else { return 0 }
        return min(max(0, lines.count - index - 1 - rows / 2), max(0, lines.count - rows))
    }

    /// Returns the scroll position at which a whole message is visible. Scrolls as little as
    /// possible.
    func scroll(
        of state: ScreenState,
        _ width: Int,
        revealing id: HistoryRow.ID,
        in rows: Int
    ) -> Int {
        let lines = lines(of: state, width)
        let own = lines.indices.filter { Self.place(lines[$0])?.row == id }
        guard let first = own.first, let last = own.last else { return state.scroll }
        let end = lines.count - state.scroll
        if last >= end { return lines.count - last - 1 }
        if first < end - rows { return max(0, min(lines.count - first - rows, lines.count - rows)) }
        return state.scroll
    }

    private static func place(_ line: Line) -> LineOfMessage? {
        guard case .message(let row, let block, let line) = line else { return nil }
        return LineOfMessage(row: row.id, line: line, height: block.height)
    }
}
