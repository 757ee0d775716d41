import TambourClient
import TambourProtocol
import TerminalKit

/// Everything that the screen shows; `ScreenView` draws it, `ScreenController` changes it.
struct ScreenState {
    /// What receives the keys.
    enum Focus: Equatable {
        case input
        /// A message is selected.
        case messages
        case panel
        case prompt
    }

    /// The meaning of the next line that is sent.
    enum Intent: Equatable {
        case new
        case reply(MessageID, quote: String)
        /// Edits a message, sent or still waiting.
        case edit(HistoryRow.ID)

        var isEdit: Bool {
            if case .edit = self { true } else { false }
        }
    }

    var chats: [ChatSummary] = []
    var open: ChatID?
    /// The title of an open chat that is not in the list, for example one without messages.
    var openName: String?
    /// The loaded messages of the open chat, oldest first.
    var rows: [HistoryRow] = []
    var isGapBefore = false
    var isStart = false
    var isEnd = true
    /// The read position when the chat was opened, Unix milliseconds; nil when nothing was unread.
    var newAfterMs: Int64?
    /// Lines between the bottom of the pane and the end of `rows`; 0 follows new messages.
    var scroll = 0
    var selected: HistoryRow.ID?
    /// Folded beginnings of words that a search looked for, to highlight in messages.
    var words: [String] = []
    var focus = Focus.input
    var intent = Intent.new
    var input = LineEditor()
    var suggestions: Suggestions?
    var panel: Panel?
    var prompt: Prompt?
    var connection = ConnectionState.stopped
    var queueLength = 0
    var traffic = (sent: 0, received: 0)
    var typing: String?
    /// A message to the person, shown until the next key.
    var notice: (text: String, isError: Bool)?
    /// The first visible line of the help; nil while it is closed.
    var help: Int?
    /// The packets of the last minutes, newest last; nil while the packet view is closed.
    var frames: [FrameTap]?
    var theme = Theme.dark
    var keys = KeyBindings()

    var openChat: ChatSummary? { chats.first { $0.id == open } }

    /// Whether the account is no longer in the open chat.
    var isOpenGone: Bool { openChat?.isGone == true }

    /// What Enter does with a line longer than a message; nil for shorter lines and commands.
    var lengthHint: String? {
        let line = input.text
        guard !Writing.isCommand(line) else { return nil }
        let text = Writing.message(ofLine: line).trimmingNewlines
        if Client.fitsMessage(text) { return nil }
        if intent.isEdit {
            return "\(text.utf16.count - Client.maxMessageUnits) characters too many"
        }
        return "Enter sends \(Client.parts(of: text).count) messages"
    }

    var openTitle: String { openChat?.title ?? openName ?? "" }

    var selectedRow: HistoryRow? { rows.first { $0.id == selected } }
}

/// A question that takes a line of text, or yes or no.
struct Prompt {
    let question: String
    var editor = LineEditor(limit: 4_000)
    /// Whether a single key answers: y for yes, anything else for no.
    var isYesOrNo = false
    /// The meaning of an empty answer; nil when an answer is required.
    var emptyMeans: String?
    /// The focus to restore when the prompt closes.
    var focusBefore = ScreenState.Focus.input
    let answer: (ScreenController, String) -> Void
}
