import TambourClient
import TambourProtocol
import TerminalKit

/// The complete state of the screen. `ScreenView` draws it, `ScreenController` changes it.
struct ScreenState {
    /// The part of the screen that receives the keys.
    enum Focus: Equatable {
        case input
        /// A message is selected.
        case messages
        case panel
        case prompt
    }

    /// What the screen does with the next line that the user submits.
    enum Intent: Equatable {
        case new
        case reply(MessageID, quote: String)
        /// Edits a sent or queued message.
        case edit(HistoryRow.ID)
        /// Edits a scheduled message.
        case editScheduled(ScheduledMessage.ID)

        var isEdit: Bool {
            switch self {
            case .edit, .editScheduled: true
            case .new, .reply: false
            }
        }
    }

    var chats: [ChatSummary] = []
    /// The folders in their order.
    var folders: [ChatFolder] = []
    /// The folder that the list shows; nil for all chats.
    var folder: ChatFolder.ID?
    /// The contacts. They are read only if at least one folder contains all contacts.
    var contacts: Set<UserID> = []
    var open: ChatID?
    /// The title of the open chat if the chat is not in the list, for example because it has no
    /// messages.
    var openName: String?
    /// The comments that are open; nil if the open chat does not consist of comments on a post.
    var comments: Client.Comments?
    /// The loaded messages of the open chat, oldest first.
    var rows: [HistoryRow] = []
    /// The pinned message of the open chat.
    var pinned: HistoryRow.Quote?
    /// The scheduled messages of the open chat, earliest first.
    var scheduled: [ScheduledMessage] = []
    var isGapBefore = false
    var isStart = false
    var isEnd = true
    /// The value of the read mark at the moment when the chat was opened, in Unix milliseconds. nil
    /// if there was no unread message.
    var newAfterMs: Int64?
    /// The number of lines between the bottom of the pane and the end of `rows`. If 0, the pane
    /// shows new messages as they arrive.
    var scroll = 0
    var selected: HistoryRow.ID?
    /// The words of the last search. Messages highlight the words that begin with one of them.
    var words: [String] = []
    var focus = Focus.input
    var intent = Intent.new
    var input = LineEditor()
    var suggestions: Suggestions?
    var panel: Panel?
    var prompt: Prompt?
    var connection = ConnectionState.stopped
    /// The time of the next attempt to connect, in Unix milliseconds; nil if no attempt is planned.
    var nextTryMs: Int64?
    /// The reason why the last attempt to connect failed.
    var connectionFailure: ConnectionFailure?
    var queueLength = 0
    var traffic = (sent: 0, received: 0)
    var typing: String?
    /// A notice for the user, shown until the next key.
    var notice: (text: String, isError: Bool)?
    /// The first visible line of the help; nil while the help is closed.
    var help: Int?
    /// The last packets, at most 200, oldest first; nil while the packet view is closed.
    var frames: [FrameTap]?
    var theme = Theme.dark
    var keys = KeyBindings()

    var openChat: ChatSummary? { chats.first { $0.id == open } }

    /// The entry of the list that represents the open chat. For comments, this is their channel.
    var listed: ChatID? { comments?.channel ?? open }

    /// Whether the account has left the open chat or was removed from it.
    var isOpenGone: Bool { openChat?.isGone == true }

    /// A hint for a line that is longer than one message. It states how many messages Enter sends
    /// or, during an edit, by how much the text is too long. nil for shorter lines and for
    /// commands.
    var lengthHint: String? {
        let line = input.text
        guard !Writing.isCommand(line) else { return nil }
        let source = Writing.message(ofLine: line).trimmingNewlines
        if Client.fitsMessage(source) { return nil }
        let text = Markdown(source).text
        if Client.fitsMessage(text) { return nil }
        if intent.isEdit {
            return "\(text.utf16.count - Client.maxMessageUnits) characters too many"
        }
        return "Enter sends \(Client.parts(of: text).count) messages"
    }

    /// What the status line says between two attempts to connect. The text names a cause that does
    /// not pass with the network, such as an expired certificate.
    var offlineWords: String {
        switch connectionFailure {
        case .untrusted, .wrongKey: "offline: the server is not trusted"
        case .expired: "offline: the server's certificate has expired"
        case .notYetValid: "offline: the server's certificate is not valid yet"
        case .wrongName: "offline: the server's certificate has another name"
        case .notTLS, .nothingShared, .handshakeFailed, .tlsUnavailable: "offline: no TLS"
        case .certificateRequired: "offline: the server requires a certificate"
        case nil, .unknownHost, .refused, .unreachable, .noAnswer, .closed, .otherProtocol,
            .closedDuringHandshake, .handshakeTimedOut:
            "offline"
        }
    }

    var openTitle: String { openChat?.title ?? openName ?? "" }

    var selectedRow: HistoryRow? { rows.first { $0.id == selected } }
}

/// A question to the user. The answer is a line of text, or yes or no.
struct Prompt {
    let question: String
    var editor = LineEditor(limit: 4_000)
    /// Whether a single key answers the question: y means yes, n and Esc mean no. Other keys are
    /// then ignored.
    var isYesOrNo = false
    /// Whether the answer is a secret, which the screen does not show.
    var isSecret = false
    /// The answer that an empty line stands for; nil if an empty line is no answer.
    var emptyMeans: String?
    /// The focus to restore when the prompt closes.
    var focusBefore = ScreenState.Focus.input
    let answer: (ScreenController, String) -> Void
}
