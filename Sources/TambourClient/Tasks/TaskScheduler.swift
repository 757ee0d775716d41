import TambourProtocol

/// Decides which persisted task runs when, and what becomes of it.
///
/// It has no clock, no random source and no store: times (Unix milliseconds) and random numbers are
/// arguments, and each mutating call returns the rows it changed. The caller writes them in **one**
/// transaction with what belongs to them: with the optimistic effect of the tasks that it queued
/// (`insert`), or with the result of the run that ended (`completed`, `failed`).
///
///     try database.write { rows in
///         var next = scheduler                        // a value: the old one stays as it is
///         try rows.apply(next.completed(run, output: token))
///         try rows.storeUploadToken(token)
///         scheduler = next                            // only when nothing threw
///     }
///
/// When the transaction fails, the caller keeps the copy from before, as above, or rebuilds with
/// `init(records:dependencies:)`. A scheduler rebuilt from the rows is equal to the one that wrote
/// them, so this may be done at any moment. When another process shares the store, a transaction
/// begins by looking whether that one has written (`PRAGMA data_version`) and rebuilds if so.
///
/// Life of a driver: `recover`, then `review`; then again and again, after each call and at
/// `nextWakeMs`: `advance`, `startable`, and `started` for each task it takes. It reports how runs
/// ended with `completed`, `failed`, `refresh` or `released`, prolongs leases with `extend` or
/// `progressed`, and tells with `wake` what has become possible. Failures of a session that broke are reported before
/// the `wake` of the next session, which they would otherwise miss.
///
/// A task that is done or cancelled leaves as soon as no held task depends on it; a failed one stays
/// until it is retried or discarded. The rules, T1 to T12, are those of the design page
/// "Offline-first synchronisation", section 7.
package struct TaskScheduler: Equatable, Sendable {
    /// How many tasks run at once, over all processes that share the store: enough to fill a phone's
    /// network, few enough to leave it usable.
    package static let maxRunning = 4
    /// How far ahead a lease may reach. One that reaches farther was made before the clock went back,
    /// and is free.
    package static let maxLeaseMs: Int64 = 600_000
    /// The longest pause that a server may ask for, and as with leases what gives away an old clock.
    package static let maxWaitMs: Int64 = 86_400_000

    var table: TaskTable

    /// A scheduler without tasks.
    package init() { table = TaskTable() }

    /// A scheduler of stored rows, in any order.
    ///
    /// Rows that do not fit together are survived: a dependency on a task that is not there counts as
    /// none (`review` then frees what waited for it).
    package init(
        records: some Sequence<TaskRecord>,
        dependencies: some Sequence<TaskDependency>
    ) {
        table = TaskTable(records: records, dependencies: dependencies)
    }

    /// Ends a mutating call: lets go what is over, and says what changed.
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

    /// Puts the task back where its dependencies allow, to be run as if for the first time.
    mutating func requeue(_ id: TaskID) {
        table.update(id) { $0.become(.blocked) }
        evaluate(id)
    }

    /// Lets every task that depends on these, however far away, follow their new states.
    mutating func propagate(from ids: [TaskID]) {
        var sources = ids
        while let source = sources.popLast() {
            for dependency in table.dependents(of: source) where evaluate(dependency.task) {
                sources.append(dependency.task)
            }
        }
    }

    /// Brings a queued task into the state that its dependencies ask for.
    ///
    /// - Returns: whether it was in another one.
    @discardableResult
    mutating func evaluate(_ id: TaskID) -> Bool {
        // A running task is left to its run, which may well succeed with the input it has.
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
