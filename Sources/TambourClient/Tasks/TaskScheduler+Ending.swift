import TambourProtocol

extension TaskScheduler {
    /// Cancels tasks, and the tasks that need them (T5, T9).
    ///
    /// Queued ones are cancelled at once. A running one is only marked: it is done if its run
    /// succeeds, and cancelled if the run ends in any other way, including a lost lease. Tasks that
    /// have ended or are not held are skipped.
    ///
    /// A task that only fed a cancelled one is not cancelled with it, since it may have a value of
    /// its own (creating a chat, before the first message in it). To cancel it as well, pass the
    /// whole chain, which `needed(for:)` returns.
    package mutating func cancel(_ ids: [TaskID]) -> [TaskChange] {
        for id in ids { cancelOne(id) }
        propagate(from: ids)
        return commit()
    }

    /// Cancels all tasks and discards the failed ones, on logout (T11).
    ///
    /// Only running tasks, which are marked, and their dependencies stay.
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

    /// Returns a failed task to its place in the queue, by hand (T8).
    ///
    /// The tasks that it needs and that failed or were cancelled come back too, and so do the tasks
    /// that failed because of any of these. Their attempts are reset to zero but their `opKey`s
    /// stay: if an attempt did reach the server, the server repeats its earlier answer.
    ///
    /// - Parameter deadlineMs: the new deadline of all of them, in Unix milliseconds; nil for none.
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
    /// - Throws: `TaskError.notFailed`, or `stillNeeded` when a task that needs it has not failed.
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
            // Cancelled rather than removed, so that `commit` also removes what only this task
            // kept.
            for dependency in table.dependents(of: id) { table.unlink(dependency) }
            table.update(id) { $0.state = .cancelled }
        }
        return commit()
    }

    /// The verdict of the program on a task's payload.
    package enum CodecVerdict: Equatable, Sendable {
        /// The payload can be read as it is.
        case known
        /// The payload has been rewritten in a newer layout.
        case migrated(codecVersion: Int, payload: [UInt8])
        /// Another version of the app wrote the kind or the payload version.
        case unknown
    }

    /// Checks the tasks at program start, when the version of the program may have changed (T10).
    ///
    /// A queued task that is unknown is parked as `failed(.unknown)`, with its payload; a parked
    /// task that is known now is queued again. Running tasks are left to their owners. If their
    /// payload is unknown when they run here, `failed` with `.unreadable` parks them.
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
        // Only after `revive`, which may have queued unknown tasks.
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

    /// Queues ended tasks again, and the tasks that failed because of them.
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
        // Evaluates again: a task may need another one that failed, which is now its cause.
        for id in revived.sorted() { evaluate(id) }
        propagate(from: revived.sorted())
    }
}
