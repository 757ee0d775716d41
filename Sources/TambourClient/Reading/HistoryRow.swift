public import TambourProtocol

/// A row of a chat's history as it is shown.
public struct HistoryRow: Hashable, Sendable, Identifiable {
    /// What names a row for as long as it is shown: a message keeps it when it is sent.
    public enum ID: Hashable, Sendable {
        case message(MessageID)
        /// One's own message, by the `cid` that this device gave it.
        case own(Int64)
    }

    public internal(set) var id: ID
    /// Nil until the server has it.
    public let message: MessageID?
    /// Names what waits to be sent, to cancel or retry it; nil for others.
    public let outgoing: OutgoingID?
    /// Nil in channels.
    public let sender: UserID?
    /// The name of the sender, of the channel in channels.
    public let senderName: String
    public let isOwn: Bool
    /// Unix milliseconds of the server; of this device for what waits to be sent.
    public let timeMs: Int64
    public let text: String
    /// Formatting, in UTF-16 units of `text`.
    public let spans: [TextSpan]
    /// What it answers.
    public let quote: Quote?
    /// Whose message this is a copy of.
    public let forwardedFrom: String?
    /// What is attached, in words.
    public let attachments: [String]
    /// What happened in the chat, in words, when this is no message of a person.
    public let event: String?
    public let reactions: [Reaction]
    public let isEdited: Bool
    /// What this device has asked for is on its way: an edit, a deletion, a reaction.
    public let isChanging: Bool
    public let state: MessageState
    /// Whether messages may be missing between this row and the next one.
    public internal(set) var isGapAfter: Bool
    /// Whether somebody else names this account in it, or answers it.
    public internal(set) var concernsMe = false

    /// The message that another one answers.
    public struct Quote: Hashable, Sendable {
        public let message: MessageID
        public let sender: String
        public let text: String
    }

    public struct Reaction: Hashable, Sendable {
        public let emoji: String
        public let count: Int
        /// Whether it is one's own.
        public let isOwn: Bool
    }

    /// A range of formatted text.
    public struct TextSpan: Hashable, Sendable {
        public enum Style: Hashable, Sendable {
            case strong
            case emphasized
            case underlined
            case struckThrough
            case monospaced
            case link(String)
            case mention(UserID?)
            case quote
            case heading
        }

        public let style: Style
        /// UTF-16 units from the start of the text.
        public let range: Range<Int>
    }
}

/// A stretch of a chat's history.
public struct HistoryPage: Hashable, Sendable {
    /// Oldest first; what waits to be sent is at the end of the newest page.
    public let rows: [HistoryRow]
    /// Whether messages may be missing in front of the first row.
    public let isGapBefore: Bool
    /// Whether messages may be missing between the message that `HistoryAnchor.after` names and the first row.
    public let isGapBehindAnchor: Bool
    /// Whether the first row is the first message there is.
    public let isStart: Bool
    /// Whether the last row is the newest there is.
    public let isEnd: Bool
}

/// Names something that waits to be done.
public struct OutgoingID: Hashable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }
}

/// A person as the local store knows them.
public struct Person: Hashable, Sendable, Identifiable {
    public let id: UserID
    public let name: String
    public let isContact: Bool
    public let isOnline: Bool
    /// When they were online last, Unix milliseconds; nil when that is not known.
    public let seenMs: Int64?
    /// Digits without a plus; nil when they do not show it.
    public let phone: String?
    public let about: String?
    public let link: String?
}
