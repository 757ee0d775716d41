import Foundation
import Synchronization
import TambourEvents
import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

extension SeededGenerator {
    /// Returns one of the values; nil if the list is empty.
    mutating func any<Value>(of values: [Value]) -> Value? { values.randomElement(using: &self) }
}

/// The machine's environment: a wall clock that the test moves, and a random generator with a seed.
final class ManualWorld: Sendable {
    private let wall: Mutex<Int64>
    private let random: Mutex<SeededGenerator>

    init(wall: Int64, seed: UInt64) {
        self.wall = Mutex(wall)
        random = Mutex(SeededGenerator(seed: seed))
    }

    var wallMs: Int64 {
        get { wall.withLock { $0 } }
        set { wall.withLock { $0 = newValue } }
    }

    var environment: TambourMessenger.Environment {
        TambourMessenger.Environment(
            wallMs: { self.wallMs },
            randomBytes: { count in
                self.random.withLock { random in
                    (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                }
            }
        )
    }
}

/// Everything that handles a request, without sockets, queues and threads: dispatcher, engine,
/// store and clock.
///
/// One thread drives the machine step by step. A restart drops the clock and the writer in memory,
/// and rebuilds both from the file.
///
/// `@unchecked Sendable`: commands capture the machine, and they run on the thread that owns the
/// machine.
final class SyncMachine: @unchecked Sendable {
    static let code = "111111"

    let world: ManualWorld
    let limits: Limits
    let dispatcher: Dispatcher
    private(set) var clock: CommitClock
    private var core: EngineCore
    private let metrics = ServerMetrics(startedMs: 0)
    private let directory: URL
    private let writing: StoreConnection
    private let reading: StoreConnection

    init(seed: UInt64, limits: Limits, wall: Int64) throws {
        world = ManualWorld(wall: wall, seed: seed)
        self.limits = limits
        directory = try Self.scratchDirectory("sync")
        let path = directory.appendingPathComponent("tambour.db").path
        // These tests simulate no power failure, so commits need not sync the file to the disk.
        let connection = try SQLiteConnection(path: path, mode: .readWrite)
        try connection.execute("PRAGMA synchronous = OFF")
        try StoreConnection.migrate(connection)
        writing = try StoreConnection(connection, limits: limits)
        reading = try StoreConnection(SQLiteConnection(path: path, mode: .readOnly), limits: limits)
        let presenceClock = CommitClock(persistedLeaseEnd: 0, leaseMs: 0)
        dispatcher = Dispatcher(
            limits: limits,
            environment: world.environment,
            fixedLoginCode: Self.code,
            clock: presenceClock,
            presence: PresenceRegistry(clock: presenceClock, wall: 0, limits: .standard),
            settings: ServiceConfig(limits: limits),
            report: { _ in }
        )
        (core, clock) = try Self.started(writing, metrics, world, limits)
    }

