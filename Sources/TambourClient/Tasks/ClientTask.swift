import Foundation
import TambourProtocol

/// An action of the account that is stored until it has succeeded or otherwise ended.
///
/// The stored fields are the properties of the type. A change of their layout needs a new
/// `version`, and code that reads the old layout.
protocol QueuedTask: Codable, Sendable {
    /// The stored name of this kind. It must never change.
    static var kind: String { get }
    /// The stored name of the same action on a comment; nil if comments do not have the action.
    /// Because of the separate name, a version of the app that does not know comments never runs
    /// the task on a message.
    static var commentKind: String? { get }
    /// The layout of the stored fields.
    static var version: Int { get }

    /// The post whose comments the task changes, if any.
    var post: Int64? { get }
    /// The lane. Tasks of a lane run one after the other, in the order of queueing.
    var lane: String? { get }
    /// The conditions under which the task may start.
    var requires: TaskConditions { get }
    /// The coalescing key: a newer task with the same key replaces a queued task.
    var coalescingKey: String? { get }
    /// The time limit for the task; nil for no limit.
    var patience: Duration? { get }

    /// Shows the effect before the server confirms it, in the transaction that queues the task.
    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws

    /// Starts a run, in the transaction that records the task as running.
    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws
}

/// A task that consists of one request.
protocol ClientTask: QueuedTask {
    associatedtype Request: WireRequest

    /// The chat in which the task changes something that all members see; nil for no chat.
    var changedChat: ChatID? { get }
    /// Whether a refused task stays in the queue, for the user to retry or discard it.
    var staysWhenRefused: Bool { get }
    /// Whether the client reports a refusal to the user; false for tasks that the client queues
    /// automatically.
    var tellsRefusal: Bool { get }
    /// Whether the client must learn the outcome. If no reply arrives in time, the client
    /// reconnects, and the login reveals the outcome.
    var mustBeAnswered: Bool { get }

    /// Returns whether the output of a task that this task needs has expired. If so, that task runs
    /// again.
    func needsNewInput(atHereMs: Int64) -> Bool

    /// Creates the request to send.
    /// - Throws: `ClientError.invalid` when the request would have no effect.
    func request(_ tx: StoreTransaction) throws -> Request

    /// Stores the server's reply, in the transaction that ends the task.
    func succeeded(_ reply: Request.Reply, in core: ClientCore, _ tx: StoreTransaction) throws

    /// Shows the current state after the task is done or cancelled.
    func ended(in core: ClientCore, _ tx: StoreTransaction) throws

    /// Returns the reason of a refusal, as text for the user.
    func words(for error: ClientError, _ tx: StoreTransaction) throws -> String

    /// Undoes the effect of `prepare` after a refusal.
    func refused(in core: ClientCore, _ tx: StoreTransaction) throws
}

extension QueuedTask {
    static var version: Int { 1 }
    static var commentKind: String? { nil }
    var post: Int64? { nil }
    /// The stored name of this task.
    var storedKind: String { (post == nil ? nil : Self.commentKind) ?? Self.kind }
    var requires: TaskConditions { .loggedIn }
    var coalescingKey: String? { nil }
    var patience: Duration? { nil }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {}
}

extension ClientTask {
    var changedChat: ChatID? { nil }
    var staysWhenRefused: Bool { false }
    var tellsRefusal: Bool { true }
    var mustBeAnswered: Bool { false }

    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.send(self, run, tx)
    }

    func needsNewInput(atHereMs: Int64) -> Bool { false }
    func ended(in core: ClientCore, _ tx: StoreTransaction) throws {}
    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {}

    func words(for error: ClientError, _ tx: StoreTransaction) throws -> String {
        error.description
    }
}

/// A task about messages of a chat or comments on a post.
protocol MessageTask: ClientTask {
    /// The chat; for comments, the channel.
    var chat: Int64 { get }
}

extension MessageTask {
    /// The chat on this device.
    var place: ChatID { post.map { .comments(on: MessageID($0)) } ?? ChatID(chat) }
    var lane: String? { chatLane(place) }
    // Comments do not change the channel.
    var changedChat: ChatID? { post == nil ? ChatID(chat) : nil }

    func words(for error: ClientError, _ tx: StoreTransaction) throws -> String {
        post == nil ? error.description : try tx.words(for: error, on: ChatID(chat))
    }
}

/// The lane of a chat's tasks.
func chatLane(_ chat: ChatID) -> String { "chat:\(chat)" }

/// The registry of all kinds of tasks.
enum TaskKinds {
    private static let all: [any QueuedTask.Type] = [
        SendTask.self, EditTask.self, DeleteTask.self, MarkTask.self, ReactTask.self,
        CancelReactionTask.self, SaveDraftTask.self, DiscardDraftTask.self, CreateChatTask.self,
        UpdateChatTask.self, UpdateMembersTask.self, LeaveChatTask.self, HideChatTask.self,
        ConfigureChatTask.self, UpdateContactTask.self, UpdateProfileTask.self,
        ScheduleTask.self, EditScheduledTask.self, CancelScheduledTask.self,
        ChangeFolderTask.self, DeleteFolderTask.self, OrderFoldersTask.self,
        VoteTask.self, KeepPhotoTask.self, UploadPhotoTask.self, SendPhotoTask.self,
    ]

    /// Reads a stored task.
    ///
    /// - Returns: nil for a kind or layout that is unknown to this version.
    static func read(_ record: TaskRecord) -> (any QueuedTask)? {
        guard let type = all.first(where: { [$0.kind, $0.commentKind].contains(record.kind) }),
            type.version == record.codecVersion
        else { return nil }
        return read(type, record.payload)
    }

    private static func read<Kind: QueuedTask>(_ type: Kind.Type, _ payload: [UInt8]) -> Kind? {
        try? JSONDecoder().decode(type, from: Data(payload))
    }

    static func write(_ task: some QueuedTask) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return [UInt8](try encoder.encode(task))
    }
}
