import TambourClient
import TambourProtocol
import TerminalKit

/// Draws a `ScreenState` on a surface.
struct ScreenView {
    let layouts: MessageLayouts

    /// The screen width in columns from which the list and the chat are shown side by side. A
    /// narrower screen shows only one of them.
    private static let narrow = 70
    /// The maximum width of text in columns. Longer lines are hard to read.
    private static let widestText = 84

    private static func listWidth(of columns: Int) -> Int { min(40, max(28, columns / 5)) }

    /// Returns the number of columns of the list and its border on a screen of the given width; 0
    /// if only one pane has room.
    static func listColumns(of columns: Int) -> Int {
        columns >= narrow ? listWidth(of: columns) + 1 : 0
    }

    /// Returns the number of columns for messages on a screen of the given width.
    static func textWidth(of columns: Int) -> Int {
        min(widestText, columns - listColumns(of: columns) - 1)
    }

    /// Returns the number of columns for the text of the input line on a screen of the given width.
    /// The mark before the text uses two further columns.
    static func inputWidth(of columns: Int) -> Int {
        max(1, columns - listColumns(of: columns) - 2)
    }

    /// What the drawn screen shows. The controller uses it for scrolling, for clicks and for
    /// fetching missing messages.
    struct Seen {
        var messages: [MessageID] = []
        var rowsOnScreen = 0
        /// The number of lines of all loaded messages. It limits scrolling.
        var lines = 0
        var paneRows = 0
        /// The scroll position that was drawn. It is limited, so that the pane never shows the
        /// space above the first line.
        var scroll = 0
        /// The number of items for which the panel had room.
        var panelRows = 0
        /// The parts of the screen that react to clicks. If two overlap, the one in front comes
        /// later.
        var targets: [(area: Rect, target: Target)] = []

        /// A part of the screen that reacts to clicks.
        enum Target: Equatable {
            case chat(ChatID)
            case message(HistoryRow.ID)
            /// An item of the panel, by its index.
            case item(Int)
            case input
            case pinned(MessageID)
            /// The title of the list.
            case folders
            /// A part that only hides the parts behind it.
            case nothing
        }

        func target(at position: TerminalKit.Position) -> Target? {
            targets.last { $0.area.contains(position) }?.target
        }
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
            let list = area.takeLeft(Self.listWidth(of: size.columns))
            surface.drawVerticalLine(
                at: Position(column: area.column, row: area.row),
                rows: area.rows,
                style: state.theme[.border]
            )
            _ = area.takeLeft(1)
            drawList(state, &surface, list, &seen)
        } else if state.open == nil {
            // Commands can be typed without an open chat. `/find` starts the first chat.
            drawInput(state, &surface, &area)
            drawList(state, &surface, area, &seen)
            area = Rect(column: 0, row: 0, columns: 0, rows: 0)
        }
        if !area.isEmpty { drawChat(state, &surface, area, &seen) }
        if let frames = state.frames { drawFrames(frames, state, &surface, Rect(size)) }
        if let panel = state.panel {
            drawPanel(panel, state, &surface, Rect(size), &seen)
        }
        if let prompt = state.prompt { drawPrompt(prompt, state, &surface, Rect(size)) }
        if let line = state.help { drawHelp(from: line, state, &surface, Rect(size)) }
        if state.prompt != nil || state.help != nil { seen.targets = [] }
        return (surface, seen)
    }

    // MARK: - The list

    private func drawList(
        _ state: ScreenState,
        _ surface: inout Surface,
        _ area: Rect,
        _ seen: inout Seen
    ) {
        var area = area
        if let folder = state.shownFolder {
            draw(folder, state, &surface, area.takeTop(1), &seen)
        }
        let chats = state.shownChats
        let selected = chats.firstIndex { $0.id == state.listed } ?? 0
        let visible = area.rows / 2
        guard visible > 0 else { return }
        let first = max(0, min(selected - visible / 2, chats.count - visible))
        if chats.isEmpty {
            surface.draw(
                state.shownFolder == nil ? "no chats yet: /find PHONE" : "no chats: /folder-add",
                at: area.origin,
                style: state.theme[.secondary],
                in: area
            )
        }
        for (index, chat) in chats.dropFirst(first).prefix(visible).enumerated() {
            let line = Rect(
                column: area.column,
                row: area.row + index * 2,
                columns: area.columns,
                rows: 2
            )
            draw(chat, isOpen: chat.id == state.listed, state, &surface, line)
            seen.targets.append((line, .chat(chat.id)))
        }
    }

    /// Draws the name of the shown folder as the title of the list. A click on the title opens the
    /// panel of folders.
    private func draw(
        _ folder: ChatFolder,
        _ state: ScreenState,
        _ surface: inout Surface,
        _ head: Rect,
        _ seen: inout Seen
    ) {
        let unread = state.chats(in: folder).loudUnread
        let style = state.theme[.statusBar]
        surface.fill(head, style: style)
        let words = unread > 0 ? "  \(unread) unread" : ""
        surface.drawLine([" ", folder.title.oneLine, words], in: head, style: style)
        seen.targets.append((head, .folders))
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
        var right = chat.unread > 0 ? "\(chat.unread)" : ""
        if chat.isMentioned { right = "@ \(right)" }
        if chat.isMuted { right = right.isEmpty ? "m" : "(\(right))" }
        if chat.failedCount > 0 { right += "!" }
        let end = area.endColumn - Width.of(right) - 1
        let gap = right.isEmpty ? 0 : 1
        let room = max(0, end - area.column - gap)
        let name = Rect(column: area.column, row: area.row, columns: room, rows: 1)
        let isLoud = chat.unread > 0 && !chat.isMuted
        let style = isLoud ? theme[.unread] : isOpen ? theme[.title] : theme[.text]
        surface.drawLine(["\(mark)\(pin)\(online)", chat.title.oneLine], in: name, style: style)
        surface.draw(
            right,
            at: Position(column: end, row: area.row),
            style: isLoud ? theme[.unread] : theme[.secondary],
            in: area
        )
        var text: [String] = []
        if let preview = chat.preview {
            if let sender = preview.sender {
                text = preview.isOwn ? ["you: "] : chat.kind.isShared ? [sender.oneLine, ": "] : []
            }
            text.append(preview.text.oneLine)
        }
        if let draft = chat.draft, !isOpen { text = ["draft: ", draft.oneLine] }
        if chat.isGone { text = ["no longer a member"] }
        let below = Rect(
            column: area.column + 1,
            row: area.row + 1,
            columns: area.columns - 2,
            rows: 1
        )
        surface.drawLine(text, in: below, style: theme[.secondary])
        if isOpen { surface.restyle(area, with: theme[.selection]) }
    }
}

extension ChatSummary.Kind {
    /// Whether messages of several other people appear in the chat.
    var isShared: Bool { self == .group }
}

extension String {
    /// The text with spaces in place of line breaks.
    var oneLine: String { String(map { $0.isNewline ? " " : $0 }) }
}

extension Int {
    /// The number of bytes, abbreviated to a few characters.
    var short: String {
        switch self {
        case ..<1_000: "\(self)B"
        case ..<1_000_000: "\(self / 1_000)k"
        default: "\(self / 1_000_000)M"
        }
    }
}
