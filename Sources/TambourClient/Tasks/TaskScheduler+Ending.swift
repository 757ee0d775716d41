import TambourProtocol

extension TaskScheduler {
    /// Cancels tasks, and with them those that need them (T5, T9).
    ///
    /// Queued ones are cancelled at once. A running one is only marked: when its run succeeds it is
    /// done, and cancelled when it ends in any other way, a lost lease included. Tasks that have ended
    /// or left are passed over.
    ///
    /// What only existed to feed a cancelled task is not found by itself, for it may have a worth of
    /// its own (a chat to be created, and the first message in it): name the whole chain, which
    /// `needed(for:)` tells.
    package mutating func cancel(_ ids: [TaskID]) -> [TaskChange] {
        for id in ids { cancelOne(id) }
        propagate(from: ids)
        return commit()
    }

    /// Cancels every task and lets the failed ones go, on logout (T11).
    ///
    /// Only tasks that are running stay, marked, and what they depend on.
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

    /// Puts a failed task back into its place, by hand (T8).
    ///
    /// With it come back the tasks that it needs and that failed or were cancelled, and those that
    /// failed because of any of these. Their attempts count from nought, their `opKey`s stay: should
    /// an attempt have reached the server after all, it answers what it answered then.
    ///
    /// - Parameter deadlineMs: the new deadline of all of them, in Unix milliseconds; nil: none.
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

    /// Lets a failed task go for good, and with it the tasks that failed because they need it.
    ///
    /// - Throws: `TaskError.notFailed`, or `stillNeeded` when one that needs it has not failed.
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
            // Cancelled rather than removed: what it alone held back leaves with it.
            for dependency in table.dependents(of: id) { table.unlink(dependency) }
            table.update(id) { $0.state = .cancelled }
        }
        return commit()
    }

    /// What the program makes of the payload of a task.
    package enum CodecVerdict: Equatable, Sendable {
        /// It can be read as it is.
        case known
        /// It has been rewritten in a newer layout.
        case migrated(codecVersion: Int, payload: [UInt8])
        /// Kind or version are of another version of the app.
        case unknown
    }

    /// Goes through the tasks at the start of the program, when its version may be another one (T10).
    ///
    /// A queued task that is unknown is parked as `failed(.unknown)` with all it holds; one that was
    /// parked and is known now comes back. Running tasks are left to whoever runs them; should their
    /// payload be unknown when they are run here, `failed` with `.unreadable` parks them.
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
        // Only now: what came back may have brought unknown tasks with it.
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

    /// Queues ended tasks anew, and with them the tasks that failed for want of them.
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
        // A second look sends back those that need another failed task, which is now their cause.
        for id in revived.sorted() { evaluate(id) }
        propagate(from: revived.sorted())
    }
}
