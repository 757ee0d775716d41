import Foundation
import TambourProtocol

/// An action of the account that is stored until it has succeeded or ended otherwise.
///
/// The fields are what is stored. A change of their layout needs a new `version`, and code that
/// reads the old one.
protocol QueuedTask: Codable, Sendable {
    /// The name of this kind in the store. It must never change.
    static var kind: String { get }
    /// The layout of the stored fields.
    static var version: Int { get }

    /// The lane: its tasks run one after the other, in the order in which they were queued.
    var lane: String? { get }
    /// The conditions under which it may start.
    var requires: TaskConditions { get }
    /// The coalescing key: a newer task with the same key replaces one that is still queued.
    var coalescingKey: String? { get }
    /// The time limit for the task; nil for none.
    var patience: Duration? { get }

    /// Shows its effect before the server has confirmed it, in the transaction that queues it.
    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws

    /// Starts a run, in the transaction that stores the task as running.
    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws
}

/// A task that one request carries out.
protocol ClientTask: QueuedTask {
    associatedtype Request: WireRequest

    /// The chat, if any, that the task changes for all its members.
    var changedChat: ChatID? { get }
    /// Whether the task stays visible after a refusal, for the user to retry or drop it.
    var staysWhenRefused: Bool { get }
    /// Whether the client publishes a refusal for people; false for tasks that the client queues by
    /// itself.
    var tellsRefusal: Bool { get }
    /// Whether the outcome must be known. When no answer comes in time, the client reconnects, and
    /// the login tells the outcome.
    var mustBeAnswered: Bool { get }

    /// Whether the output of a task it depends on is no longer usable. Then that task is run again.
    func needsNewInput(atHereMs: Int64) -> Bool

    /// Makes the request to send.
    /// - Throws: `ClientError.invalid` when there is nothing left to request.
    func request(_ tx: StoreTransaction) throws -> Request

    /// Stores the server's answer, in the transaction that ends the task.
    func succeeded(_ reply: Request.Reply, in core: ClientCore, _ tx: StoreTransaction) throws

    /// Shows the current state after the task is done or cancelled.
    func ended(in core: ClientCore, _ tx: StoreTransaction) throws

    /// Undoes the effect that `prepare` showed: the server refused.
    func refused(in core: ClientCore, _ tx: StoreTransaction) throws
}

extension QueuedTask {
    static var version: Int { 1 }
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
        KeepPhotoTask.self, UploadPhotoTask.self, SendPhotoTask.self,
    ]

    /// Reads a stored task.
    ///
    /// - Returns: nil for a kind or a layout that this version does not know.
    static func read(_ record: TaskRecord) -> (any QueuedTask)? {
        guard let type = all.first(where: { $0.kind == record.kind }),
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
