import Foundation
import GRDB
import TambourProtocol

/// Something the account wants done, that survives everything but its own success.
///
/// The fields are what is stored; a change of their layout takes a new `version` and reads the old one.
protocol QueuedTask: Codable, Sendable {
    /// What names it in the store, for ever.
    static var kind: String { get }
    /// The layout of the stored fields.
    static var version: Int { get }

    /// Tasks of one lane are done one after the other, in the order they were asked for.
    var lane: String? { get }
    /// What must hold for it to start.
    var requires: TaskConditions { get }
    /// A newer one with the same key takes the place of one that still waits.
    var coalescingKey: String? { get }
    /// How long it makes sense to try; nil for as long as it takes.
    var patience: Duration? { get }

    /// Shows what it will bring about before the server knows of it, in the transaction that queues it.
    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws

    /// Begins a run, in the transaction that stores that it runs.
    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws
}

/// A task that is done by one request.
protocol ClientTask: QueuedTask {
    associatedtype Request: WireRequest

    /// The chat that changes by it for all its members, if there is one.
    var changedChat: ChatID? { get }
    /// Whether it stays in sight when the server refuses it, for somebody to try again or drop.
    var staysWhenRefused: Bool { get }
    /// Whether people are told when the server refuses it: not of what nobody would miss.
    var tellsRefusal: Bool { get }
    /// Whether what became of it has to be known: when no answer comes in time, a login tells.
    var mustBeAnswered: Bool { get }

    /// Whether what a task before it has left for it is of no use any more: then that one is run again.
    func needsNewInput(atHereMs: Int64) -> Bool

    /// What to ask the server for.
    /// - Throws: `ClientError.invalid` when there is nothing to ask for any more.
    func request(_ tx: StoreTransaction) throws -> Request

    /// Takes over what the server answered, in the transaction that ends the task.
    func succeeded(_ reply: Request.Reply, in core: ClientCore, _ tx: StoreTransaction) throws

    /// Shows what there is now that it is done or given up.
    func ended(in core: ClientCore, _ tx: StoreTransaction) throws

    /// Takes back what `prepare` showed: the server refused.
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

/// The lane in which what happens in one chat is done.
func chatLane(_ chat: ChatID) -> String { "chat:\(chat)" }

/// All kinds of tasks there are.
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

/// What a task has changed on the screen.
enum OverlayKind: String {
    case send
    case edit
    case delete
    case react
}

extension StoreTransaction {
    /// Shows something until its task has ended.
    func addOverlay(
        _ kind: OverlayKind,
        of task: TaskID,
        chat: ChatID,
        message: MessageID? = nil,
        cid: Int64? = nil,
        atHereMs: Int64,
        _ value: some Encodable
    ) throws {
        try execute(
            "INSERT INTO overlay VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                task.rawValue, chat.rawValue, message?.rawValue, kind.rawValue, cid, atHereMs,
                try JSONEncoder().encode(value),
            ]
        )
        changes.histories.insert(chat)
        changes.chats.insert(chat)
    }

    func removeOverlays(of task: TaskID) throws {
        for row in try rows("SELECT DISTINCT chat FROM overlay WHERE task = ?", [task.rawValue]) {
            changes.histories.insert(ChatID(row[0]))
            changes.chats.insert(ChatID(row[0]))
        }
        try execute("DELETE FROM overlay WHERE task = ?", [task.rawValue])
    }
}
