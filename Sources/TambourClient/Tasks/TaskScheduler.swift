import TambourProtocol

/// Decides when each stored task runs, and how its outcome affects other tasks.
///
/// It has no clock, no random source and no store. Times (Unix milliseconds) and random numbers are
/// arguments. Each mutating call returns the changed rows. The caller writes them in **one**
/// transaction with their effects: the optimistic effect of queued tasks (`insert`), or the result
/// of an ended run (`completed`, `failed`).
///
///     try database.write { rows in
///         var next = scheduler                        // a value: the original is unchanged
///         try rows.apply(next.completed(run, output: token))
///         try rows.storeUploadToken(token)
///         scheduler = next                            // only when nothing threw
///     }
///
/// When the transaction fails, the caller keeps the earlier copy, as above, or rebuilds the
/// scheduler with `init(records:dependencies:)`. The scheduler can be rebuilt at any time, because
/// the rebuilt scheduler equals the scheduler that wrote the rows. When another process shares the
/// store, the caller checks at the start of each transaction whether that process has written
/// (`PRAGMA data_version`). If so, the caller rebuilds the scheduler.
///
/// A driver first calls `recover`, then `review`. After each call and at `nextWakeMs` it calls
/// `advance`, `startable`, and `started` for each task that it starts. It reports the end of a run
/// with `completed`, `failed`, `refresh` or `released`, and extends leases with `extend` or
/// `progressed`. It calls `wake` when a condition becomes true. When a session breaks, the driver
/// must report the failed runs before it calls `wake` for the next session. Otherwise that `wake`
/// does not reach their tasks.
///
/// A done or cancelled task is removed when no task depends on it. A failed task stays until it is
/// retried or discarded. The rules T1 to T12 are in docs/client-sync.md, section 7.
package struct TaskScheduler: Equatable, Sendable {
    /// The number of concurrent tasks, over all processes that share the store. Four tasks use
    /// a phone's bandwidth well, and leave some for other programs.
    package static let maxRunning = 4
    /// The maximum length of a lease. If a lease is longer, the clock has gone back, and the lease
    /// counts as expired.
    package static let maxLeaseMs: Int64 = 600_000
    /// The longest pause that a server may request. If a pause is longer, the clock has gone back,
    /// and the pause counts as over.
    package static let maxWaitMs: Int64 = 86_400_000

    var table: TaskTable

    /// Creates a scheduler without tasks.
    package init() { table = TaskTable() }

    /// Creates a scheduler from stored rows, in any order.
    ///
    /// Tolerates inconsistent rows: a dependency on a missing task is ignored, and `review` then
    /// unblocks the task that waited for it.
    package init(
        records: some Sequence<TaskRecord>,
        dependencies: some Sequence<TaskDependency>
    ) {
        table = TaskTable(records: records, dependencies: dependencies)
    }

    /// Completes a mutating call: removes the tasks that are no longer needed, and returns the
    /// changes.
    mutating func commit() -> [TaskChange] {
        var candidates = table.touched + table.loosened
        while let id = candidates.popLast() {
            guard let record = table[id], record.state == .done || record.state == .cancelled,
                table.dependents(of: id).isEmpty
            else { continue }
            candidates += table.dependencies(of: id).map(\.on)
            table.remove(id)
        }
        return table.takeChanges()
    }

    /// Moves a waiting task to the state that its dependencies allow, and clears its wake time.
    mutating func requeue(_ id: TaskID) {
        table.update(id) { $0.become(.blocked) }
        evaluate(id)
    }

    /// Updates all direct and indirect dependents of these tasks to match their new states.
    mutating func propagate(from ids: [TaskID]) {
        var sources = ids
        while let source = sources.popLast() {
            for dependency in table.dependents(of: source) where evaluate(dependency.task) {
                sources.append(dependency.task)
            }
        }
    }

    /// Moves a queued task to the state that its dependencies require.
    ///
    /// - Returns: whether the state changed.
    @discardableResult
    mutating func evaluate(_ id: TaskID) -> Bool {
        // A running task continues, because it may succeed with its present input.
        guard let record = table[id], record.state.isQueued else { return false }
        let verdict = verdict(on: record)
        guard verdict.state != record.state else { return false }
        table.update(id) { record in
            record.become(verdict.state)
            record.lastError = verdict.error ?? record.lastError
        }
        return true
    }

    private func verdict(on record: TaskRecord) -> (state: TaskState, error: String?) {
        var isMet = true
        var isCancelled = false
        for dependency in table.dependencies(of: record.id) {
            guard let other = table[dependency.on] else { continue }
            switch (dependency.mode, other.state) {
            case (_, .blocked), (_, .ready), (_, .running), (_, .waiting): isMet = false
            case (.after, _), (_, .done): break
            case (_, .cancelled): isCancelled = true
            case (_, .failed(.dependency(let root))):
                return (.failed(.dependency(root)), other.lastError)
            case (_, .failed): return (.failed(.dependency(other.id)), other.lastError)
            }
        }
        if isCancelled { return (.cancelled, nil) }
        if record.state == .waiting { return (.waiting, nil) }
        return (isMet ? .ready : .blocked, nil)
    }
}
