/// The state of a task.
///
///     blocked -> ready -> running -> done | waiting | failed | cancelled
///     waiting -> ready, at its time or after the awaited event
///
/// `done`, `failed` and `cancelled` are terminal. However, the user can retry a failed task, and a
/// done task runs again when its output has expired.
package enum TaskState: Hashable, Sendable {
    /// A dependency has not ended yet.
    case blocked
    /// May start when its lane, a free slot and its conditions allow it.
    case ready
    /// A process holds the lease of the task.
    case running
    /// Waits for a time or an event before the next attempt.
    case waiting
    case done
    case failed(TaskFailure)
    case cancelled
}

/// The reason why a task failed. `TaskRecord.lastError` has the text for the user.
package enum TaskFailure: Hashable, Sendable {
    /// The server refused, and would refuse again.
    case rejected
    /// The deadline passed. Whether the last attempt took effect on the server is unknown.
    case deadline
    /// The kind or the payload version is unknown to this version of the app: another version wrote
    /// the task.
    case unknown
    /// A needed task failed. The id names the task that failed first. The record of that task has
    /// the reason.
    case dependency(TaskID)
}

extension TaskState {
    /// Whether the state is terminal.
    package var isTerminal: Bool {
        switch self {
        case .blocked, .ready, .running, .waiting: false
        case .done, .failed, .cancelled: true
        }
    }

    /// Whether the task is neither running nor ended.
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

    /// The stored text of the state. `init(storedText:)` reads it.
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

    /// Parses a `storedText`.
    ///
    /// A text from a later version becomes `failed(.unknown)`: the task is kept but not run.
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
