import TambourClient
import TambourProtocol

/// Lines between the bottom of the pane and the end of what is read: where they come from.
extension ScreenView {
    /// A line of a message.
    struct LineOfMessage: Equatable {
        let row: HistoryRow.ID
        let line: Int
    }

    /// The line at the bottom of the pane; nil when no message is there.
    func bottomLine(of state: ScreenState, _ width: Int) -> LineOfMessage? {
        let lines = lines(of: state, width)
        let end = max(0, lines.count - state.scroll)
        return lines[..<end].reversed().lazy.compactMap(Self.place).first
    }

    /// How far up the pane is when a line is at its bottom; nil when the line is not there any more.
    func scroll(of state: ScreenState, _ width: Int, keeping kept: LineOfMessage) -> Int? {
        let lines = lines(of: state, width)
        return lines.lastIndex { Self.place($0) == kept }.map { lines.count - $0 - 1 }
    }

    /// How far up the pane is when a message is in its middle.
    func scroll(
        of state: ScreenState,
        _ width: Int,
        centering message: MessageID,
        in rows: Int
    ) -> Int {
        let lines = lines(of: state, width)
        let index = lines.firstIndex { line in
            if case .message(let row, _, _) = line { row.message == message } else { false }
        }
        guard let index else { return 0 }
        return min(max(0, lines.count - index - 1 - rows / 2), max(0, lines.count - rows))
    }

    /// How far up the pane is when it moves as little as shows all of a message.
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
        guard case .message(let row, _, let line) = line else { return nil }
        return LineOfMessage(row: row.id, line: line)
    }
}
