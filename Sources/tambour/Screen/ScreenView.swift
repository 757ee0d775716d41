import TambourClient
import TambourProtocol

/// Draws the state of the screen.
struct ScreenView {
    let layouts: MessageLayouts

    private static let listWidth = 28
    /// Below this many columns there is room for one pane only.
    private static let narrow = 70
    private static let inputRows = 6

    /// Which messages the drawn screen showed, for whoever fetches what is missing among them.
    struct Seen {
        var messages: [MessageID] = []
        var rowsOnScreen = 0
        /// The lines of all that is held, to bound scrolling.
        var lines = 0
        var paneRows = 0
    }

    func draw(_ state: ScreenState, _ size: Size) -> (surface: Surface, seen: Seen) {
        var surface = Surface(size: size)
        var seen = Seen()
        guard size.columns >= 20, size.rows >= 5 else {
            surface.draw("too small", at: Position(column: 0, row: 0))
            return (surface, seen)
        }
        var area = Rect(size)
        drawStatus(state, &surface, area.takeBottom(1))
        if size.columns >= Self.narrow {
            let list = area.takeLeft(Self.listWidth)
            surface.drawVerticalLine(
                at: Position(column: area.column, row: area.row),
                rows: area.rows,
                style: state.theme[.border]
            )
            _ = area.takeLeft(1)
            drawList(state, &surface, list)
        } else if state.open == nil {
            drawList(state, &surface, area)
            area = Rect(column: 0, row: 0, columns: 0, rows: 0)
        }
        if !area.isEmpty { seen = drawChat(state, &surface, area) }
        if state.focus == .switcher { drawSwitcher(state, &surface, Rect(size)) }
        if state.isHelpShown { drawHelp(state, &surface, Rect(size)) }
        if let frames = state.frames { drawFrames(frames, state, &surface, Rect(size)) }
        return (surface, seen)
    }

    // MARK: - The list

    private func drawList(_ state: ScreenState, _ surface: inout Surface, _ area: Rect) {
        let selected = state.chats.firstIndex { $0.id == state.open } ?? 0
        let visible = area.rows / 2
        guard visible > 0 else { return }
        let first = max(0, min(selected - visible / 2, state.chats.count - visible))
        if state.chats.isEmpty {
            surface.draw(
                "no chats yet: /find PHONE",
                at: area.origin,
                style: state.theme[.secondary],
                in: area
            )
        }
        for (index, chat) in state.chats.dropFirst(first).prefix(visible).enumerated() {
            let line = Rect(
                column: area.column,
                row: area.row + index * 2,
                columns: area.columns,
                rows: 2
            )
            draw(chat, isOpen: chat.id == state.open, state, &surface, line)
        }
    }

    private func draw(
        _ chat: ChatSummary,
        isOpen: Bool,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ area: Rect
    ) {
        let theme = state.theme
        let mark = isOpen ? "▌" : " "
        let pin = chat.isPinned ? "^" : ""
        let online = chat.isOnline ? "●" : ""
        let title = "\(mark)\(pin)\(online)\(chat.title)"
        var right = chat.unread > 0 ? "\(chat.unread)" : ""
        if chat.isMuted { right = right.isEmpty ? "m" : "(\(right))" }
        if chat.failedCount > 0 { right += "!" }
        let end = area.endColumn - Width.of(right) - 1
        let name = Rect(column: area.column, row: area.row, columns: end - area.column, rows: 1)
        let isLoud = chat.unread > 0 && !chat.isMuted
        let style = isLoud ? theme[.unread] : isOpen ? theme[.title] : theme[.text]
        surface.draw(title, at: name.origin, style: style, in: name)
        surface.draw(
            right,
            at: Position(column: end, row: area.row),
            style: isLoud ? theme[.unread] : theme[.secondary],
            in: area
        )
        var text =
            chat.preview.map { preview in
                let who =
                    preview.isOwn ? "you: " : chat.kind.isShared ? "\(preview.sender ?? ""): " : ""
                return preview.sender == nil ? preview.text : who + preview.text
            } ?? ""
        if let draft = chat.draft, !isOpen { text = "draft: \(draft)" }
        let below = Rect(
            column: area.column + 1,
            row: area.row + 1,
            columns: area.columns - 2,
            rows: 1
        )
        surface.draw(
            Width.shortened(text.oneLine, to: below.columns),
            at: below.origin,
            style: theme[.secondary],
            in: below
        )
        if isOpen { surface.restyle(area, with: theme[.selection]) }
    }

    // MARK: - The chat

