import TambourClient
import TambourProtocol
import TerminalKit

/// The open chat: its title, its messages and the input line.
extension ScreenView {
    /// The maximum number of rows of the input line.
    private static let inputRows = 6
    private static let goneWords = "You are no longer in this chat; /leave deletes it"

    func drawChat(
        _ state: ScreenState,
        _ surface: inout Surface,
        _ whole: Rect,
        _ seen: inout Seen
    ) {
        var area = whole
        // A click in the chat goes to the input line, unless another target that is added later
        // covers the place.
        seen.targets.append((whole, .input))
        guard state.open != nil else {
            // Commands can be typed without an open chat. `/find` starts the first chat.
            drawInput(state, &surface, &area)
            let hints = [(KeyAction.goToChat, "goes to a chat"), (.help, "shows all keys")]
                .map { state.keys.hint($0, $1) }
            let opening = state.chats.isEmpty ? "" : "Down opens a chat"
            surface.draw(
                ([opening] + hints).filter { !$0.isEmpty }.joined(separator: ", "),
                at: Position(column: area.column + 2, row: area.row + 1),
                style: state.theme[.secondary],
                in: area
            )
            return
        }
        drawTitle(state, &surface, area.takeTop(1))
        if let pinned = state.pinned, area.rows > 8 {
            let line = area.takeTop(1)
            let words = [" ^ ", pinned.sender.oneLine, ": ", pinned.text.oneLine]
            surface.drawLine(words, in: line, style: state.theme[.quote])
            seen.targets.append((line, .pinned(pinned.message)))
        }
        drawInput(state, &surface, &area)
        seen.targets.append((area, .nothing))
        drawMessages(state, &surface, area, &seen)
    }

    func drawInput(_ state: ScreenState, _ surface: inout Surface, _ area: inout Rect) {
        let prompt =
            switch state.intent {
            case .new: "> "
            case .reply: "↩ "
            case .edit, .editScheduled: "✎ "
            }
        var editor = state.input
        editor.width = Self.inputWidth(of: surface.size.columns)
        let layout = editor.layout()
        let cursor = layout.position(of: editor.cursor)
        // Leaves room above the input line for at least a rule and one row of messages.
        let height = min(Self.inputRows, layout.lines.count, max(1, area.rows - 2))
        var box = area.takeBottom(height)
        if case .reply(_, let quote) = state.intent {
            let above = area.takeBottom(1)
            surface.drawLine(["┃ ", quote.oneLine], in: above, style: state.theme[.quote])
        }
        if state.isOpenGone {
            surface.drawLine(Self.goneWords, in: area.takeBottom(1), style: state.theme[.warning])
        }
        if let suggestions = state.suggestions, state.focus == .input {
            drawSuggestions(suggestions, state, &surface, &area)
        }
        let rule = area.takeBottom(1)
        surface.drawHorizontalLine(
            at: rule.origin,
            columns: rule.columns,
            style: state.theme[.border]
        )
        let left = box.takeLeft(2)
        surface.draw(prompt, at: left.origin, style: state.theme[.accent], in: left)
        let rows = LineEditor.visibleRows(of: layout, cursorRow: cursor.row, height: height)
        layout.draw(
            on: &surface,
            at: box.origin,
            rows: rows,
            style: .plain,
            theme: state.theme,
            in: box
        )
        if state.focus == .input {
            surface.cursor = Position(
                column: box.column + cursor.column,
                row: box.row + cursor.row - rows.lowerBound
            )
        }
    }

    /// A line of the message pane.
    enum Line {
        case message(HistoryRow, MessageLayouts.Block, line: Int)
        case gap
        case day(String)
        /// The rule above the messages that were unread when the chat was opened.
        case unread
    }

    func lines(of state: ScreenState, _ width: Int) -> [Line] {
        let key = MessageLayouts.LinesKey(
            rows: state.rows,
            width: width,
            words: state.words,
            newAfterMs: state.newAfterMs,
            isGapBefore: state.isGapBefore,
            isStart: state.isStart
        )
        return layouts.lines(key) { layOut(state, width) }
    }

