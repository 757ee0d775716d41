import TambourProtocol

extension TaskScheduler {
    /// Cancels tasks, and the tasks that need them (T5, T9).
    ///
    /// Queued tasks are cancelled at once. A running task is only marked for cancellation: it
    /// becomes done if its run succeeds, and cancelled if the run ends in any other way, including
    /// a lost lease. Ended and unknown tasks are skipped.
    ///
    /// A task that only a cancelled task needs is not cancelled, because it may have a value of its
    /// own (for example, creating a chat before the first message). To cancel both, also pass the
    /// tasks that `needed(for:)` returns.
    package mutating func cancel(_ ids: [TaskID]) -> [TaskChange] {
        for id in ids { cancelOne(id) }
        propagate(from: ids)
        return commit()
    }

    /// On logout, cancels all tasks and discards the failed tasks (T11).
    ///
    /// Only running tasks and their dependencies stay. The running tasks are marked for
    /// cancellation.
    package mutating func cancelAll() -> [TaskChange] {
        for (id, record) in table.records {
            if record.state.isFailed {
                table.update(id) { $0.state = .cancelled }
            } else {
                cancelOne(id)
            }
        }
        return commit()
    }

    /// Returns a failed task to its place in the queue, on request of the user (T8).
    ///
    /// Failed or cancelled tasks that this task needs also return to the queue. So do the tasks
    /// that failed because one of these tasks failed. The number of attempts of each returned task
    /// becomes zero, but its `opKey` stays: if an attempt did reach the server, the server repeats
    /// its earlier reply.
    ///
    /// - Parameter deadlineMs: the new deadline of all these tasks, in Unix milliseconds; nil for
    ///   none.
    /// - Throws: `TaskError.notFailed`.
    package mutating func retry(
        _ id: TaskID,
        deadlineMs: Int64? = nil
    ) throws(TaskError) -> [TaskChange] {
        guard table[id]?.state.isFailed == true else { throw .notFailed(id) }
        var revived: Set<TaskID> = []
        var upwards = [id]
        while let next = upwards.popLast() {
            guard let state = table[next]?.state, state.isFailed || state == .cancelled,
                revived.insert(next).inserted
            else { continue }
            upwards += table.dependencies(of: next).filter { $0.mode != .after }.map(\.on)
        }
        revive(revived) { $0.deadlineMs = deadlineMs }
        return commit()
    }

    /// Discards a failed task, and the tasks that failed because they need it.
    ///
    /// - Throws: `TaskError.notFailed`, or `stillNeeded` when a dependent of the task has not
    ///   failed.
    package mutating func discard(_ id: TaskID) throws(TaskError) -> [TaskChange] {
        guard table[id]?.state.isFailed == true else { throw .notFailed(id) }
        var going: Set<TaskID> = []
        var downwards = [id]
        while let next = downwards.popLast() {
            guard going.insert(next).inserted else { continue }
            if table[next]?.state.isFailed != true { throw .stillNeeded(by: next) }
            downwards += table.dependents(of: next).filter { $0.mode != .after }.map(\.task)
        }
        for id in going {
            // Cancel the task, so that `commit` removes it together with the tasks that were kept
            // only for it. A plain removal would leave those tasks.
            for dependency in table.dependents(of: id) { table.unlink(dependency) }
            table.update(id) { $0.state = .cancelled }
        }
        return commit()
    }

    /// The program's verdict on whether it can read the payload of a task.
    package enum CodecVerdict: Equatable, Sendable {
        /// The payload is readable without changes.
        case known
        /// The payload has been rewritten in a newer layout.
        case migrated(codecVersion: Int, payload: [UInt8])
        /// The kind or the payload version is unknown: another version of the app wrote the task.
        case unknown
    }

    /// Checks the tasks at program start, when the version of the program may have changed (T10).
    ///
    /// A queued task of an unknown kind or layout is parked as `failed(.unknown)`, with its
    /// payload. A parked task that is now known is queued again. Running tasks stay with their
    /// owners. If a payload turns out to be unknown only when this process runs the task, the
    /// process parks the task by calling `failed` with `.unreadable`.
    package mutating func review(_ verdict: (TaskRecord) -> CodecVerdict) -> [TaskChange] {
        var unknown: [TaskID] = []
        var known: Set<TaskID> = []
        for record in table.records.values where record.state != .running {
            switch verdict(record) {
            case .known:
                if record.state == .failed(.unknown) { known.insert(record.id) }
            case .migrated(let codecVersion, let payload):
                table.update(record.id) { record in
                    record.codecVersion = codecVersion
                    record.payload = payload
                }
                if record.state == .failed(.unknown) { known.insert(record.id) }
            case .unknown:
                unknown.append(record.id)
            }
        }
        revive(known) { _ in }
        // Filter after `revive`, because it may have returned tasks with unknown payloads to the
        // queue.
        let parked = unknown.filter { table[$0]?.state.isQueued == true }
        for id in parked {
            table.update(id) { record in
                record.become(.failed(.unknown))
                record.lastError = "unknown task: \(record.kind) \(record.codecVersion)"
            }
        }
        for id in table.records.keys.sorted() where evaluate(id) { propagate(from: [id]) }
        return commit()
    }

    private mutating func cancelOne(_ id: TaskID) {
        guard let state = table[id]?.state, !state.isTerminal else { return }
        table.update(id) { record in
            if state == .running {
                record.isCancelRequested = true
            } else {
                record.become(.cancelled)
            }
        }
    }

    /// Queues ended tasks again, together with the tasks that failed because of them.
    private mutating func revive(_ ids: Set<TaskID>, _ change: (inout TaskRecord) -> Void) {
        var revived = ids
        var downwards = Array(ids)
        while let next = downwards.popLast() {
            for dependency in table.dependents(of: next) where dependency.mode != .after {
                guard case .failed(.dependency) = table[dependency.task]?.state,
                    revived.insert(dependency.task).inserted
                else { continue }
                downwards.append(dependency.task)
            }
        }
        for id in revived {
            table.update(id) { record in
                record.state = .blocked
                record.attempts = 0
                record.lastError = nil
                change(&record)
            }
        }
        // A revived task may also need a task that is still failed. `evaluate` then fails the
        // revived task because of that failed task.
        for id in revived.sorted() { evaluate(id) }
        propagate(from: revived.sorted())
    }
}
