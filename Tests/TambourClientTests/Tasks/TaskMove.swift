import TambourClient

/// One thing that happens in a play. Tasks are named by numbers that always find one, so that a play
/// from which moves have been taken out can still be played.
struct TaskMove {
    /// Which of the two processes acts.
    var owner: Int
    /// Whether its transaction reaches the disk.
    var commits: Bool
    var step: Step

    enum Step {
        case queue([Draft])
        case pass(ms: Int64)
        case conditions(TaskConditions)
        /// `advance`, then start as many of what is startable.
        case work(Int)
        case report(Int, Ending)
        /// Prolongs a lease; every second time with news of how far the run has come.
        case extend(Int)
        case release(Int)
        case cancel([Int])
        case logout
        case retry(Int, deadlineInMs: Int64?)
        case discard(Int)
        case wake(TaskConditions)
        /// Another version of the program starts, which knows all kinds but this one.
        case review(unknownKind: Int?)
        /// The process dies and starts anew; of what it ran, the server did what it had received.
        case die
    }

    enum Ending {
        case done
        /// The input has expired, if the task has one that can; otherwise the task is done.
        case expiredIfItCan
        case failed(RetryClass, retryAfterMs: Int64?)
        case expired
    }

    struct Draft {
        var kind: Int
        /// 0 is none.
        var lane: Int
        /// 0 is none.
        var coalescing: Int
        var requires: TaskConditions
        var deadlineInMs: Int64?
        /// How many tasks back; -1 is the task itself, below that are later ones of the same call.
        var dependencies: [(back: Int, mode: TaskDependency.Mode)]
    }
}