    private func layOut(_ state: ScreenState, _ width: Int) -> [Line] {
        var lines: [Line] = []
        // The line above the unread messages is drawn once: after the last read message, or above
        // the first message of the chat.
        var mayUnreadBegin = state.isStart
        if state.isGapBefore { lines.append(.gap) }
        var last: HistoryRow?
        var lastDay = ""
        for row in state.rows {
            let day = layouts.day(of: row.timeMs)
            let isNewDay = day != lastDay
            if isNewDay { lines.append(.day(day)) }
            let isNew = state.newAfterMs.map { row.timeMs > $0 && !row.isOwn } ?? false
            let isFirstNew = isNew && mayUnreadBegin
            if isFirstNew { lines.append(.unread) }
            mayUnreadBegin = !isNew && (mayUnreadBegin || row.timeMs <= state.newAfterMs ?? .max)
            let isAlike =
                last?.sender == row.sender && last?.event == nil && row.quote == nil
                && row.forwardedFrom == nil && !row.text.isEmpty
            let isSoon = row.timeMs - (last?.timeMs ?? 0) < 300_000
            let block = layouts.block(
                of: row,
                width: width,
                hasHeader: isNewDay || isFirstNew || !isAlike || !isSoon,
                marking: state.words
            )
            for line in 0..<block.height { lines.append(.message(row, block, line: line)) }
            if row.isGapAfter { lines.append(.gap) }
            last = row
            lastDay = day
        }
        return lines
    }

    private func drawMessages(
        _ state: ScreenState,
        _ surface: inout Surface,
        _ area: Rect,
        _ seen: inout Seen
    ) {
        seen.paneRows = area.rows
        let lines = lines(of: state, Self.textWidth(of: surface.size.columns))
        seen.lines = lines.count
        seen.scroll = min(state.scroll, max(0, lines.count - area.rows))
        let end = lines.count - seen.scroll
        let shown = lines[max(0, end - area.rows)..<end]
        if state.comments != nil, lines.isEmpty, state.isStart {
            let place = Position(column: area.column + 1, row: area.row)
            surface.draw("no comments yet", at: place, style: state.theme[.secondary], in: area)
        }
        for (index, line) in shown.enumerated() {
            let row = area.endRow - shown.count + index
            let place = Rect(
                column: area.column,
                row: row,
                columns: min(area.columns, Self.textWidth(of: surface.size.columns) + 1),
                rows: 1
            )
            switch line {
            case .gap:
                let words =
                    state.connection == .online && !state.isOpenGone
                    ? "fetching what is missing here" : "messages are missing here"
                drawRule(words, .warning, state, &surface, place)
            case .unread: drawRule("new", .unread, state, &surface, place)
            case .day(let day):
                surface.draw(
                    day,
                    at: Position(column: place.column + max(0, place.columns / 2 - 5), row: row),
                    style: state.theme[.secondary],
                    in: place
                )
            case .message(let message, let block, let line):
                draw(message, block, line, state, &surface, place)
                if message.event == nil { seen.targets.append((place, .message(message.id))) }
                if let id = message.message, seen.messages.last != id { seen.messages.append(id) }
            }
        }
        seen.rowsOnScreen = max(area.rows, 1)
    }

    private func drawRule(
        _ words: String,
        _ role: Theme.Role,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ place: Rect
    ) {
        let style = state.theme[role]
        surface.drawHorizontalLine(at: place.origin, columns: place.columns, style: style)
        let start = Position(column: place.column + 3, row: place.row)
        surface.draw(" \(words) ", at: start, style: style, in: place)
    }

