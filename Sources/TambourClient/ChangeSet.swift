public import TambourProtocol

/// The parts of the local store that have changed. A screen that shows such a part reads it again.
public struct ChangeSet: Hashable, Sendable {
    /// Chats of the list that changed, appeared or disappeared.
    public internal(set) var chats: Set<ChatID> = []
    /// Chats in whose history messages, gaps or queued messages have changed, or whose scheduled
    /// messages have changed.
    public internal(set) var histories: Set<ChatID> = []
    /// Comments, by `Client.Comments.id`, of which messages, gaps or queued messages have changed.
    public internal(set) var comments: Set<ChatID> = []
    /// People whose name, presence or contact status has changed.
    public internal(set) var people: Set<UserID> = []
    /// Chats whose draft was changed by another device or process of the account.
    public internal(set) var drafts: Set<ChatID> = []
    /// The queue of actions has changed.
    public internal(set) var queue = false
    /// Entities or their conflicts have changed.
    public internal(set) var entities = false
    /// Folders or the chats in them have changed.
    public internal(set) var folders = false
    /// The account itself or its settings have changed.
    public internal(set) var account = false
    /// Anything may have changed: another process has written.
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
