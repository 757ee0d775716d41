/// The actions to which users can bind keys. The raw values are the names in `preferences.json` and
/// in the output of `tambour keys`.
///
/// Some keys are fixed and have no case here: Esc, Enter, Tab and the digits; the readline keys of
/// the input line; and the letters in panels. Each panel shows its letters in its lower border.
enum KeyAction: String, CaseIterable, Sendable {
    case leave
    case suspend
    case redraw
    case help

    case goToChat = "go-to-chat"
    case nextUnread = "next-unread"
    case chatAbove = "chat-above"
    case chatBelow = "chat-below"
    case scrollUp = "scroll-up"
    case scrollDown = "scroll-down"
    case newest
    case firstUnread = "first-unread"
    case back
    case forward
    case searchChat = "search-chat"
    case search
    case mentions
    case mute
    case pin
    case contacts
    case queue
    case folders

    case editor

    case above
    case below
    case reply
    case edit
    case forwardMessage = "forward-message"
    case delete
    case deleteForMe = "delete-for-me"
    case react
    case unreact
    case quoted
    case thread
    case comments
    case vote
    case copy
    case openLink = "open-link"
    case olderHit = "older-hit"
    case newerHit = "newer-hit"
    case unreadFromHere = "unread-from-here"
    case pinMessage = "pin-message"
    case retry

    /// The part of the screen in which the keys of an action apply.
    enum Scope: Sendable {
        case always
        /// While no panel and no question is open.
        case chat
        /// In the input line.
        case line
        /// On the selected message.
        case message

        /// Returns whether the same key cannot be bound in both scopes.
        func overlaps(_ other: Scope) -> Bool {
            switch (self, other) {
            case (.line, .message), (.message, .line): false
            default: true
            }
        }

        /// Whether the user can type text in this scope. If true, plain letters cannot be bound.
        var hasText: Bool { self != .message }
    }

    var scope: Scope {
        switch self {
        case .leave, .suspend, .redraw, .help: .always
        case .editor: .line
        case .above, .below, .reply, .edit, .forwardMessage, .delete, .deleteForMe, .react,
            .unreact, .quoted, .thread, .comments, .vote, .copy, .openLink, .olderHit, .newerHit,
            .unreadFromHere, .pinMessage, .retry:
            .message
        default: .chat
        }
    }

    /// The default keys, in the notation of `preferences.json`.
    var usualKeys: String {
        switch self {
        case .leave: "Ctrl-Q"
        case .suspend: "Ctrl-Z"
        case .redraw: "Ctrl-L"
        case .help: "F1"
        case .goToChat: "Alt-g"
        case .nextUnread: "Alt-n"
        case .chatAbove: "Alt-Up"
        case .chatBelow: "Alt-Down"
        case .scrollUp: "PgUp"
        case .scrollDown: "PgDn"
        case .newest: "Alt-End"
        case .firstUnread: "Alt-u"
        case .back: "Alt-o"
        case .forward: "Alt-i"
        case .searchChat: "Alt-/"
        case .search: "Alt-s"
        case .mentions: "Alt-a"
        case .mute: "Alt-m"
        case .pin: "Alt-p"
        case .contacts: "Alt-c"
        case .queue: "Alt-q"
        case .folders: "Alt-l"
        case .editor: "Alt-e"
        case .above: "Up k"
        case .below: "Down j"
        case .reply: "r"
        case .edit: "e"
        case .forwardMessage: "f"
        case .delete: "d"
        case .deleteForMe: "D"
        case .react: "+"
        case .unreact: "-"
        case .quoted: "q"
        case .thread: "t"
        case .comments: "c"
        case .vote: "v"
        case .copy: "y"
        case .openLink: "o"
        case .olderHit: "n"
        case .newerHit: "N"
        case .unreadFromHere: "u"
        case .pinMessage: "P"
        case .retry: "R"
        }
    }

    var summary: String {
        switch self {
        case .leave: "leave"
        case .suspend: "suspend"
        case .redraw: "draw the screen again"
        case .help: "show all keys"
        case .goToChat: "go to a chat by some letters of its name"
        case .nextUnread: "next chat with unread messages"
        case .chatAbove: "the chat above"
        case .chatBelow: "the chat below"
        case .scrollUp: "scroll to older messages"
        case .scrollDown: "scroll to newer messages"
        case .newest: "the newest message"
        case .firstUnread: "the first unread message"
        case .back: "back to where you were"
        case .forward: "forward again"
        case .searchChat: "search in this chat"
        case .search: "search everywhere"
        case .mentions: "messages that mention you or reply to you"
        case .mute: "mute the open chat, or the chosen one of the list"
        case .pin: "pin the open chat, or the chosen one of the list"
        case .contacts: "contacts"
        case .queue: "messages and changes that wait to be sent"
        case .folders: "choose which folder the list shows"
        case .editor: "write in $EDITOR"
        case .above: "the message above"
        case .below: "the message below"
        case .reply: "reply"
        case .edit: "edit, also a waiting message"
        case .forwardMessage: "forward"
        case .delete: "delete for all"
        case .deleteForMe: "delete for me"
        case .react: "react"
        case .unreact: "remove your reaction"
        case .quoted: "go to the quoted message"
        case .thread: "show its thread"
        case .comments: "show the comments on this post"
        case .vote: "vote in its poll"
        case .copy: "copy"
        case .openLink: "open its link; 1 to 9 open one of several"
        case .olderHit: "the next older match of the search"
        case .newerHit: "the next newer match of the search"
        case .unreadFromHere: "mark as unread from here"
        case .pinMessage: "pin for everybody"
        case .retry: "send a refused message again"
        }
    }
}
