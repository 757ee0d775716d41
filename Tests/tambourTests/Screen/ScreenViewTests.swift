import TambourProtocol
import Testing

@testable import TambourClient
@testable import tambour

@Suite("The screen")
struct ScreenViewTests {
    private let view = ScreenView(layouts: MessageLayouts())

    private func row(
        _ number: Int64,
        _ text: String,
        isOwn: Bool = false,
        state: MessageState = .received,
        isGapAfter: Bool = false
    ) -> HistoryRow {
        HistoryRow(
            id: .message(MessageID(number << 16)),
            message: MessageID(number << 16),
            outgoing: nil,
            sender: UserID(isOwn ? 1 : 2),
            senderName: isOwn ? "Alice" : "Bob",
            isOwn: isOwn,
            timeMs: number,
            text: text,
            spans: [],
            quote: nil,
            forwardedFrom: nil,
            attachments: [],
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
                isMuted: false,
                isPinned: false,
                isHidden: false,
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

    @Test("tells which messages are seen, so that their gaps are filled")
    func seen() {
        let seen = view.draw(state, Size(columns: 80, rows: 24)).seen
        #expect(seen.messages == [1, 400_000, 800_000, 1_200_000].map { MessageID($0 << 16) })
        var scrolled = state
        scrolled.scroll = 4
        let above = view.draw(scrolled, Size(columns: 80, rows: 10)).seen
        #expect(above.messages.last != seen.messages.last)
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
