public import TambourProtocol

/// A row of a chat's history for display.
public struct HistoryRow: Hashable, Sendable, Identifiable {
    /// The identity of a row. It does not change when the message is sent.
    public enum ID: Hashable, Sendable {
        case message(MessageID)
        /// An own message, by the `cid` that this device assigned.
        case own(Int64)
    }

    public internal(set) var id: ID
    /// Nil until the server assigns an id.
    public let message: MessageID?
    /// The id with which to cancel, retry or discard a queued or refused message; nil for other
    /// rows.
    public let outgoing: OutgoingID?
    /// Nil in channels.
    public let sender: UserID?
    /// The name of the sender; in channels, the name of the channel.
    public let senderName: String
    public let isOwn: Bool
    /// Unix milliseconds of the server's clock; for queued messages, of this device's clock.
    public let timeMs: Int64
    public let text: String
    /// Formatting, in UTF-16 units of `text`.
    public let spans: [MessageSpan]
    /// The answered message; nil if the row answers no message, or a message that is known to be
    /// deleted.
    public internal(set) var quote: Quote?
    /// The name of the sender of the forwarded message; nil if this message is not a forward. Empty
    /// until the server has stored this message.
    public let forwardedFrom: String?
    /// The attachments, described in words.
    public let attachments: [String]
    /// The poll; nil until the server has stored the message.
    public let poll: Poll?
    /// The event in the chat, described in words; nil for an ordinary message.
    public let event: String?
    public let reactions: [Reaction]
    public let isEdited: Bool
    /// Whether an edit or a reaction made on this device is queued or in flight.
    public let isChanging: Bool
    public let state: MessageState
    /// Whether messages may be missing between this row and the next one.
    public internal(set) var isGapAfter: Bool
    /// Whether another user's message mentions this account or answers one of its messages.
    public internal(set) var concernsMe = false
    /// The number of comments on this post, as the server last reported it; nil if unknown, and
    /// outside of channels.
    public internal(set) var commentCount: Int?

    /// A quoted message: one that a row answers, or the pinned message.
    public struct Quote: Hashable, Sendable {
        public let message: MessageID
        public let sender: String
        public internal(set) var text: String
    }

    public struct Reaction: Hashable, Sendable {
        public let emoji: String
        public let count: Int
        /// Whether this is the account's own reaction.
        public let isOwn: Bool
    }
}

/// A page of a chat's history.
public struct HistoryPage: Hashable, Sendable {
    /// Oldest first. Queued and refused messages are at the end of the newest page.
    public let rows: [HistoryRow]
    /// Whether messages may be missing before the first row.
    public let isGapBefore: Bool
    /// Whether messages may be missing between the message that `HistoryAnchor.after` names and the
    /// first row.
    public let isGapBehindAnchor: Bool
    /// Whether the first row is the first message of the chat.
    public let isStart: Bool
    /// Whether the page reaches the newest message stored here.
    public let isEnd: Bool
}

/// The id of a queued action.
public struct OutgoingID: Hashable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(_ rawValue: Int64) { self.rawValue = rawValue }

    public var description: String { String(rawValue) }
}

/// A person as the local store describes them.
public struct Person: Hashable, Sendable, Identifiable {
    public let id: UserID
    public let name: String
    public let isContact: Bool
    public let isOnline: Bool
    /// The time when the person was last online, in Unix milliseconds; nil when unknown.
    public let seenMs: Int64?
    /// Digits without a plus; nil when the person hides the number.
    public let phone: String?
    public let about: String?
    public let link: String?
}
