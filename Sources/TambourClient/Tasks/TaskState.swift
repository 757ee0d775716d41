/// Where a task stands.
///
///     blocked -> ready -> running -> done | waiting | failed | cancelled
///     waiting -> ready, at its time or when what it waits for happens
///
/// `done`, `failed` and `cancelled` end it, but a failed task can be retried by hand, and a done one
/// is run again when its output has expired.
package enum TaskState: Hashable, Sendable {
    /// A dependency has not ended yet.
    case blocked
    /// May start as soon as its lane, a free slot and its conditions let it.
    case ready
    /// Some process holds its lease.
    case running
    /// Waits for a time or an event before the next attempt.
    case waiting
    case done
    case failed(TaskFailure)
    case cancelled
}

/// Why a task failed; the words for people are in `TaskRecord.lastError`.
package enum TaskFailure: Hashable, Sendable {
    /// The server said no and would say so again.
    case rejected
    /// It was not done in time. What the server has made of the last attempt is not known.
    case deadline
    /// Its kind or the version of its payload is not known here: another version of the app wrote it.
    case unknown
    /// Something it needs failed: the task where the trouble began, which has a reason of its own.
    case dependency(TaskID)
}

extension TaskState {
    /// Whether it has ended.
    package var isTerminal: Bool {
        switch self {
        case .blocked, .ready, .running, .waiting: false
        case .done, .failed, .cancelled: true
        }
    }

    /// Whether it is yet to run: neither running nor ended.
    package var isQueued: Bool {
        switch self {
        case .blocked, .ready, .waiting: true
        case .running, .done, .failed, .cancelled: false
        }
    }

    package var isFailed: Bool {
        if case .failed = self { return true }
        return false
    }

    /// The text that stands for it in a row; `init(storedText:)` reads it.
    package var storedText: String {
        switch self {
        case .blocked: "blocked"
        case .ready: "ready"
        case .running: "running"
        case .waiting: "waiting"
        case .done: "done"
        case .cancelled: "cancelled"
        case .failed(.rejected): "failed:rejected"
        case .failed(.deadline): "failed:deadline"
        case .failed(.unknown): "failed:unknown"
        case .failed(.dependency(let cause)): "failed:dependency:\(cause)"
        }
    }

    /// Reads what `storedText` wrote.
    ///
    /// A text that only a later version knows is `failed(.unknown)`: the task is kept, not run.
    package init(storedText: String) {
        switch storedText {
        case "blocked": self = .blocked
        case "ready": self = .ready
        case "running": self = .running
        case "waiting": self = .waiting
        case "done": self = .done
        case "cancelled": self = .cancelled
        case "failed:rejected": self = .failed(.rejected)
        case "failed:deadline": self = .failed(.deadline)
        default:
            let parts = storedText.split(separator: ":")
            if parts.count == 3, parts[0] == "failed", parts[1] == "dependency",
                let cause = Int64(parts[2])
            {
                self = .failed(.dependency(TaskID(cause)))
            } else {
                self = .failed(.unknown)
            }
        }
    }
}