    /// Creates a directory, in memory if possible. These tests need no disk.
    static func scratchDirectory(_ name: String) throws -> URL {
        let memory = "/dev/shm"
        let parent =
            FileManager.default.isWritableFile(atPath: memory)
            ? URL(fileURLWithPath: memory) : FileManager.default.temporaryDirectory
        let directory = parent.appendingPathComponent("tambour-\(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        return directory
    }

    func remove() {
        try? FileManager.default.removeItem(at: directory)
    }

    /// Restarts the machine. The machine loses everything that is not on disk.
    func restart() throws {
        (core, clock) = try Self.started(writing, metrics, world, limits)
    }

    private static func started(
        _ store: StoreConnection,
        _ metrics: ServerMetrics,
        _ world: ManualWorld,
        _ limits: Limits
    ) throws -> (EngineCore, CommitClock) {
        let writer = try StoreWriter(
            store,
            userIDs: world.environment.userIDs,
            firstCounter: UInt16(world.environment.randomBytes(1)[0])
        )
        let clock = CommitClock(
            persistedLeaseEnd: try writer.persistedLeaseEnd(),
            leaseMs: limits.commitLeaseMs
        )
        let core = EngineCore(writer: writer, clock: clock, metrics: metrics, report: { _ in })
        return (core, clock)
    }

    /// Runs commands in one transaction, like the engine. If the transaction fails, runs the
    /// commands one by one.
    func run(_ commands: [Command]) -> EngineCore.Result {
        core.run(commands[...], wall: { self.world.wallMs })
    }

    func session(of token: String) throws -> OpenSession {
        try dispatcher.resolve(token, knownAs: nil, on: reading).get()
    }

    func isMember(_ user: UserID, of chat: ChatID) throws -> Bool {
        try reading.read { try $0.view(chat, for: user) != nil }
    }

    /// Returns the groups from which the next erasure step removes the user; empty if the erasure
    /// has not begun.
    func groupsToErase(_ user: UserID) throws -> [ChatID] {
        try reading.read { snapshot in
            guard try snapshot.end(of: user).isErasing else { return [] }
            return try snapshot.chatsToErase(of: user, limit: limits.erasedChatsPerStep)
                .filter { $0.rawValue < 0 }.map { ChatID($0.rawValue) }
        }
    }

    /// Returns the messages that still have a reaction or a vote of the user.
    func messagesAnswered(by user: UserID, in chat: ChatID) throws -> Set<MessageID> {
        try reading.read { snapshot in
            let key = try snapshot.view(chat, for: user)?.key ?? ChatKey(chat.rawValue)
            let reactions = try snapshot.reactions(of: user, in: key).map(\.message)
            let votes = try snapshot.votes(of: user, in: key).map(\.message)
            return Set(reactions + votes)
        }
    }

    /// Runs LOGIN as a session does: it reads the time before it opens the snapshot.
    func login(
        _ request: LoginRequest,
        from caller: Caller,
        knowing capabilities: Capabilities = []
    ) throws -> LoginReply {
        try reply(beginLogin(request, from: caller, knowing: capabilities))
    }

    /// Runs the first step of a LOGIN.
    func beginLogin(
        _ request: LoginRequest,
        from caller: Caller,
        knowing capabilities: Capabilities = []
    ) -> Answer {
        let requester = Requester(
            caller: caller,
            origin: SessionOrigin(installation: "", client: "", info: "", address: ""),
            capabilities: capabilities
        )
        return dispatcher.login(request, from: requester, time: safeTime, on: reading)
    }

    /// Runs the first step of a query.
    func beginQuery(_ request: QueryRequest, from caller: Caller, token: String) -> Answer {
        let requester = Requester(
            caller: caller,
            origin: SessionOrigin(installation: "", client: "", info: "", address: ""),
            token: token
        )
        return dispatcher.query(request, from: requester, time: safeTime, on: reading)
    }

    /// Runs the next step of an unfinished answer.
    func goOn(_ answer: Answer) -> Answer { dispatcher.resume(answer, on: reading) }

    var safeTime: Int64 { clock.safeTime(wall: world.wallMs) }

    func ask<Reply: WirePayload>(
        _ request: QueryRequest,
        from requester: Requester,
        as type: Reply.Type = Reply.self
    ) throws -> Reply {
        let time = clock.safeTime(wall: world.wallMs)
        return try reply(dispatcher.query(request, from: requester, time: time, on: reading))
    }

    /// Runs the remaining steps of an answer. Returns the reply as a client decodes it.
    func reply<Reply: WirePayload>(_ answer: Answer) throws -> Reply {
        var answer = answer
        while answer.restOfQuery != nil { answer = goOn(answer) }
        return switch answer.outcome {
        case .reply(let payload): try Reply.decode(payload.encoded(), limits: limits)
        case .encoded(let payload): try Reply.decode(payload, limits: limits)
        case .refusal(let refusal): throw refusal
        case .done: preconditionFailure("nothing a client asks ends without a reply")
        }
    }

    /// Creates accounts as `tambourd admin users create` does, and signs in the first of them.
    func signedUp(
        _ count: Int
    ) throws -> (users: [UserID], token: String, caller: Caller) {
        let lines = Mutex<[String]>([])
        _ = run([
            Command { tx in
                try AdminService(InlineBackend(tx: tx, machine: self)).run(
                    .createUsers(count: count, firstPhone: 79_990_000_001),
                    output: { line in lines.withLock { $0.append(line) } }
                )
                return .done
            }
        ])
        let words = lines.withLock { $0.map { $0.split(separator: " ") } }
        let users = try words.map { UserID(try #require(Int64($0[1]))) }
        let token = try #require(words.first.map { String($0[2]) })
        let session = try self.session(of: token)
        let caller = Caller(
            userID: session.userID,
            sessionID: session.id,
            deviceID: session.deviceID,
            connectionID: ConnectionID(1),
            replyBudget: limits.maxReplyBytes
        )
        return (users, token, caller)
    }
}
