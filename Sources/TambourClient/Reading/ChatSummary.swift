public import TambourProtocol

/// A chat as the list of chats shows it.
public struct ChatSummary: Hashable, Sendable, Identifiable {
    public enum Kind: Hashable, Sendable {
        /// A chat of two people; `partner` is the other one.
        case dialog(partner: UserID)
        /// The account's own notes.
        case savedMessages
        case group
        case channel
    }

    public let id: ChatID
    public let kind: Kind
    /// The title of a group or channel, or the name of the other person.
    public let title: String
    /// The number of unread messages.
    public let unread: Int
    /// Whether the chat is muted.
    public let isMuted: Bool
    /// Whether the chat is pinned to the top of the list.
    public let isPinned: Bool
    /// Whether the chat is hidden until it gets a new message.
    public let isHidden: Bool
    /// Whether the account is no longer a member: it was removed, it left on another device, or the
    /// group was deleted. The stored messages stay readable until `Client.leave` or `Client.hide`
    /// deletes them.
    public let isGone: Bool
    /// Whether the other person is online; false for groups.
    public let isOnline: Bool
    /// The time of the chat's last event, in Unix milliseconds of the server.
    public let lastEventMs: Int64
    /// The newest message, or a queued message that comes after it.
    public let preview: Preview?
    /// The text of the draft.
    public let draft: String?
    /// The number of messages and changes that could not be sent.
    public let failedCount: Int

    /// The newest message as the list shows it.
    public struct Preview: Hashable, Sendable {
        /// Nil in channels, and for events.
        public let sender: String?
        public let isOwn: Bool
        public let text: String
        public let state: MessageState
    }
}

/// The state of a message.
public enum MessageState: Hashable, Sendable {
    /// Queued.
    case waiting
    /// The server has it.
    case sent
    /// Somebody else has read it.
    case read
    /// It could not be sent: `reason` is for people.
    case failed(reason: String)
    /// Somebody else wrote it.
    case received
}
