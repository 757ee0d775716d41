import TambourProtocol

/// The queue of tasks, from the user's action until the server has carried it out.
extension ClientCore {
    /// The length of a run's lease, after which another process may take over the task.
    static let leaseMs: Int64 = 120_000

    /// Queues a task, and shows its effect.
    ///
    /// - Parameter dependencies: the tasks that it depends on; already queued.
    @discardableResult
    func queue(
        _ task: some QueuedTask,
        after dependencies: [TaskID: TaskDependency.Mode] = [:],
        _ tx: StoreTransaction
    ) throws -> OutgoingID {
        let now = environment.wallMs()
        let id = TaskID(clientIDs.next(nowMs: now, random: environment.random()).rawValue)
        let new = NewTask(
            id: id,
            kind: type(of: task).kind,
            codecVersion: type(of: task).version,
            payload: try TaskKinds.write(task),
            opKey: "\(id)",
            lane: task.lane,
            coalescingKey: task.coalescingKey,
            requires: task.requires,
            deadlineMs: task.patience.map { now + $0.wholeMilliseconds },
            dependencies: dependencies
        )
        var next = try scheduler(tx)
        try tx.apply(next.insert([new], nowMs: now))
        tasks = next
        try task.prepare(id, in: self, tx)
        return OutgoingID(id.rawValue)
    }

    /// Cancels a task that is not done yet; for one in flight, the server's answer decides.
    func cancel(_ outgoing: OutgoingID, _ tx: StoreTransaction) throws {
        var next = try scheduler(tx)
        let id = TaskID(outgoing.rawValue)
        // The tasks that it needs were queued for it alone, and are cancelled too.
        let steps = next.needed(for: id)
        let record = next[id]
        if next[id]?.state.isFailed == true {
            try tx.apply(next.discard(id))
            for step in steps.reversed() where next[step]?.state.isFailed == true {
                try tx.apply(next.discard(step))
            }
            try tx.apply(next.cancel(steps))
        } else {
            try tx.apply(next.cancel(steps + [id]))
        }
        tasks = next
        try ended(record.map { [$0] } ?? [], tx)
    }

    /// Retries a task that the server refused. Does nothing if it is already being retried, or
    /// gone.
    func retry(_ outgoing: OutgoingID, _ tx: StoreTransaction) throws {
        var next = try scheduler(tx)
        let id = TaskID(outgoing.rawValue)
        guard next[id]?.state.isFailed == true else { return }
        try tx.apply(next.retry(id))
        tasks = next
    }

    /// The tasks as they are stored.
    func scheduler(_ tx: StoreTransaction) throws -> TaskScheduler {
        if let tasks { return tasks }
        let read = try tx.scheduler()
        tasks = read
        return read
    }

    /// Takes over the tasks of processes that drove this store before: no other process runs them
    /// now.
    func adoptTasks(_ tx: StoreTransaction) throws {
        var next = try scheduler(tx)
        let me = owner
        let givenUp = next.tasks.filter(\.isCancelRequested)
        try tx.apply(next.recover(nowMs: environment.wallMs(), isDead: { $0 != me }))
        try tx.apply(next.review { TaskKinds.read($0) == nil ? .unknown : .known })
        tasks = next
        try ended(givenUp, tx)
        removeStrayPhotos(next)
    }

    /// Wakes the tasks that wait for a login.
    func wakeTasks(_ tx: StoreTransaction) throws {
        var next = try scheduler(tx)
        try tx.apply(next.wake([.connected, .loggedIn]))
        tasks = next
    }

    /// Starts the tasks that can start now.
    func runTasks(_ tx: StoreTransaction) throws {
        var next = try scheduler(tx)
        let now = environment.wallMs()
        try tx.apply(next.advance(nowMs: now))
        tasks = next
        try endUnwantedPhotoRuns(tx)
        next = try scheduler(tx)
        let conditions: TaskConditions = isLive ? [.connected, .loggedIn] : []
        // A task that ends at once may unblock others.
        while let id = next.startable(nowMs: now, conditions: conditions).first {
            try tx.apply(next.started(id, owner: owner, leaseUntilMs: now + Self.leaseMs))
            tasks = next
            guard let record = next[id], let run = record.run else { continue }
            if let task = TaskKinds.read(record) {
                try task.start(run, in: self, tx)
            } else {
                try end(run, .unreadable, "an unknown kind of task", nil, tx)
            }
            next = try scheduler(tx)
        }
    }

