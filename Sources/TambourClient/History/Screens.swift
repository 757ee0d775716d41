import TambourProtocol

/// A chat that is on a screen.
struct Screen {
    /// The row at the edge towards which the reader scrolls; nil for the newest row.
    var position: Position?
    var direction: HistoryViewport.Direction
    var rowsOnScreen: Int
    /// The visible stored messages, oldest first.
    var visible: [Position]
    var reader: HistoryReader
    /// Whether this connection has requested the changes of the stored messages.
    var hasAskedChanges = false
    /// The message that was requested on this connection because the draft answers it.
    var answered: MessageID?
}

/// A chat on the screen of a process.
struct Looker: Hashable, Comparable {
    let chat: ChatID
    /// The `owner` of the process; empty for this process.
    var process = ""

    static func < (left: Self, right: Self) -> Bool {
        (left.chat, left.process) < (right.chat, right.process)
    }
}

/// The chats on the screens of this process and of other processes.
struct Screens {
    private var screens: [Looker: Screen] = [:]
    private var told: [ChatID: (look: SharedLook, atMs: Int64)] = [:]
    /// The time after which the same look is passed on again. By then, another process may own the
    /// connection.
    private static let tellAgainMs: Int64 = 5_000

    /// The screen on which a process shows a chat; nil when the process does not show the chat.
    subscript(looker: Looker) -> Screen? {
        get { screens[looker] }
        set { screens[looker] = newValue }
    }

    /// The chats on screens, with their processes, in the order in which the missing messages are
    /// requested.
    var lookers: [Looker] { screens.keys.sorted() }

    /// Whether pages of a chat are in flight.
    func isReading(_ chat: ChatID) -> Bool {
        screens.contains { $0.key.chat == chat && $0.value.reader.isReading }
    }

    /// Records that the chat is no longer on the screen of this process.
    mutating func lookAway(from chat: ChatID) {
        screens[Looker(chat: chat)] = nil
        told[chat] = nil
    }

    /// Closes all screens of a chat.
    mutating func forget(_ chat: ChatID) {
        screens = screens.filter { $0.key.chat != chat }
    }

    mutating func forgetAll() {
        screens = [:]
        told = [:]
    }

    /// Prepares for a new connection. Earlier requests will get no reply.
    mutating func reconnected() {
        for looker in lookers {
            screens[looker]?.reader.disconnected()
            screens[looker]?.hasAskedChanges = false
            screens[looker]?.answered = nil
        }
    }

    /// Records that a look is passed on to the connected process.
    ///
    /// - Returns: false when the same look was passed on recently.
    mutating func tell(_ look: SharedLook, at chat: ChatID, nowMs: Int64) -> Bool {
        if let last = told[chat], last.look == look, nowMs - last.atMs < Self.tellAgainMs {
            return false
        }
        told[chat] = (look, nowMs)
        return true
    }
}
