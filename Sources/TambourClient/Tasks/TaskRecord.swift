/// A task, as stored in one row.
package struct TaskRecord: Equatable, Sendable {
    package let id: TaskID
    /// The name of the code that runs the task.
    package let kind: String
    /// The version of the layout of `payload`.
    package var codecVersion: Int
    /// All data that a run needs, apart from the outputs of the task's dependencies.
    package var payload: [UInt8]
    /// The lane, such as `chat:<id>` for sends; nil for no lane. Tasks of a lane run one at a time,
    /// in order.
    package let lane: String?
    /// While this task is queued, a later task with the same lane and key replaces it.
    package let coalescingKey: String?
    /// The conditions under which the task may start.
    package let requires: TaskConditions
    /// The position of the task within its lane and among all tasks. No two tasks share a place.
    package let place: Int64
    package var state: TaskState
    /// The number of failed attempts. A lost network or the death of the process does not count.
    package var attempts: Int
    /// The number of runs, which identifies the current run.
    package var runs: Int
    /// The number of times that the task had to run again because its output had expired.
    package var round: Int
    /// The time when a waiting task becomes ready by itself, in Unix milliseconds; nil when only an
    /// event wakes it.
    package var nextAtMs: Int64?
    /// The events that wake a waiting task earlier.
    package var wakesOn: TaskConditions
    /// The time of queueing, in Unix milliseconds.
    package let createdAtMs: Int64
    /// The deadline, in Unix milliseconds; nil for no deadline.
    package var deadlineMs: Int64?
    /// Identifies the operation. The server's idempotency key is `requestKey`.
    package let opKey: String
    /// The lease of the process that runs the task; nil unless the task is running.
    package var lease: TaskLease?
    /// Whether the task was cancelled while running. The process that runs it should stop if it
    /// can.
    package var isCancelRequested: Bool
    /// Whether a dependency got a new output while this task ran with the old output.
    package var hasNewInput: Bool
    /// The last error, as text for the user and for logs.
    package var lastError: String?
    /// The result of the task for its dependents.
    package var output: [UInt8]?

    package init(
        id: TaskID,
        kind: String,
        codecVersion: Int,
        payload: [UInt8],
        lane: String?,
        coalescingKey: String?,
        requires: TaskConditions,
        place: Int64,
        state: TaskState,
        attempts: Int,
        runs: Int,
        round: Int,
        nextAtMs: Int64?,
        wakesOn: TaskConditions,
        createdAtMs: Int64,
        deadlineMs: Int64?,
        opKey: String,
        lease: TaskLease?,
        isCancelRequested: Bool,
        hasNewInput: Bool,
        lastError: String?,
        output: [UInt8]?
    ) {
        self.id = id
        self.kind = kind
        self.codecVersion = codecVersion
        self.payload = payload
        self.lane = lane
        self.coalescingKey = coalescingKey
        self.requires = requires
        self.place = place
        self.state = state
        self.attempts = attempts
        self.runs = runs
        self.round = round
        self.nextAtMs = nextAtMs
        self.wakesOn = wakesOn
        self.createdAtMs = createdAtMs
        self.deadlineMs = deadlineMs
        self.opKey = opKey
        self.lease = lease
        self.isCancelRequested = isCancelRequested
        self.hasNewInput = hasNewInput
        self.lastError = lastError
        self.output = output
    }

    /// The idempotency key under which the server stores the reply of this operation.
    ///
    /// All attempts share the key. A run that renews an expired output is a new operation: under
    /// the old key, the server would reply with the expired output.
    package var requestKey: String { round == 0 ? opKey : "\(opKey)~\(round)" }

    /// Enters a state, and clears the wake time and wake events.
    mutating func become(_ state: TaskState) {
        self.state = state
        nextAtMs = nil
        wakesOn = []
    }

    /// The current run, which reports must identify; nil unless the task is running.
    package var run: TaskRun? {
        guard state == .running, let lease else { return nil }
        return TaskRun(task: id, owner: lease.owner, number: runs)
    }
}

/// The right of one process to run a task for a limited time.
package struct TaskLease: Hashable, Sendable {
    /// Identifies one run of one process. A restarted process uses another name.
    package let owner: String
    /// The time from which other processes may take the task, in Unix milliseconds.
    package var untilMs: Int64

    package init(owner: String, untilMs: Int64) {
        self.owner = owner
        self.untilMs = untilMs
    }
}

/// One run of a task. A report that names an ended run has no effect.
package struct TaskRun: Hashable, Sendable {
    package let task: TaskID
    package let owner: String
    /// The number of the run, counted over all processes.
    package let number: Int

    package init(task: TaskID, owner: String, number: Int) {
        self.task = task
        self.owner = owner
        self.number = number
    }
}
