import TambourProtocol

/// The queue of tasks, from the user's action to its completion on the server.
extension ClientCore {
    /// The length of a run's lease, after which another process may take over the task.
    static let leaseMs: Int64 = 120_000

    /// Queues a task, and shows its effect.
    ///
    /// - Parameter dependencies: queued tasks that the new task depends on.
    @discardableResult
    func queue(
        _ task: some QueuedTask,
        after dependencies: [TaskID: TaskDependency.Mode] = [:],
        _ tx: StoreTransaction
    ) throws -> OutgoingID {
        let now = environment.wallMs()
        let id = TaskID(tasks.nextID(environment).rawValue)
        let new = NewTask(
            id: id,
            kind: task.storedKind,
            codecVersion: type(of: task).version,
            payload: try TaskKinds.write(task),
            opKey: "\(id)",
            lane: task.lane,
            coalescingKey: task.coalescingKey,
            requires: task.requires,
            deadlineMs: task.patience.map { now + $0.wholeMilliseconds },
            dependencies: dependencies
        )
        try tasks.change(tx) { try $0.insert([new], nowMs: now) }
        try task.prepare(id, in: self, tx)
        return OutgoingID(id.rawValue)
    }

    /// Cancels a pending task, or discards a failed one. If the task is in flight, the server's
    /// reply decides whether the task takes effect.
    func cancel(_ outgoing: OutgoingID, _ tx: StoreTransaction) throws {
        let id = TaskID(outgoing.rawValue)
        let record = try tasks.task(id, tx)
        if let record, try withdraw(record, tx) { return }
        try tasks.change(tx) { next in
            // The tasks that this task needs were queued only for it. Cancel them too.
            let steps = next.needed(for: id)
            guard record?.state.isFailed == true else { return next.cancel(steps + [id]) }
            var changes = try next.discard(id)
            for step in steps.reversed() where next[step]?.state.isFailed == true {
                changes += try next.discard(step)
            }
            return changes + next.cancel(steps)
        }
        try ended(record.map { [$0] } ?? [], tx)
    }

    /// Retries a task that the server refused. Does nothing if the task is already being retried or
    /// no longer exists.
    func retry(_ outgoing: OutgoingID, _ tx: StoreTransaction) throws {
        let id = TaskID(outgoing.rawValue)
        try tasks.change(tx) { try $0[id]?.state.isFailed == true ? $0.retry(id) : [] }
    }

    /// Takes over the tasks of processes that previously owned the connection and no longer run
    /// them.
    func adoptTasks(_ tx: StoreTransaction) throws {
        let (me, now) = (owner, environment.wallMs())
        let givenUp = try tasks.read(tx) { $0.tasks.filter(\.isCancelRequested) }
        try tasks.change(tx) { next in
            next.recover(nowMs: now, isDead: { $0 != me })
                + next.review { TaskKinds.read($0) == nil ? .unknown : .known }
        }
        try ended(givenUp, tx)
        try photos.removeStray(tx)
    }

    /// Wakes the tasks that wait for a login.
    func wakeTasks(_ tx: StoreTransaction) throws {
        try tasks.change(tx) { $0.wake([.connected, .loggedIn]) }
    }

    /// Starts all tasks that can start now.
    func runTasks(_ tx: StoreTransaction) throws {
        let now = environment.wallMs()
        try tasks.change(tx) { $0.advance(nowMs: now) }
        try photos.endUnwanted(tx)
        // A task that ends at once may unblock other tasks.
        while let id = try tasks.startable(nowMs: now, conditions, tx) {
            try tasks.change(tx) {
                try $0.started(id, owner: owner, leaseUntilMs: now + Self.leaseMs)
            }
            guard let record = try tasks.task(id, tx), let run = record.run else { continue }
            if let task = TaskKinds.read(record) {
                try task.start(run, in: self, tx)
            } else {
                try end(run, .unreadable, "an unknown kind of task", nil, tx)
            }
        }
    }

