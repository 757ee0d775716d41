public import TambourProtocol

/// A line of the list of chats.
public struct ChatSummary: Hashable, Sendable, Identifiable {
    public enum Kind: Hashable, Sendable {
        /// Two people; `partner` is the other one.
        case dialog(partner: UserID)
        /// One's own notes.
        case savedMessages
        case group
        case channel
    }

    public let id: ChatID
    public let kind: Kind
    /// The title of a group or channel, the name of the other person.
    public let title: String
    /// Messages that were not read yet.
    public let unread: Int
    /// Nobody wants to be alerted of it now.
    public let isMuted: Bool
    /// Kept at the top of the list.
    public let isPinned: Bool
    /// Put away until something new is said.
    public let isHidden: Bool
    /// Whether the account is not in it any more: it was taken out, it has left on another device, or the group was
    /// deleted. What is held stays readable until `Client.leave` or `Client.hide` deletes it here.
    public let isGone: Bool
    /// Whether the other person is online; false for groups.
    public let isOnline: Bool
    /// When something happened in it last, Unix milliseconds of the server.
    public let lastEventMs: Int64
    /// The newest message, or what waits to be sent after it.
    public let preview: Preview?
    /// What was begun to be written there.
    public let draft: String?
    /// What cannot be sent there.
    public let failedCount: Int

    /// What the list shows of a chat's newest message.
    public struct Preview: Hashable, Sendable {
        /// Nil in channels, and for events.
        public let sender: String?
        public let isOwn: Bool
        public let text: String
        public let state: MessageState
    }
}

/// Where a message stands.
public enum MessageState: Hashable, Sendable {
    /// Waits to be sent.
    case waiting
    /// The server has it.
    case sent
    /// Somebody else has read it.
    case read
    /// It could not be sent: `reason` is for people.
    case failed(reason: String)
    /// Written by somebody else.
    case received
}
