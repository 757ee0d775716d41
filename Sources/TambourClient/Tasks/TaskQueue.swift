import TambourProtocol

/// The tasks as stored, read when they are needed. Every change of them is stored at once.
struct TaskQueue {
    /// Nil until it is needed, and after another process may have changed the rows.
    private var scheduler: TaskScheduler?
    private var ids = ClientIDGenerator()
    /// The values of `Subjects.transactions` and of the last revision when the task that is being
    /// answered was sent.
    private(set) var asked: (transactions: Int, revision: Int64) = (0, 0)

    /// A client id that no other message or task of this installation has.
    mutating func nextID(_ environment: ClientEnvironment) -> ClientID {
        ids.next(nowMs: environment.wallMs(), random: environment.random())
    }

    /// Notes that a task is answered which was sent at these values.
    mutating func answering(_ asked: (transactions: Int, revision: Int64)) { self.asked = asked }

    /// Changes the tasks, and stores the rows that `body` returns.
    mutating func change(
        _ tx: StoreTransaction,
        _ body: (inout TaskScheduler) throws -> [TaskChange]
    ) throws {
        var next = try stored(tx)
        // A single reference avoids a copy. If `body` throws, the tasks are read again.
        scheduler = nil
        let changes = try body(&next)
        scheduler = next
        try tx.apply(changes)
    }

    /// Runs `body` with the tasks.
    mutating func read<Value>(
        _ tx: StoreTransaction,
        _ body: (TaskScheduler) throws -> Value
    ) throws -> Value {
        try body(try stored(tx))
    }

    /// A task; nil for one that is gone.
    mutating func task(_ id: TaskID, _ tx: StoreTransaction) throws -> TaskRecord? {
        try stored(tx)[id]
    }

    /// The outputs of the tasks that a task needs.
    mutating func inputs(of id: TaskID, _ tx: StoreTransaction) throws -> [TaskID: [UInt8]] {
        try stored(tx).inputs(of: id)
    }

    /// The next task that can start now.
    mutating func startable(
        nowMs: Int64,
        _ conditions: TaskConditions,
        _ tx: StoreTransaction
    ) throws -> TaskID? {
        try stored(tx).startable(nowMs: nowMs, conditions: conditions).first
    }

    /// When time alone changes something, in Unix milliseconds; nil for never.
    func nextWakeMs(nowMs: Int64) -> Int64? { scheduler?.nextWakeMs(nowMs: nowMs) }

    /// Discards the tasks in memory: they are read again.
    mutating func forget() { scheduler = nil }

    private mutating func stored(_ tx: StoreTransaction) throws -> TaskScheduler {
        if let scheduler { return scheduler }
        let read = try tx.scheduler()
        scheduler = read
        return read
    }
}
