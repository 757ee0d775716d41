import TambourClient
import TambourProtocol
import TerminalKit

/// Draws the parts around and over the chat: status, panels, questions, help and packets.
extension ScreenView {
    private static let messageHints: [(KeyAction, String)] = [
        (.reply, "reply"), (.vote, "vote"), (.edit, "edit"), (.delete, "delete"),
        (.forwardMessage, "forward"), (.react, "react"), (.quoted, "quote"), (.thread, "thread"),
        (.copy, "copy"),
    ]

    func drawStatus(_ state: ScreenState, _ surface: inout Surface, _ area: Rect) {
        let theme = state.theme
        surface.fill(area, style: theme[.statusBar])
        if let notice = state.notice {
            let style = notice.isError ? theme[.error] : theme[.statusBar]
            surface.drawLine(
                " \(notice.text.oneLine)",
                in: area,
                direction: .leftToRight,
                style: style
            )
            return
        }
        if state.focus == .messages {
            let isPost = state.openChat?.kind == .channel
            let row = state.selectedRow
            let hints = Self.messageHints.map { action, word in
                switch action {
                case .vote where row?.poll == nil, .edit where row?.isOwn == false,
                    .quoted where row?.quote == nil:
                    ""
                // Readers of a channel cannot reply to its posts, but they can comment on them.
                case .thread where isPost: state.keys.hint(.comments, "comments", after: "  ")
                default: state.keys.hint(action, word, after: "  ")
                }
            }
            surface.draw(
                hints.joined() + "Esc back",
                at: area.origin,
                style: theme[.statusBar],
                in: area
            )
            return
        }
        let connection =
            switch state.connection {
            case .signedOut: "signed out, /login"
            case .stopped: "offline"
            case .elsewhere: "connected by another tambour"
            case .connecting(let attempt):
                if let next = state.nextTryMs {
                    "\(state.offlineWords), next try at \(clock(next, "%H:%M:%S"))"
                } else {
                    attempt > 1 ? "offline, connecting" : "connecting"
                }
            case .syncing: "updating"
            case .online: "online"
            }
        var parts = [connection]
        if let hint = state.lengthHint { parts.append(hint) }
        if state.queueLength > 0 { parts.append("\(state.queueLength) waiting") }
        let unread = state.chats.loudUnread
        if unread > 0 { parts.append("\(unread) unread") }
        if state.scroll > 0 { parts.append("↓ more below") }
        surface.draw(
            " " + parts.joined(separator: " · "),
            at: area.origin,
            style: theme[.statusBar],
            in: area
        )
        let hint = state.keys.hint(.help, "keys")
        let bytes = "↑\(state.traffic.sent.short) ↓\(state.traffic.received.short)  \(hint) "
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

    // MARK: - Panels

    func drawPanel(
        _ panel: Panel,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ whole: Rect,
        _ seen: inout Seen
    ) {
        // On a narrow screen, a large panel fills the whole width, because a narrow strip of the
        // screen beside it would confuse the user.
        let margin = whole.columns < 120 && panel.isLarge ? 0 : 4
        let columns = max(0, min(panel.isLarge ? 100 : 54, whole.columns - margin))
        let rows = max(0, min(panel.isLarge ? 40 : 16, whole.rows - (margin == 0 ? 1 : 3)))
        let box = Rect(
            column: (whole.columns - columns) / 2,
            row: (whole.rows - 1 - rows) / (panel.isLarge ? 2 : 3),
            columns: columns,
            rows: rows
        )
        seen.targets = [(whole, .nothing)]
        guard box.columns >= 8, box.rows >= 3 else { return }
        let theme = state.theme
        surface.fill(box)
        let title = panel.title.oneLine
        surface.drawBox(box, title: title, style: theme[.border], titleStyle: theme[.title])
        drawKeys(of: panel, theme, &surface, box)
        var inner = box.inside
        surface.cursor = nil
        if let query = panel.query {
            let line = inner.takeTop(1)
            drawLine(query, prompt: "> ", isFocused: state.focus == .panel, theme, &surface, line)
        }
        if !panel.remark.isEmpty, inner.rows > 1 {
            let line = inner.takeTop(1)
            surface.draw(
                Width.shortened(panel.remark.oneLine, to: line.columns - 1),
                at: Position(column: line.column + 1, row: line.row),
                style: theme[.secondary],
                in: line
            )
        }
        let height = panel.items.contains { $0.detail != nil } ? 2 : 1
        let visible = inner.rows / height
        guard visible > 0 else { return }
        let first = max(0, min(panel.selected - visible / 2, panel.items.count - visible))
        for (index, item) in panel.items.dropFirst(first).prefix(visible).enumerated() {
            let area = Rect(
                column: inner.column,
                row: inner.row + index * height,
                columns: inner.columns,
                rows: height
            )
            draw(item, isSelected: first + index == panel.selected, theme, &surface, area)
            seen.targets.append((area, .item(first + index)))
        }
        seen.panelRows = visible
    }

    /// Draws the panel's keys in its lower border.
    private func drawKeys(
        of panel: Panel,
        _ theme: Theme,
        _ surface: inout Surface,
        _ box: Rect
    ) {
        guard !panel.keys.isEmpty else { return }
        let keys = " \(Width.shortened(panel.keys, to: box.columns - 6)) "
        let place = Position(column: box.column + 2, row: box.endRow - 1)
        surface.draw(keys, at: place, style: theme[.secondary], in: box)
    }

    private func draw(
        _ item: Panel.Item,
        isSelected: Bool,
        _ theme: Theme,
        _ surface: inout Surface,
        _ whole: Rect
    ) {
        // Limits the indentation, so that most of the line remains for the text.
        var area = whole
        let indent = area.takeLeft(max(0, min(item.indent, whole.columns / 3)))
        if isSelected { surface.restyle(indent, with: theme[.selection]) }
        let first = Rect(column: area.column, row: area.row, columns: area.columns, rows: 1)
        let end = first.endColumn - Width.of(item.right.oneLine) - 1
        let left = Rect(
            column: first.column,
            row: first.row,
            columns: max(0, end - first.column - 1),
            rows: 1
        )
        surface.draw(isSelected ? "▌" : " ", at: left.origin, style: theme[.accent], in: left)
        let title = Rect(
            column: left.column + 1,
            row: left.row,
            columns: left.columns - 1,
            rows: 1
        )
        surface.drawLine([item.title.oneLine], in: title) { index in
            item.hits.contains { $0.contains(index) } ? theme[.accent] : theme[.text]
        }
        surface.draw(
            item.right.oneLine,
            at: Position(column: end, row: first.row),
            style: theme[.secondary],
            in: first
        )
        if let detail = item.detail, area.rows > 1 {
            let below = Rect(
                column: area.column + 3,
                row: area.row + 1,
                columns: area.columns - 4,
                rows: 1
            )
            let style = item.isError ? theme[.error] : theme[.secondary]
            surface.drawLine(detail.oneLine, in: below, style: style)
        }
        if isSelected { surface.restyle(area, with: theme[.selection]) }
    }

    /// Draws a line editor in one row. If the text is too long, the text directly before the cursor
    /// is visible.
    func drawLine(
        _ editor: LineEditor,
        prompt: String,
        isFocused: Bool,
        _ theme: Theme,
        _ surface: inout Surface,
        _ line: Rect
    ) {
        let start = surface.draw(prompt, at: line.origin, style: theme[.accent], in: line)
        let room = max(1, line.endColumn - start - 1)
        let clusters = editor.clusters.map { $0.isNewline || $0 == "\t" ? " " : $0 }
        var used = 0
        let before = clusters[..<editor.cursor].reversed().prefix { cluster in
            used += Width.of(cluster)
            return used < room
        }
        used = before.reduce(0) { $0 + Width.of($1) }
        let after = clusters[editor.cursor...].prefix { cluster in
            used += Width.of(cluster)
            return used <= room
        }
        // The text is short enough for one line. The additional column is for the cursor.
        let layout = TextLayout(
            String(before.reversed()) + String(after),
            options: TextLayout.Options(width: room + 1, hasCursor: true)
        )
        let place = Position(column: start, row: line.row)
        layout.draw(on: &surface, at: place, rows: 0..<1, theme: theme, in: line)
        let cursor = start + layout.position(of: before.count).column
        if isFocused { surface.cursor = Position(column: cursor, row: line.row) }
    }

    func drawPrompt(
        _ prompt: Prompt,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ whole: Rect
    ) {
        let columns = min(64, max(0, whole.columns - 2))
        let rows = prompt.isYesOrNo ? 3 : 4
        guard whole.rows > rows, columns >= 10 else { return }
        let box = Rect(
            column: (whole.columns - columns) / 2,
            row: (whole.rows - rows) / 2,
            columns: columns,
            rows: rows
        )
        surface.fill(box)
        surface.drawBox(box, style: state.theme[.accent])
        var inner = box.inside
        let question = inner.takeTop(1)
        surface.drawLine(
            " \(prompt.question.oneLine)",
            in: Rect(
                column: question.column,
                row: question.row,
                columns: question.columns - 1,
                rows: 1
            ),
            direction: .leftToRight,
            style: state.theme[.title]
        )
        surface.cursor = nil
        if !prompt.isYesOrNo {
            let editor = prompt.isSecret ? prompt.editor.hidden : prompt.editor
            drawLine(editor, prompt: " > ", isFocused: true, state.theme, &surface, inner)
        }
    }

    func drawHelp(
        from first: Int,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ whole: Rect
    ) {
        let columns = whole.columns < 90 ? whole.columns : 78
        let lines = Help.lines(state.keys)
        let box = Rect(
            column: (whole.columns - columns) / 2,
            row: max(0, (whole.rows - 1 - lines.count - 2) / 2),
            columns: columns,
            rows: min(lines.count + 2, whole.rows - 1)
        )
        surface.fill(box)
        let isWhole = box.inside.rows >= lines.count
        surface.drawBox(
            box,
            title: isWhole ? "Help" : "Help: Up, Down, PgUp, PgDn; Esc closes",
            style: state.theme[.border],
            titleStyle: state.theme[.title]
        )
        for (index, line) in lines.dropFirst(first).prefix(box.inside.rows).enumerated() {
            surface.draw(
                line,
                at: Position(column: box.column + 2, row: box.row + 1 + index),
                style: line.hasPrefix(" ") ? state.theme[.text] : state.theme[.title],
                in: box.inside
            )
        }
        surface.cursor = nil
    }

    func drawFrames(
        _ frames: [FrameTap],
        _ state: ScreenState,
        _ surface: inout Surface,
        _ whole: Rect
    ) {
        // Draws the packets at the top right, because the input line is at the bottom and the list
        // is at the left.
        var area = whole
        _ = area.takeLeft(Self.listColumns(of: whole.columns))
        let pane = area.takeTop(min(12, whole.rows / 2))
        surface.fill(pane)
        surface.drawBox(pane, title: "Packets: Esc closes", style: state.theme[.border])
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