    private func draw(
        _ row: HistoryRow,
        _ block: MessageLayouts.Block,
        _ line: Int,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ place: Rect
    ) {
        let theme = state.theme
        var line = line
        defer {
            if row.id == state.selected, state.focus == .messages {
                surface.restyle(place, with: theme[.selection])
                surface.draw("▌", at: place.origin, style: theme[.accent], in: place)
            }
        }
        let inner = Rect(
            column: place.column + 1,
            row: place.row,
            columns: place.columns - 1,
            rows: 1
        )
        if let header = block.header {
            if line == 0 {
                let right = [header.note, header.time].filter { !$0.isEmpty }.joined(separator: " ")
                let end = inner.endColumn - Width.of(right)
                let left = Rect(
                    column: inner.column,
                    row: inner.row,
                    columns: end - inner.column - 1,
                    rows: 1
                )
                let person = theme.style(ofPerson: header.person)
                surface.drawLine(header.sender.oneLine, in: left, style: person)
                var style = theme[.secondary]
                if case .failed = row.state { style = theme[.error] }
                surface.draw(
                    right,
                    at: Position(column: end, row: inner.row),
                    style: style,
                    in: inner
                )
                return
            }
            line -= 1
        }
        if let quote = block.quote {
            if line == 0 {
                surface.drawLine(
                    ["┃ ", quote.sender.oneLine, ": ", quote.text.oneLine],
                    in: inner,
                    style: theme[.quote]
                )
                return
            }
            line -= 1
        }
        if let body = block.body {
            if line < body.lines.count {
                let style = row.event == nil ? theme[.text] : theme[.secondary]
                body.draw(
                    on: &surface,
                    at: inner.origin,
                    rows: line..<line + 1,
                    style: style,
                    theme: theme,
                    in: inner
                )
                if line == 0 { drawNote(block.note, row.state, theme, &surface, inner) }
                return
            }
        }
        var style = theme[.accent]
        if case .failed = row.state { style = theme[.error] }
        surface.draw(block.footer, at: inner.origin, style: style, in: inner)
    }

    private func drawNote(
        _ note: String,
        _ state: MessageState,
        _ theme: Theme,
        _ surface: inout Surface,
        _ line: Rect
    ) {
        var style = theme[.secondary]
        if case .failed = state { style = theme[.error] }
        let place = Position(column: line.endColumn - Width.of(note), row: line.row)
        surface.draw(note, at: place, style: style, in: line)
    }

    private func drawTitle(_ state: ScreenState, _ surface: inout Surface, _ head: Rect) {
        let style = state.theme[.statusBar]
        surface.fill(head, style: style)
        var title = [" ", state.openTitle.oneLine]
        if let chat = state.openChat {
            if chat.kind == .channel { title.append("  channel") }
            if chat.isMuted { title.append("  muted") }
            if chat.isOnline { title.append("  online") }
        }
        if !state.scheduled.isEmpty { title += ["  ", state.scheduled.words] }
        if let typing = state.typing {
            // In a dialog, the title is already the name of the person who types.
            if case .dialog = state.openChat?.kind {
                title.append("  typing…")
            } else {
                title += ["  ", typing.oneLine, " is typing…"]
            }
        }
        surface.drawLine(title, in: head, style: style)
    }

    /// Draws the completions of the word before the cursor. They appear above the input line.
    private func drawSuggestions(
        _ suggestions: Suggestions,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ area: inout Rect
    ) {
        let count = suggestions.entries.count
        let height = min(Suggestions.shown, count, max(0, area.rows - 3))
        let first = min(max(0, suggestions.selected - height + 1), count - height)
        let box = area.takeBottom(height)
        let shown = suggestions.entries[first..<first + height]
        let widest = shown.map { Width.of($0.text.oneLine + $0.arguments) }.max() ?? 0
        let column = min(widest + 3, box.columns / 2)
        for (index, entry) in shown.enumerated() {
            let line = Rect(column: box.column, row: box.row + index, columns: box.columns, rows: 1)
            let isSelected = first + index == suggestions.selected && !suggestions.isHint
            let mark = isSelected ? "▌" : " "
            let end = surface.drawLine(
                [mark, entry.text.oneLine, entry.arguments],
                in: line,
                style: state.theme[.accent]
            )
            var note = line
            _ = note.takeLeft(max(column, end - line.column + 1))
            if height < count, index == height - 1 {
                let place = " \(suggestions.selected + 1) of \(count)"
                let right = note.takeRight(Width.of(place))
                surface.draw(place, at: right.origin, style: state.theme[.secondary], in: right)
            }
            surface.drawLine(entry.note.oneLine, in: note, style: state.theme[.secondary])
            if isSelected { surface.restyle(line, with: state.theme[.selection]) }
        }
    }
}
