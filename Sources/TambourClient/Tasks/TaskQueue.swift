import TambourProtocol

/// The stored tasks, which are read when needed. Every change is stored at once.
struct TaskQueue {
    /// Nil until the first use, and after another process may have changed the rows.
    private var scheduler: TaskScheduler?
    private var ids = ClientIDGenerator()
    /// `Subjects.transactions` and the last revision at the time of the request whose reply is
    /// being handled.
    private(set) var asked: (transactions: Int, revision: Int64) = (0, 0)

    /// Returns a new client id, unique among the messages and tasks of this installation.
    mutating func nextID(_ environment: ClientEnvironment) -> ClientID {
        ids.next(nowMs: environment.wallMs(), random: environment.random())
    }

    /// Sets `asked` before a task's reply is handled, to the values from the time of its request.
    mutating func answering(_ asked: (transactions: Int, revision: Int64)) { self.asked = asked }

    /// Changes the tasks, and stores the rows that `body` returns.
    mutating func change(
        _ tx: StoreTransaction,
        _ body: (inout TaskScheduler) throws -> [TaskChange]
    ) throws {
        var next = try stored(tx)
        // Clearing `scheduler` leaves a single reference, which avoids a copy. If `body` throws,
        // the tasks are reread.
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

    /// Returns a task; nil when it no longer exists.
    mutating func task(_ id: TaskID, _ tx: StoreTransaction) throws -> TaskRecord? {
        try stored(tx)[id]
    }

    /// Returns the outputs of the tasks that a task needs.
    mutating func inputs(of id: TaskID, _ tx: StoreTransaction) throws -> [TaskID: [UInt8]] {
        try stored(tx).inputs(of: id)
    }

    /// Returns the next task that can start now.
    mutating func startable(
        nowMs: Int64,
        _ conditions: TaskConditions,
        _ tx: StoreTransaction
    ) throws -> TaskID? {
        try stored(tx).startable(nowMs: nowMs, conditions: conditions).first
    }

    /// Returns the time when the next timer is due, in Unix milliseconds; nil if none is needed.
    func nextWakeMs(nowMs: Int64) -> Int64? { scheduler?.nextWakeMs(nowMs: nowMs) }

    /// Discards the tasks in memory. The next use rereads them.
    mutating func forget() { scheduler = nil }

    private mutating func stored(_ tx: StoreTransaction) throws -> TaskScheduler {
        if let scheduler { return scheduler }
        let read = try tx.scheduler()
        scheduler = read
        return read
    }
}
