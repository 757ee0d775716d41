import TambourProtocol
import Testing

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

@Suite("The screen")
struct ScreenViewTests {
    private let view = ScreenView(layouts: MessageLayouts())

    private func row(
        _ number: Int64,
        _ text: String,
        isOwn: Bool = false,
        state: MessageState = .received,
        isGapAfter: Bool = false,
        senderName: String = "Bob",
        quote: HistoryRow.Quote? = nil
    ) -> HistoryRow {
        HistoryRow(
            id: .message(MessageID(number << 16)),
            message: MessageID(number << 16),
            outgoing: nil,
            sender: UserID(isOwn ? 1 : 2),
            senderName: isOwn ? "Alice" : senderName,
            isOwn: isOwn,
            timeMs: number,
            text: text,
            spans: [],
            quote: quote,
            forwardedFrom: nil,
            attachments: [],
            poll: nil,
            event: nil,
            reactions: [],
            isEdited: false,
            isChanging: false,
            state: state,
            isGapAfter: isGapAfter
        )
    }

    private var state: ScreenState {
        var state = ScreenState()
        state.theme = .none
        state.chats = [
            ChatSummary(
                id: ChatID(3),
                kind: .dialog(partner: UserID(2)),
                title: "Bob",
                unread: 2,
                isMentioned: false,
                isMuted: false,
                isPinned: false,
                isHidden: false,
                isGone: false,
                isOnline: true,
                lastEventMs: 9,
                preview: nil,
                draft: nil,
                failedCount: 0
            )
        ]
        state.open = ChatID(3)
        state.rows = [
            row(1, "old", isGapAfter: true),
            row(400_000, "mine", isOwn: true, state: .read),
            row(800_000, "日本語 שלום e\u{301}"),
            row(1_200_000, "lost", isOwn: true, state: .failed(reason: "too long")),
        ]
        return state
    }

    private func lines(_ state: ScreenState, _ size: Size) -> [String] {
        let surface = view.draw(state, size).surface
        return (0..<size.rows).map { surface.text(ofRow: $0) }
    }

    @Test("shows messages with what became of them, and where some are missing")
    func messages() {
        let lines = lines(state, Size(columns: 80, rows: 24))
        let whole = lines.joined(separator: "\n")
        #expect(whole.contains("messages are missing here"))
        #expect(whole.contains("✓✓"))
        #expect(whole.contains("✗"))
        #expect(whole.contains("too long"))
        #expect(lines[0].contains("●Bob"))
        let order = ["old", "missing here", "mine", "lost"].map { text in
            lines.firstIndex { $0.contains(text) } ?? -1
        }
        #expect(order == order.sorted() && !order.contains(-1))
    }

    @Test("what is written before a chat is open is seen, with the cursor behind it")
    func nothingOpen() throws {
        for size in [Size(columns: 80, rows: 24), Size(columns: 160, rows: 45)] {
            var state = ScreenState()
            state.theme = .none
            state.input.setText("/find +7999")
            let surface = view.draw(state, size).surface
            let cursor = try #require(surface.cursor)
            let line = surface.text(ofRow: cursor.row)
            #expect(line.prefix(cursor.column).hasSuffix("> /find +7999"))
        }
    }

    @Test(
        "the status line names a cause that does not pass with the network",
        arguments: [
            (.refused, "offline, next try at"), (nil, "offline, next try at"),
            (.expired(at: 0), "offline: the server's certificate has expired, next try at"),
            (.wrongName(names: []), "offline: the server's certificate has another name, next"),
            (.notTLS, "offline: no TLS, next try at"),
        ] as [(ConnectionFailure?, String)]
    )
    func offline(failure: ConnectionFailure?, words: String) {
        var state = state
        state.connection = .connecting(attempt: 2)
        state.nextTryMs = 1
        state.connectionFailure = failure
        let size = Size(columns: 120, rows: 24)
        let surface = view.draw(state, size).surface
        #expect((0..<size.rows).contains { surface.text(ofRow: $0).contains(words) })
    }

    @Test("tells which messages are seen, so that their gaps are filled")
    func seen() {
        let seen = view.draw(state, Size(columns: 80, rows: 24)).seen
        #expect(seen.messages == [1, 400_000, 800_000, 1_200_000].map { MessageID($0 << 16) })
        var scrolled = state
        scrolled.scroll = 4
        let above = view.draw(scrolled, Size(columns: 80, rows: 10)).seen
        #expect(above.messages.last != seen.messages.last)
    }

    // MARK: - From right to left

    private func chat(
        _ number: Int64,
        _ title: String,
        _ preview: ChatSummary.Preview,
        isMuted: Bool = false
    ) -> ChatSummary {
        ChatSummary(
            id: ChatID(number),
            kind: .group,
            title: title,
            unread: 12,
            isMentioned: false,
            isMuted: isMuted,
            isPinned: true,
            isHidden: false,
            isGone: false,
            isOnline: false,
            lastEventMs: 9,
            preview: preview,
            draft: nil,
            failedCount: 0
        )
    }

    private func preview(_ sender: String, _ text: String) -> ChatSummary.Preview {
        ChatSummary.Preview(sender: sender, isOwn: false, text: text, state: .received)
    }

