import TambourProtocol

extension TaskScheduler {
    /// Returns the tasks that may start now, oldest first, up to the number of free slots (T4,
    /// T12).
    ///
    /// Considers only `ready` tasks: call `advance` first. A task whose conditions do not hold
    /// blocks its lane, because later tasks must not overtake it.
    package func startable(nowMs: Int64, conditions: TaskConditions) -> [TaskID] {
        let free = Self.maxRunning - table.running.count
        guard free > 0 else { return [] }
        var found: [TaskRecord] = []
        for (lane, members) in table.lanes {
            for id in lane == nil ? members : [head(of: lane)].compactMap(\.self) {
                guard let record = table[id], record.state == .ready,
                    record.requires.isSubset(of: conditions), !record.isLate(nowMs: nowMs)
                else { continue }
                found.append(record)
            }
        }
        found.sort { $0.place < $1.place }
        return found.prefix(free).map(\.id)
    }

    /// Assigns a task to a process, and gives the process the lease.
    ///
    /// After the call, `self[id]?.run` identifies the run. The row must be stored before the run
    /// begins; otherwise another process could also start the task.
    ///
    /// - Parameter owner: identifies one run of one process.
    /// - Parameter leaseUntilMs: the time from which other processes may take the task, unless the
    ///   lease is extended; at most `maxLeaseMs` from now.
    /// - Throws: `TaskError.notStartable`.
    package mutating func started(
        _ id: TaskID,
        owner: String,
        leaseUntilMs: Int64
    ) throws(TaskError) -> [TaskChange] {
        guard let record = table[id], record.state == .ready,
            table.running.count < Self.maxRunning,
            record.lane == nil || head(of: record.lane) == id
        else { throw .notStartable(id) }
        table.update(id) { record in
            record.state = .running
            record.runs += 1
            record.lease = TaskLease(owner: owner, untilMs: leaseUntilMs)
        }
        return commit()
    }

    /// Extends the lease of a run. The row's `isCancelRequested` says whether the task was
    /// cancelled.
    ///
    /// - Throws: `TaskError.runIsOver`. In this case another process may be running the task.
    package mutating func extend(
        _ run: TaskRun,
        leaseUntilMs: Int64
    ) throws(TaskError) -> [TaskChange] {
        try check(run)
        table.update(run.task) { $0.lease?.untilMs = leaseUntilMs }
        return commit()
    }

    /// Stores the progress of a run and extends its lease. The next run continues from this
    /// progress.
    ///
    /// - Parameter payload: in the layout of the row's `codecVersion`.
    /// - Throws: `TaskError.runIsOver`.
    package mutating func progressed(
        _ run: TaskRun,
        payload: [UInt8],
        leaseUntilMs: Int64
    ) throws(TaskError) -> [TaskChange] {
        try check(run)
        table.update(run.task) { record in
            record.payload = payload
            record.lease?.untilMs = leaseUntilMs
        }
        return commit()
    }

    /// Ends a run early and returns its task to the queue, for example before the process sleeps.
    /// Does not count as an attempt.
    ///
    /// - Throws: `TaskError.runIsOver`.
    package mutating func released(_ run: TaskRun) throws(TaskError) -> [TaskChange] {
        try check(run)
        endRun(run.task) { $0.state = .blocked }
        return commit()
    }

    /// Ends a successful task, in the transaction that stores its result (T2).
    ///
    /// Ignores a cancellation requested during the run, because the task has taken effect (T9).
    ///
    /// - Parameter output: the data for dependent tasks, which read it with `inputs(of:)`.
    /// - Throws: `TaskError.runIsOver`. In this case the result must not be stored.
    package mutating func completed(
        _ run: TaskRun,
        output: [UInt8]? = nil
    ) throws(TaskError) -> [TaskChange] {
        let record = try check(run)
        table.update(run.task) { record in
            record.state = .done
            record.lease = nil
            record.isCancelRequested = false
            record.hasNewInput = false
            record.lastError = nil
            record.output = output
        }
        if output != record.output { tellNewInput(of: run.task) }
        propagate(from: [run.task])
        return commit()
    }