    private func drawChat(_ state: ScreenState, _ surface: inout Surface, _ whole: Rect) -> Seen {
        var area = whole
        guard let chat = state.openChat else {
            surface.draw(
                "Alt-g goes to a chat, F1 shows all keys.",
                at: Position(column: area.column + 2, row: area.row + 1),
                style: state.theme[.secondary],
                in: area
            )
            return Seen()
        }
        let head = area.takeTop(1)
        var title = " \(chat.title)"
        if chat.isOnline { title += "  online" }
        if let typing = state.typing { title += "  \(typing) is typing…" }
        surface.fill(head, style: state.theme[.statusBar])
        surface.draw(title, at: head.origin, style: state.theme[.statusBar], in: head)
        drawInput(state, &surface, &area)
        return drawMessages(state, &surface, area)
    }

    private func drawInput(_ state: ScreenState, _ surface: inout Surface, _ area: inout Rect) {
        let prompt =
            switch state.intent {
            case .new: "> "
            case .reply: "↩ "
            case .edit: "✎ "
            }
        var editor = state.input
        editor.width = max(1, area.columns - 2)
        let layout = editor.layout()
        let cursor = layout.position(of: editor.cursor)
        let height = min(Self.inputRows, layout.lines.count)
        var box = area.takeBottom(height)
        if case .reply(_, let quote) = state.intent {
            let above = area.takeBottom(1)
            surface.draw(
                Width.shortened("┃ \(quote.oneLine)", to: above.columns),
                at: above.origin,
                style: state.theme[.quote],
                in: above
            )
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

    private enum Line {
        case message(HistoryRow, MessageLayouts.Block, line: Int)
        case gap
        case day(String)
    }

    private func lines(of state: ScreenState, _ width: Int) -> [Line] {
        var lines: [Line] = []
        if state.isGapBefore { lines.append(.gap) }
        var last: HistoryRow?
        for row in state.rows {
            let day = String(clock(row.timeMs).prefix(10))
            let isNewDay = last.map { String(clock($0.timeMs).prefix(10)) != day } ?? true
            if isNewDay { lines.append(.day(day)) }
            let goesOn =
                !isNewDay && last?.sender == row.sender && last?.event == nil && row.quote == nil
                && row.forwardedFrom == nil && row.timeMs - (last?.timeMs ?? 0) < 300_000
            let block = layouts.block(of: row, width: width, hasHeader: !goesOn)
            for line in 0..<block.height { lines.append(.message(row, block, line: line)) }
            if row.isGapAfter { lines.append(.gap) }
            last = row
        }
        return lines
    }

    private func drawMessages(
        _ state: ScreenState,
        _ surface: inout Surface,
        _ area: Rect
    ) -> Seen {
        var seen = Seen()
        seen.paneRows = area.rows
        let lines = lines(of: state, area.columns - 1)
        seen.lines = lines.count
        let end = max(0, lines.count - state.scroll)
        let shown = lines[max(0, end - area.rows)..<end]
        for (index, line) in shown.enumerated() {
            let row = area.endRow - shown.count + index
            let place = Rect(column: area.column, row: row, columns: area.columns, rows: 1)
            switch line {
            case .gap:
                surface.drawHorizontalLine(
                    at: place.origin,
                    columns: place.columns,
                    style: state.theme[.warning]
                )
                surface.draw(
                    " messages are missing here ",
                    at: Position(column: place.column + 3, row: row),
                    style: state.theme[.warning],
                    in: place
                )
            case .day(let day):
                surface.draw(
                    day,
                    at: Position(column: place.column + max(0, place.columns / 2 - 5), row: row),
                    style: state.theme[.secondary],
                    in: place
                )
            case .message(let message, let block, let line):
                draw(message, block, line, state, &surface, place)
                if let id = message.message, seen.messages.last != id { seen.messages.append(id) }
            }
        }
        seen.rowsOnScreen = max(area.rows, 1)
        return seen
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
                surface.draw(header.sender.oneLine, at: left.origin, style: person, in: left)
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
                surface.draw(
                    Width.shortened(quote.oneLine, to: inner.columns),
                    at: inner.origin,
                    style: theme[.quote],
                    in: inner
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
                return
            }
        }
        var style = theme[.accent]
        if case .failed = row.state { style = theme[.error] }
        surface.draw(block.footer, at: inner.origin, style: style, in: inner)
    }

    // MARK: - Around it

    private func drawStatus(_ state: ScreenState, _ surface: inout Surface, _ area: Rect) {
        let theme = state.theme
        surface.fill(area, style: theme[.statusBar])
        if let notice = state.notice {
            let style = notice.isError ? theme[.error] : theme[.statusBar]
            surface.draw(" \(notice.text.oneLine)", at: area.origin, style: style, in: area)
            return
        }
        let connection =
            switch state.connection {
            case .signedOut: "signed out"
            case .stopped: "offline"
            case .elsewhere: "connected by another tambour"
            case .connecting(let attempt):
                attempt > 1 ? "offline, trying (\(attempt))" : "connecting"
            case .syncing: "updating"
            case .online: "online"
            }
        var parts = [connection]
        if state.queueLength > 0 { parts.append("\(state.queueLength) waiting") }
        let unread = state.chats.filter { !$0.isMuted }.reduce(0) { $0 + $1.unread }
        if unread > 0 { parts.append("\(unread) unread") }
        if state.scroll > 0 { parts.append("↓ more below") }
        surface.draw(
            " " + parts.joined(separator: " · "),
            at: area.origin,
            style: theme[.statusBar],
            in: area
        )
        let bytes = "↑\(state.traffic.sent.short) ↓\(state.traffic.received.short)  F1 keys "
        let column = area.endColumn - Width.of(bytes)
        if column > area.column + 30 {
            surface.draw(
                bytes,
                at: Position(column: column, row: area.row),
                style: theme[.statusBar],
                in: area
            )
        }
    }

    private func drawSwitcher(_ state: ScreenState, _ surface: inout Surface, _ whole: Rect) {
        let columns = max(0, min(50, whole.columns - 4))
        let rows = max(0, min(14, whole.rows - 4))
        let box = Rect(
            column: (whole.columns - columns) / 2,
            row: max(1, (whole.rows - rows) / 3),
            columns: columns,
            rows: rows
        )
        surface.fill(box)
        surface.drawBox(box, title: "Go to", style: state.theme[.border])
        let inner = box.inside
        let query = state.switcher.query
        surface.draw("> \(query.text)", at: inner.origin, in: inner)
        surface.cursor = Position(column: inner.column + 2 + Width.of(query.text), row: inner.row)
        for (index, entry) in state.switcher.entries.prefix(max(0, inner.rows - 1)).enumerated() {
            let line = Rect(
                column: inner.column,
                row: inner.row + 1 + index,
                columns: inner.columns,
                rows: 1
            )
            let isSelected = index == state.switcher.selected
            let mark = isSelected ? "▌" : " "
            let unread = entry.unread > 0 ? "  \(entry.unread)" : ""
            surface.draw("\(mark)\(entry.title)\(unread)", at: line.origin, in: line)
            if isSelected { surface.restyle(line, with: state.theme[.selection]) }
        }
    }

    private func drawHelp(_ state: ScreenState, _ surface: inout Surface, _ whole: Rect) {
        let lines = ScreenController.help
        let box = Rect(
            column: max(0, (whole.columns - 74) / 2),
            row: max(0, (whole.rows - lines.count - 2) / 2),
            columns: min(74, whole.columns),
            rows: min(lines.count + 2, whole.rows)
        )
        surface.fill(box)
        surface.drawBox(box, title: "Keys and commands", style: state.theme[.border])
        for (index, line) in lines.prefix(box.inside.rows).enumerated() {
            surface.draw(
                line,
                at: Position(column: box.column + 2, row: box.row + 1 + index),
                in: box.inside
            )
        }
        surface.cursor = nil
    }

    private func drawFrames(
        _ frames: [FrameTap],
        _ state: ScreenState,
        _ surface: inout Surface,
        _ whole: Rect
    ) {
        let rows = min(12, whole.rows / 2)
        var area = whole
        _ = area.takeBottom(1)
        let pane = area.takeBottom(rows)
        surface.fill(pane)
        surface.drawBox(pane, title: "Packets", style: state.theme[.border])
        let inner = pane.inside
        for (index, frame) in frames.suffix(inner.rows).enumerated() {
            let arrow = frame.direction == .sent ? "→" : "←"
            let time = frame.roundTrip.map { "  \(Int($0 / .milliseconds(1))) ms" } ?? ""
            surface.draw(
                "\(arrow) \(frame.kind) \(frame.opcode) #\(frame.sequence)  \(frame.bytes) B\(time)",
                at: Position(column: inner.column, row: inner.row + index),
                in: inner
            )
        }
    }
}

extension ChatSummary.Kind {
    /// Whether several people write there.
    var isShared: Bool { self == .group }
}

extension String {
    /// Line breaks as spaces.
    var oneLine: String { String(map { $0.isNewline ? " " : $0 }) }
}

extension Int {
    /// A number of bytes in few characters.
    var short: String {
        switch self {
        case ..<1_000: "\(self)B"
        case ..<1_000_000: "\(self / 1_000)k"
        default: "\(self / 1_000_000)M"
        }
    }
}
