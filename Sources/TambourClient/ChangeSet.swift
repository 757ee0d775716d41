public import TambourProtocol

/// The parts of the local store that have changed. A screen that shows such a part reads it again.
public struct ChangeSet: Hashable, Sendable {
    /// Chats of the chat list that changed, appeared or disappeared.
    public internal(set) var chats: Set<ChatID> = []
    /// Chats whose messages, gaps, queued messages, scheduled messages or numbers of comments have
    /// changed.
    public internal(set) var histories: Set<ChatID> = []
    /// The ids (`Client.Comments.id`) of comment threads whose messages, gaps or queued messages
    /// have changed.
    public internal(set) var comments: Set<ChatID> = []
    /// People whose name, presence or contact status has changed.
    public internal(set) var people: Set<UserID> = []
    /// Chats whose draft has changed for a reason other than a call in this process, for example on
    /// another device. Changes by another process of this device set `everything` instead.
    public internal(set) var drafts: Set<ChatID> = []
    /// Whether the queue of actions has changed.
    public internal(set) var queue = false
    /// Whether entities or their conflicts have changed.
    public internal(set) var entities = false
    /// Whether folders or the chats in them have changed.
    public internal(set) var folders = false
    /// Whether the account itself or its settings have changed.
    public internal(set) var account = false
    /// Whether anything may have changed, for example because another process has written.
    public internal(set) var everything = false

    public init() {}

    /// Whether nothing has changed.
    public var isEmpty: Bool { self == ChangeSet() }

    /// Adds the changes of another set.
    public mutating func formUnion(_ other: ChangeSet) {
        chats.formUnion(other.chats)
        histories.formUnion(other.histories)
        comments.formUnion(other.comments)
        people.formUnion(other.people)
        drafts.formUnion(other.drafts)
        queue = queue || other.queue
        entities = entities || other.entities
        folders = folders || other.folders
        account = account || other.account
        everything = everything || other.everything
    }
}