    /// The conditions that hold now.
    private var conditions: TaskConditions {
        guard isLive else { return [] }
        var conditions: TaskConditions = [.connected, .loggedIn]
        // Even if the server refused to send the folders, tasks that change folders start: the
        // server refuses them too, and the user learns why.
        if folders.isCurrent || folders.isRefused { conditions.insert(.currentFolders) }
        return conditions
    }

    /// Sends the request of a task.
    func send<Kind: ClientTask>(_ task: Kind, _ run: TaskRun, _ tx: StoreTransaction) throws {
        if task.needsNewInput(atHereMs: environment.wallMs()) { return try renewInput(of: run, tx) }
        let request: Kind.Request
        do {
            request = try task.request(tx)
        } catch ClientError.invalid(let reason) {
            return try refuse(task, run, .invalid(reason: reason), tx)
        }
        let asked = (subjects.transactions, try tx.lastRevision())
        call(request) { [self] answer, tx in
            tasks.answering(asked)
            switch answer {
            case .success(let reply):
                // Ignore the reply if its run has ended, because another run may have the task.
                guard let record = try tasks.task(run.task, tx), record.run == run else { return }
                // The task may have been rewritten since the request was sent.
                let wanted = TaskKinds.read(record) as? Kind ?? task
                try wanted.succeeded(reply, in: self, tx)
                if let chat = wanted.changedChat { try noteChanged(chat, tx) }
                try tx.removeOverlays(of: run.task)
                try tasks.change(tx) { try $0.completed(run) }
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
            // A refusal with an unknown code is temporary if it requests a pause.
            if error.code == nil, let pause {
                return try end(run, .later, error.description, pause, tx)
            }
            try refuse(task, run, error, tx)
        case .disconnected, .timedOut:
            try end(run, .networkLost, error.description, nil, tx)
            if error == .timedOut, task.mustBeAnswered { try breakConnection(tx) }
        default:
            try end(run, .later, error.description, nil, tx)
        }
    }

    /// Ends a run without a retry: the server refused the task, or the request would have no
    /// effect.
    private func refuse(
        _ task: some ClientTask,
        _ run: TaskRun,
        _ error: ClientError,
        _ tx: StoreTransaction
    ) throws {
        let words = try task.words(for: error, tx)
        try end(run, .never, words, nil, tx)
        if !task.staysWhenRefused {
            // A task that was cancelled or replaced in the meantime no longer exists.
            try tasks.change(tx) {
                try $0[run.task]?.state.isFailed == true ? $0.discard(run.task) : []
            }
            try tx.removeOverlays(of: run.task)
            if task.tellsRefusal { publish(.refused(words)) }
        }
        try task.refused(in: self, tx)
    }

    /// Ends a run whose input has expired. The input is renewed before the next run.
    private func renewInput(of run: TaskRun, _ tx: StoreTransaction) throws {
        guard try tasks.task(run.task, tx)?.run == run else { return }
        let (now, random) = (environment.wallMs(), environment.random())
        try tasks.change(tx) {
            try $0.refresh(
                run,
                error: "the uploaded file is no longer kept",
                nowMs: now,
                random: random
            )
        }
    }

    func end(
        _ run: TaskRun,
        _ retry: RetryClass,
        _ error: String,
        _ retryAfterMs: Int64?,
        _ tx: StoreTransaction
    ) throws {
        guard let record = try tasks.task(run.task, tx), record.run == run else { return }
        let (now, random) = (environment.wallMs(), environment.random())
        try tasks.change(tx) {
            try $0.failed(
                run,
                retry,
                error: error,
                retryAfterMs: retryAfterMs,
                nowMs: now,
                random: random
            )
        }
        try ended([record], tx)
    }

    /// Calls `ended` of the cancelled tasks that were removed, to show the state without them.
    private func ended(_ records: [TaskRecord], _ tx: StoreTransaction) throws {
        for record in records where try tasks.task(record.id, tx) == nil {
            try (TaskKinds.read(record) as? any ClientTask)?.ended(in: self, tx)
        }
    }

    /// The number of milliseconds until the next timer of the queue; nil if the queue needs none.
    var tasksWakeAfterMs: Int64? {
        let now = environment.wallMs()
        return tasks.nextWakeMs(nowMs: now).map { max(0, $0 - now) }
    }
}
