import TambourClient

/// One event in a play. Every number selects some task, so a play stays valid when moves are
/// removed.
struct TaskMove {
    /// The process that acts, 0 or 1.
    var owner: Int
    /// Whether the transaction of this move reaches the disk.
    var commits: Bool
    var step: Step

    enum Step {
        case queue([Draft])
        case pass(ms: Int64)
        case conditions(TaskConditions)
        /// Calls `advance`, then starts up to this many startable tasks.
        case work(Int)
        case report(Int, Ending)
        /// Extends a lease; every second time with a report of the run's progress.
        case extend(Int)
        case release(Int)
        case cancel([Int])
        case logout
        case retry(Int, deadlineInMs: Int64?)
        case discard(Int)
        case wake(TaskConditions)
        /// Starts another version of the program, which knows all kinds except this one; nil for a
        /// version that knows all kinds.
        case review(unknownKind: Int?)
        /// The process dies and restarts. The server has completed the requests it had received.
        case die
    }

    enum Ending {
        case done
        /// The input has expired if the task has an expiring input; otherwise the task is done.
        case expiredIfItCan
        case failed(RetryClass, retryAfterMs: Int64?)
        case expired
    }

    struct Draft {
        var kind: Int
        /// The number of the lane; 0 for no lane.
        var lane: Int
        /// The number of the coalescing key; 0 for no key.
        var coalescing: Int
        var requires: TaskConditions
        var deadlineInMs: Int64?
        /// The distance back to the needed task; -1 is the task itself, lower numbers are later
        /// tasks of the same call.
        var dependencies: [(back: Int, mode: TaskDependency.Mode)]
    }
}
