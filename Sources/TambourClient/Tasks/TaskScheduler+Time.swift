import TambourProtocol

extension TaskScheduler {
    /// Handles expired leases, deadlines (T8), and waiting tasks that are due.
    package mutating func advance(nowMs: Int64) -> [TaskChange] {
        recoverRunning { $0.isLeaseFree(nowMs: nowMs) }
        var late: [TaskID] = []
        for record in table.records.values where record.state.isQueued {
            if record.isLate(nowMs: nowMs) { late.append(record.id) }
        }
        for id in late {
            table.update(id) { $0.become(.failed(.deadline)) }
        }
        propagate(from: late.sorted())
        for record in table.records.values where record.state == .waiting {
            if record.isDue(nowMs: nowMs) { requeue(record.id) }
        }
        return commit()
    }

    /// Requeues running tasks whose lease has expired, because their owner is dead or asleep (T3).
    ///
    /// Does not count as an attempt. Tasks marked for cancellation are cancelled instead.
    ///
    /// - Parameter isDead: whether the owner of a lease is known to be dead. The tasks of a dead
    ///   owner are recovered before their leases expire. A program that always runs as a single
    ///   process returns true for every name except its own.
    package mutating func recover(
        nowMs: Int64,
        isDead: (_ owner: String) -> Bool = { _ in false }
    ) -> [TaskChange] {
        recoverRunning { record in
            record.isLeaseFree(nowMs: nowMs) || isDead(record.lease?.owner ?? "")
        }
        return commit()
    }

    /// Requeues all tasks that wait for any of these events.
    package mutating func wake(_ events: TaskConditions) -> [TaskChange] {
        for record in table.records.values where record.state == .waiting {
            if !record.wakesOn.isDisjoint(with: events) { requeue(record.id) }
        }
        return commit()
    }

    /// The next time at which `advance` has work to do, in Unix milliseconds; never in the past.
    ///
    /// Nil when no timer is needed. Startable tasks are not considered.
    package func nextWakeMs(nowMs: Int64) -> Int64? {
        var next: Int64?
        for record in table.records.values {
            var times: [Int64] = []
            if record.state == .running {
                let isFree = record.isLeaseFree(nowMs: nowMs)
                times.append(isFree ? nowMs : record.lease?.untilMs ?? nowMs)
            }
            if record.state == .waiting, let nextAtMs = record.nextAtMs {
                times.append(record.isDue(nowMs: nowMs) ? nowMs : nextAtMs)
            }
            if record.state.isQueued, let deadlineMs = record.deadlineMs {
                times.append(max(deadlineMs, nowMs))
            }
            for time in times { next = min(next ?? time, time) }
        }
        return next
    }

    private mutating func recoverRunning(_ isFree: (TaskRecord) -> Bool) {
        let free = table.running.filter { id in table[id].map(isFree) ?? false }
        for id in free.sorted() { endRun(id) { $0.state = .blocked } }
    }
}

extension TaskRecord {
    /// Returns whether the deadline has passed.
    func isLate(nowMs: Int64) -> Bool { deadlineMs.map { $0 <= nowMs } ?? false }

    /// Returns whether a waiting task is due. If a task would wait longer than the longest pause,
    /// the clock has gone back, and the task is due too. A pause without wake events may have been
    /// requested by the server, and lasts up to `maxWaitMs`.
    func isDue(nowMs: Int64) -> Bool {
        guard let nextAtMs else { return false }
        let longestMs = wakesOn.isEmpty ? TaskScheduler.maxWaitMs : Backoff.capMs
        return nextAtMs <= nowMs || nextAtMs - longestMs > nowMs
    }

    /// Returns whether another process may take the task.
    func isLeaseFree(nowMs: Int64) -> Bool {
        guard let lease else { return true }
        return lease.untilMs <= nowMs || lease.untilMs - TaskScheduler.maxLeaseMs > nowMs
    }
}
