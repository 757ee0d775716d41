import TambourClient
import TambourProtocol

/// All that the screen shows; `ScreenView` draws it, `ScreenController` changes it.
struct ScreenState {
    /// Who gets the keys.
    enum Focus: Equatable {
        case input
        /// A message is chosen, to do something with it.
        case messages
        case panel
        case prompt
    }

    /// What the next line that is sent is meant for.
    enum Intent: Equatable {
        case new
        case reply(MessageID, quote: String)
        /// A message that is sent, or still waits.
        case edit(HistoryRow.ID)

        var isEdit: Bool {
            if case .edit = self { true } else { false }
        }
    }

    var chats: [ChatSummary] = []
    var open: ChatID?
    /// What a chat is called that is not in the list, as one in which nothing was said yet.
    var openName: String?
    /// What is read of the open chat, oldest first.
    var rows: [HistoryRow] = []
    var isGapBefore = false
    var isStart = false
    var isEnd = true
    /// Up to when it was read when it was opened, Unix milliseconds; nil when nothing was unread.
    var newAfterMs: Int64?
    /// Lines between the bottom of the pane and the end of `rows`; 0 follows what is new.
    var scroll = 0
    var selected: HistoryRow.ID?
    /// Folded beginnings of words that a search looked for, to be marked in messages.
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
    /// Something to tell the person, until the next key.
    var notice: (text: String, isError: Bool)?
    /// The first line of the help that is shown; nil while it is not.
    var help: Int?
    /// The packets of the last minutes, newest last; nil while nobody wants to see them.
    var frames: [FrameTap]?
    var theme = Theme.dark
    var keys = KeyBindings()

    var openChat: ChatSummary? { chats.first { $0.id == open } }

    /// Whether the open chat is one that the account is not in any more.
    var isOpenGone: Bool { openChat?.isGone == true }

    /// What Enter makes of a line that is longer than a message; nil for one that is not, and for a command.
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

/// A question with one line, or yes and no, for an answer.
struct Prompt {
    let question: String
    var editor = LineEditor(limit: 4_000)
    /// A single key answers: y, or anything else for no.
    var isYesOrNo = false
    /// What an empty answer means; nil when there has to be one.
    var emptyMeans: String?
    /// Who gets the keys when it is closed.
    var focusBefore = ScreenState.Focus.input
    let answer: (ScreenController, String) -> Void
}