    /// Sends the request of a task.
    func send<Kind: ClientTask>(_ task: Kind, _ run: TaskRun, _ tx: StoreTransaction) throws {
        if task.needsNewInput(atHereMs: environment.wallMs()) { return try renewInput(of: run, tx) }
        let request: Kind.Request
        do {
            request = try task.request(tx)
        } catch ClientError.invalid(let reason) {
            try task.refused(in: self, tx)
            return try end(run, .never, reason, nil, tx)
        }
        let asked = (subjects.transactions, try tx.lastRevision())
        call(request) { [self] answer, tx in
            taskAsked = asked
            switch answer {
            case .success(let reply):
                var next = try scheduler(tx)
                // Ignore the answer to an ended run: another run has taken over the task.
                guard let record = next[run.task], record.run == run else { return }
                // The task may have been rewritten since the request was sent.
                let wanted = TaskKinds.read(record) as? Kind ?? task
                try wanted.succeeded(reply, in: self, tx)
                if let chat = wanted.changedChat { try noteChanged(chat, tx) }
                try tx.removeOverlays(of: run.task)
                // `succeeded` may have queued further tasks.
                next = try scheduler(tx)
                try tx.apply(next.completed(run))
                tasks = next
                try wanted.ended(in: self, tx)
            case .failure(let error): try failed(task, run, error, tx)
            }
        }
    }

    private func failed(
        _ task: some ClientTask,
        _ run: TaskRun,
        _ error: ClientError,
        _ tx: StoreTransaction
    ) throws {
        switch error {
        case .refused where task.needsNewInput(atHereMs: environment.wallMs()):
            try renewInput(of: run, tx)
        case .refused(_, _, let wait):
            let pause = wait.map { $0.wholeMilliseconds }
            switch error.code?.retry {
            case .later: return try end(run, .later, error.description, pause, tx)
            case .afterLogin: return try end(run, .afterLogin, error.description, nil, tx)
            case .never, .refresh, nil: break
            }
            // A refusal with an unknown code may be temporary: the pause says so.
            if error.code == nil, let pause {
                return try end(run, .later, error.description, pause, tx)
            }
            try end(run, .never, error.description, nil, tx)
            if !task.staysWhenRefused {
                var next = try scheduler(tx)
                // A task that was cancelled or replaced in the meantime is gone already.
                if next[run.task]?.state.isFailed == true {
                    try tx.apply(next.discard(run.task))
                }
                tasks = next
                try tx.removeOverlays(of: run.task)
                if task.tellsRefusal { publish(.refused(String(describing: error))) }
            }
            try task.refused(in: self, tx)
        case .disconnected, .timedOut:
            try end(run, .networkLost, error.description, nil, tx)
            if error == .timedOut, task.mustBeAnswered { try breakConnection(tx) }
        default:
            try end(run, .later, error.description, nil, tx)
        }
    }

    /// Ends a run whose input has expired, so that the input is made again before the next run.
    private func renewInput(of run: TaskRun, _ tx: StoreTransaction) throws {
        var next = try scheduler(tx)
        guard next[run.task]?.run == run else { return }
        try tx.apply(
            next.refresh(
                run,
                error: "what was uploaded is not kept any more",
                nowMs: environment.wallMs(),
                random: environment.random()
            )
        )
        tasks = next
    }

    func end(
        _ run: TaskRun,
        _ retry: RetryClass,
        _ error: String,
        _ retryAfterMs: Int64?,
        _ tx: StoreTransaction
    ) throws {
        var next = try scheduler(tx)
        guard let record = next[run.task], record.run == run else { return }
        try tx.apply(
            next.failed(
                run,
                retry,
                error: error,
                retryAfterMs: retryAfterMs,
                nowMs: environment.wallMs(),
                random: environment.random()
            )
        )
        tasks = next
        try ended([record], tx)
    }

    /// Lets cancelled tasks that have been removed show the state without them.
    private func ended(_ records: [TaskRecord], _ tx: StoreTransaction) throws {
        guard let tasks else { return }
        for record in records where tasks[record.id] == nil {
            try (TaskKinds.read(record) as? any ClientTask)?.ended(in: self, tx)
        }
    }

    /// The number of milliseconds until time alone changes something; nil for never.
    var tasksWakeAfterMs: Int64? {
        let now = environment.wallMs()
        return tasks?.nextWakeMs(nowMs: now).map { max(0, $0 - now) }
    }
}
