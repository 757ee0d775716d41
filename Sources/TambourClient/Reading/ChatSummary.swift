public import TambourProtocol

/// A chat for display in the list of chats.
public struct ChatSummary: Hashable, Sendable, Identifiable {
    public enum Kind: Hashable, Sendable {
        /// A chat of two people; `partner` is the other person.
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
    /// Whether one of the newest unread messages of a group or channel mentions this account or
    /// answers one of its messages; false for dialogs.
    public let isMentioned: Bool
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
    /// The time of the chat's last event, in Unix milliseconds of the server's clock.
    public let lastEventMs: Int64
    /// The newest message, or a queued or refused message that follows it.
    public let preview: Preview?
    /// The text of the draft.
    public let draft: String?
    /// The number of messages and changes that the server refused, plus the number of scheduled
    /// messages that the server could not send.
    public let failedCount: Int

    /// The message that the list of chats shows for a chat.
    public struct Preview: Hashable, Sendable {
        /// Nil for events and for sent posts of a channel.
        public let sender: String?
        public let isOwn: Bool
        public let text: String
        public let state: MessageState
    }
}

/// The state of a message.
public enum MessageState: Hashable, Sendable {
    /// Waiting for the server.
    case waiting
    /// The server has the message.
    case sent
    /// Another member has read the message.
    case read
    /// The message could not be sent. `reason` is text for the user.
    case failed(reason: String)
    /// Another user wrote the message.
    case received
}
