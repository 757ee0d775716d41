/// One task as it is stored: one row.
package struct TaskRecord: Equatable, Sendable {
    package let id: TaskID
    /// Which part of the program runs it.
    package let kind: String
    /// The version of the layout of `payload`.
    package var codecVersion: Int
    /// All that a run needs to know, apart from the outputs of its dependencies.
    package var payload: [UInt8]
    /// Tasks of one lane run one at a time and in their order (`chat:<id>` for sends); nil for none.
    package let lane: String?
    /// A later task of the same lane and key takes the place of this one while it is queued.
    package let coalescingKey: String?
    /// What must hold for it to start.
    package let requires: TaskConditions
    /// The order of tasks, in a lane and among lanes. No two tasks share a place.
    package let place: Int64
    package var state: TaskState
    /// The attempts that failed and count: a lost network and a death of the process do not.
    package var attempts: Int
    /// How often it was started, which tells a run from the one before.
    package var runs: Int
    /// How often it was asked to run again because its output had expired.
    package var round: Int
    /// When a waiting task becomes ready by itself, in Unix milliseconds; nil: only by an event.
    package var nextAtMs: Int64?
    /// What wakes a waiting task before that.
    package var wakesOn: TaskConditions
    /// When it was queued, in Unix milliseconds.
    package let createdAtMs: Int64
    /// When it fails if it has not been done, in Unix milliseconds; nil: never.
    package var deadlineMs: Int64?
    /// Names the operation; the server's key for a retry is `requestKey`.
    package let opKey: String
    /// Who runs it; nil unless it is running.
    package var lease: TaskLease?
    /// Somebody cancelled it while it ran: whoever runs it should stop if it can.
    package var isCancelRequested: Bool
    /// A dependency got another output while this one ran with the old one.
    package var hasNewInput: Bool
    /// What went wrong last, for people and logs.
    package var lastError: String?
    /// What it left for the tasks that depend on it.
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

    /// The key under which the server stores the reply of this operation.
    ///
    /// All attempts share it. A run that renews an expired output is another operation: under the
    /// old key the server would answer with the output that has expired.
    package var requestKey: String { round == 0 ? opKey : "\(opKey)~\(round)" }

    /// Enters a state, and stops waiting for anything.
    mutating func become(_ state: TaskState) {
        self.state = state
        nextAtMs = nil
        wakesOn = []
    }

    /// The run that is going on, which reports must name; nil unless it is running.
    package var run: TaskRun? {
        guard state == .running, let lease else { return nil }
        return TaskRun(task: id, owner: lease.owner, number: runs)
    }
}

/// The right of one process to run a task for a while.
package struct TaskLease: Hashable, Sendable {
    /// Names one life of one process: a process that starts anew takes another name.
    package let owner: String
    /// When others may take the task, in Unix milliseconds.
    package var untilMs: Int64

    package init(owner: String, untilMs: Int64) {
        self.owner = owner
        self.untilMs = untilMs
    }
}

/// One run of a task. A report that names a run which is over has no effect.
package struct TaskRun: Hashable, Sendable {
    package let task: TaskID
    package let owner: String
    /// Counts the runs of the task, whoever ran it.
    package let number: Int

    package init(task: TaskID, owner: String, number: Int) {
        self.task = task
        self.owner = owner
        self.number = number
    }
}