    @Test("titles and previews from right to left are read so, and counts stay where they are")
    func listFromRightToLeft() {
        var state = state
        state.chats += [
            chat(4, "משפחה 7", preview("שרה", "hello!")),
            chat(5, "Team שלום", preview("Bob", "שלום (1)!"), isMuted: true),
            chat(6, "المجموعة الطويلة جدا جدا جدا", preview("Bob", "x")),
        ]
        let lines = lines(state, Size(columns: 80, rows: 24)).map { String($0.prefix(28)) }
        func row(_ left: String, _ right: String) -> String {
            left + String(repeating: " ", count: 28 - left.count - right.count) + right
        }
        #expect(lines[2] == row(" ^7 החפשמ", "12 "))
        #expect(lines[3] == row(" הרש: hello!", ""))
        #expect(lines[4] == row(" ^Team םולש", "(12) "))
        #expect(lines[5] == row(" Bob: !(1) םולש", ""))
        #expect(lines[6] == row(" ^… ادج ةليوطلا ةعومجملا", "12 "))
    }

    @Test("names, quotes and the title from right to left turn nothing beside them")
    func chatFromRightToLeft() {
        var state = state
        state.open = ChatID(4)
        state.chats = [chat(4, "משפחה", preview("שרה", "hello!"))]
        state.typing = "שרה"
        let quote = HistoryRow.Quote(
            message: MessageID(1 << 16),
            sender: "שרה",
            text: "what? לא!"
        )
        state.rows = [row(400_000, "answer", senderName: "משה", quote: quote)]
        state.intent = .reply(MessageID(1 << 16), quote: "שלום!")
        state.notice = ("שרה is a contact now", false)
        let lines = lines(state, Size(columns: 80, rows: 24)).map { $0.dropFirst(29) }
        #expect(lines[0].hasPrefix(" החפשמ  הרש is typing…"))
        #expect(lines.contains { $0.hasPrefix(" השמ ") })
        #expect(lines.contains { $0.hasPrefix(" ┃ הרש: what? אל! ") })
        #expect(lines.contains { $0.hasPrefix("┃ !םולש ") })
        let last = self.lines(state, Size(columns: 80, rows: 24))[23]
        #expect(last.hasPrefix(" הרש is a contact now "))
    }

    @Test("hits are marked where they stand, and a question's cursor is where text goes on")
    func panelFromRightToLeft() throws {
        var state = state
        state.theme = .dark
        var panel = Panel(kind: .goTo, title: "Go to", query: LineEditor(), keys: "")
        _ = panel.query?.paste("של")
        panel.items = [
            Panel.Item(title: "chosen", target: .none),
            Panel.Item(
                title: "שלום",
                detail: "מה? 5",
                right: "12:30",
                target: .chat(ChatID(3)),
                hits: [0..<2]
            ),
        ]
        state.panel = panel
        state.focus = .panel
        let surface = view.draw(state, Size(columns: 80, rows: 24)).surface
        let rows = (0..<24).map { surface.text(ofRow: $0) }
        let row = try #require(rows.firstIndex { $0.contains(" םולש ") })
        #expect(rows[row].contains(" 12:30 │"))
        #expect(rows[row + 1].contains("   5 ?המ "))
        let first = rows[row].prefix { $0 != "ם" }.count
        let accent = (first..<first + 4).map { column in
            surface[column, row].style == surface[first + 3, row].style
        }
        #expect(accent == [false, false, true, true])
        let query = row - 3
        // The input line is right-to-left. Its text begins at the right border, and the cursor is
        // to the left of the last letter.
        #expect(rows[query].contains(" לש│"))
        let end = rows[query].prefix { $0 != "ל" }.count
        #expect(surface.cursor == Position(column: end - 1, row: query))
    }

    @Test("a line that is edited keeps its cursor in sight")
    func editedLine() {
        var editor = LineEditor()
        _ = editor.paste("abcdefghij\tkl")
        let line = Rect(column: 2, row: 0, columns: 10, rows: 1)
        func drawn() -> Surface {
            var surface = Surface(size: Size(columns: 14, rows: 1))
            view.drawLine(editor, prompt: "> ", isFocused: true, .none, &surface, line)
            return surface
        }
        #expect(drawn().text(ofRow: 0) == "  > hij kl    ")
        #expect(drawn().cursor?.column == 10)
        for _ in 0..<8 { _ = editor.handle(KeyPress(.left)) }
        #expect(drawn().text(ofRow: 0) == "  > abcdefg   ")
        #expect(drawn().cursor?.column == 9)
    }

    @Test("draws in any size, with everything open")
    func sizes() {
        var state = state
        state.help = 0
        var panel = Panel(kind: .goTo, title: "Go to", query: LineEditor(), keys: "Alt-m mute")
        panel.items = [
            Panel.Item(title: "Bob", detail: "hello", right: "2", target: .chat(ChatID(3)))
        ]
        state.panel = panel
        state.prompt = Prompt(question: "Sure?") { _, _ in }
        state.suggestions = Suggestions(for: LineEditor(), names: [])
        state.frames = []
        state.typing = "Bob"
        state.intent = .reply(MessageID(1 << 16), quote: "Bob: old")
        _ = state.input.paste(String(repeating: "a long line\n", count: 20))
        for columns in stride(from: 1, through: 200, by: 7) {
            for rows in 1...30 { _ = lines(state, Size(columns: columns, rows: rows)) }
        }
    }
}
