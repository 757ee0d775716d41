import TambourClient
import TambourProtocol

/// All that the screen shows; `ScreenView` draws it, `ScreenController` changes it.
struct ScreenState {
    /// Who gets the keys.
    enum Focus: Equatable {
        case input
        /// A message is chosen, to do something with it.
        case messages
        case switcher
    }

    /// What the next line that is sent is meant for.
    enum Intent: Equatable {
        case new
        case reply(MessageID, quote: String)
        case edit(MessageID)
    }

    /// The quick switcher.
    struct Switcher {
        struct Entry {
            let chat: ChatID
            let title: String
            let unread: Int
            let ranges: [Range<Int>]
        }

        var query = LineEditor(limit: 100)
        var entries: [Entry] = []
        var selected = 0
    }

    var chats: [ChatSummary] = []
    var open: ChatID?
    /// What is read of the open chat, oldest first.
    var rows: [HistoryRow] = []
    var isGapBefore = false
    var isStart = false
    var isEnd = true
    /// Lines between the bottom of the pane and the end of `rows`; 0 follows what is new.
    var scroll = 0
    var selected: HistoryRow.ID?
    var focus = Focus.input
    var intent = Intent.new
    var input = LineEditor()
    var switcher = Switcher()
    var connection = ConnectionState.stopped
    var queueLength = 0
    var traffic = (sent: 0, received: 0)
    var typing: String?
    /// Something to tell the person, until the next key.
    var notice: (text: String, isError: Bool)?
    var isHelpShown = false
    /// The packets of the last minutes, newest last; nil while nobody wants to see them.
    var frames: [FrameTap]?
    var theme = Theme.dark

    var openChat: ChatSummary? { chats.first { $0.id == open } }

    var selectedRow: HistoryRow? { rows.first { $0.id == selected } }
}