    /// Ends an unsuccessful run. The retry class decides the task's next state (T7).
    ///
    /// The class does not matter in two cases. A task whose cancellation was requested is cancelled
    /// (T9). A task is also cancelled if a newer task with the same coalescing key is queued.
    ///
    /// - Parameter error: text for the user and for logs.
    /// - Parameter retryAfterMs: the pause that the server requested, in milliseconds; only with
    ///   `.later`.
    /// - Parameter random: spreads the pause; see `Backoff`.
    /// - Throws: `TaskError.runIsOver`.
    package mutating func failed(
        _ run: TaskRun,
        _ retry: RetryClass,
        error: String,
        retryAfterMs: Int64? = nil,
        nowMs: Int64,
        random: UInt64
    ) throws(TaskError) -> [TaskChange] {
        let record = try check(run)
        let backoffMs = Backoff.delayMs(attempts: record.attempts, random: random)
        endRun(run.task) { record in
            record.state = .waiting
            record.lastError = error
            switch retry {
            case .never:
                record.state = .failed(.rejected)
            case .unreadable:
                record.state = .failed(.unknown)
            case .later:
                let pauseMs = retryAfterMs.map { min(max($0, 0), Self.maxWaitMs) }
                record.attempts += 1
                record.nextAtMs = nowMs + (pauseMs ?? backoffMs)
                // A new input may help, but must not shorten a pause that the server requested.
                record.wakesOn = pauseMs == nil ? .newInput : []
            case .networkLost:
                // A timer wakes the task too, because one request may be lost while the connection
                // stays open.
                record.nextAtMs = nowMs + backoffMs
                record.wakesOn = [.connected, .newInput]
            case .afterLogin:
                record.attempts += 1
                record.wakesOn = .loggedIn
            case .metered:
                record.wakesOn = .unmetered
            }
            if record.state == .waiting, record.isLate(nowMs: nowMs) {
                record.become(.failed(.deadline))
            }
        }
        return commit()
    }

    /// Ends a run whose input has expired. The tasks that produced the input run again, then this
    /// task (T5).
    ///
    /// Counts as an attempt. From the second attempt on, the producing tasks first wait, as after a
    /// failure of class `later`. Without this pause, an input that always expires immediately would
    /// keep client and server busy. No producing task runs again if the input is already being
    /// renewed, or was renewed since this run began. A task without a `refresh` dependency fails,
    /// because its input cannot be renewed.
    ///
    /// - Parameter expired: the tasks whose output has expired; nil when the server does not name
    ///   them.
    /// - Throws: `TaskError.runIsOver`.
    package mutating func refresh(
        _ run: TaskRun,
        expired: Set<TaskID>? = nil,
        error: String,
        nowMs: Int64,
        random: UInt64
    ) throws(TaskError) -> [TaskChange] {
        let record = try check(run)
        let sources = table.dependencies(of: run.task).compactMap { dependency -> TaskID? in
            guard dependency.mode == .refresh else { return nil }
            return expired?.contains(dependency.on) ?? true ? dependency.on : nil
        }
        if sources.isEmpty {
            return try failed(run, .never, error: error, nowMs: nowMs, random: random)
        }
        if !record.hasNewInput, !record.isCancelRequested, !isSuperseded(record) {
            let pauseMs = Backoff.delayMs(attempts: record.attempts - 1, random: random)
            for source in sources where table[source]?.state == .done {
                runAgain(source, atMs: record.attempts == 0 ? nil : nowMs + pauseMs)
            }
        }
        endRun(run.task) { record in
            record.state = .blocked
            record.lastError = error
            if !record.hasNewInput { record.attempts += 1 }
        }
        return commit()
    }

    /// Returns the first unfinished task of a lane; nil while a task of the lane is running.
    private func head(of lane: String?) -> TaskID? {
        // The running task need not be the first: a retried task returns to its place, which may be
        // before the place of the running task.
        if table.running.contains(where: { table[$0]?.lane == lane }) { return nil }
        return table.lanes[lane]?.first { table[$0]?.state.isTerminal == false }
    }

    @discardableResult
    private func check(_ run: TaskRun) throws(TaskError) -> TaskRecord {
        guard let record = table[run.task], record.run == run else { throw .runIsOver(run) }
        return record
    }

    /// Ends a run without success. Releases the lease, then applies `change`, or cancels the task
    /// if it is no longer wanted.
    mutating func endRun(_ id: TaskID, _ change: (inout TaskRecord) -> Void) {
        guard let record = table[id] else { return }
        let isWanted = !record.isCancelRequested && !isSuperseded(record)
        table.update(id) { record in
            change(&record)
            record.lease = nil
            record.hasNewInput = false
            record.isCancelRequested = false
            if !isWanted { record.become(.cancelled) }
        }
        evaluate(id)
        propagate(from: [id])
    }

    /// Returns whether a newer queued task makes this task redundant; false while other tasks
    /// depend on this task.
    private func isSuperseded(_ record: TaskRecord) -> Bool {
        guard let key = record.coalescingKey, let lane = record.lane,
            table.dependents(of: record.id).isEmpty
        else { return false }
        return tasks(inLane: lane).contains {
            $0.coalescingKey == key && $0.place > record.place && $0.state.isQueued
        }
    }

    private mutating func runAgain(_ id: TaskID, atMs: Int64?) {
        table.update(id) { record in
            record.state = atMs == nil ? .blocked : .waiting
            record.nextAtMs = atMs
            record.round += 1
            record.attempts = 0
        }
        evaluate(id)
        propagate(from: [id])
    }

    private mutating func tellNewInput(of id: TaskID) {
        for dependency in table.dependents(of: id) where dependency.mode != .after {
            guard let record = table[dependency.task] else { continue }
            if record.state == .running {
                table.update(record.id) { $0.hasNewInput = true }
            } else if record.state == .waiting, record.wakesOn.contains(.newInput) {
                requeue(record.id)
            }
        }
    }
}
