import TambourProtocol

extension TaskScheduler {
    /// Queues tasks, which may depend on each other and on tasks in the scheduler (T1, T6).
    ///
    /// A new task replaces a queued task with the same lane and coalescing key, and inherits the
    /// place and the dependents of that task. A running task with the same key finishes, but is not
    /// retried if it fails. A failed task with the same key is dropped unless another task depends
    /// on it.
    ///
    /// A dependency that has already failed or been cancelled affects the new task at once, by rule
    /// T5.
    ///
    /// - Throws: `TaskError`. In this case no task is queued.
    package mutating func insert(
        _ tasks: [NewTask],
        nowMs: Int64
    ) throws(TaskError) -> [TaskChange] {
        let before = self
        do {
            try queue(tasks, nowMs: nowMs)
        } catch {
            self = before
            throw error
        }
        return commit()
    }

    private mutating func queue(_ tasks: [NewTask], nowMs: Int64) throws(TaskError) {
        let ids = tasks.map(\.id)
        var keys: Set<[String]> = []
        var scope: Set<TaskID>? = Set(ids)
        var adopted: [TaskID] = []
        for task in tasks {
            if table[task.id] != nil { throw .duplicateID(task.id) }
            if let other = table.id(ofOpKey: task.opKey) { throw .duplicateOpKey(other) }
            guard let key = task.coalescingKey else {
                table.insert(record(of: task, place: table.nextPlace, nowMs: nowMs))
                continue
            }
            guard let lane = task.lane else { throw .coalescingWithoutLane(task.id) }
            if !keys.insert([lane, key]).inserted { throw .duplicateCoalescingKey(task.id) }
            dropFailed(inLane: lane, coalescingKey: key)
            guard let old = lastQueued(inLane: lane, coalescingKey: key) else {
                table.insert(record(of: task, place: table.nextPlace, nowMs: nowMs))
                continue
            }
            let dependents = table.dependents(of: old.id)
            table.remove(old.id)
            table.insert(record(of: task, place: old.place, nowMs: nowMs))
            for dependent in dependents {
                table.link(
                    TaskDependency(task: dependent.task, on: task.id, mode: dependent.mode)
                )
            }
            adopted += dependents.map(\.task)
            // The new task moves ahead of older tasks, and may depend on an older task that waits
            // for it. Therefore search all tasks.
            if !task.dependencies.isEmpty { scope = nil }
        }
        for task in tasks {
            for (on, mode) in task.dependencies {
                if table[on] == nil { throw .unknownDependency(on) }
                table.link(TaskDependency(task: task.id, on: on, mode: mode))
            }
        }
        if let id = taskInCycle(from: ids, within: scope) { throw .cycle(id) }
        for id in ids + adopted { evaluate(id) }
        propagate(from: ids)
    }

    private func record(of task: NewTask, place: Int64, nowMs: Int64) -> TaskRecord {
        TaskRecord(
            id: task.id,
            kind: task.kind,
            codecVersion: task.codecVersion,
            payload: task.payload,
            lane: task.lane,
            coalescingKey: task.coalescingKey,
            requires: task.requires,
            place: place,
            state: .blocked,
            attempts: 0,
            runs: 0,
            round: 0,
            nextAtMs: nil,
            wakesOn: [],
            createdAtMs: nowMs,
            deadlineMs: task.deadlineMs,
            opKey: task.opKey,
            lease: nil,
            isCancelRequested: false,
            hasNewInput: false,
            lastError: nil,
            output: nil
        )
    }

    private func lastQueued(inLane lane: String, coalescingKey: String) -> TaskRecord? {
        let records = tasks(inLane: lane)
        return records.last { $0.coalescingKey == coalescingKey && $0.state.isQueued }
    }

    private mutating func dropFailed(inLane lane: String, coalescingKey: String) {
        for record in tasks(inLane: lane)
        where record.coalescingKey == coalescingKey && record.state.isFailed
            && table.dependents(of: record.id).isEmpty
        {
            table.remove(record.id)
        }
    }

    /// Finds a task that waits for itself, through dependencies and through earlier tasks of its
    /// lane.
    ///
    /// The lane counts, because a task can start only when the earlier tasks of its lane have
    /// ended. Ended tasks count too, because they may be retried, or run again for a new output.
    /// This check keeps the graph acyclic: there is always a task that waits for no other task.
    ///
    /// - Parameter scope: the tasks that a cycle can pass through; nil for all tasks. For a new
    ///   task at the end of its lane, these are the new tasks, because only new tasks can wait for
    ///   it.
    private func taskInCycle(from ids: [TaskID], within scope: Set<TaskID>?) -> TaskID? {
        var open: Set<TaskID> = []
        var finished: Set<TaskID> = []
        // An explicit stack, because a lane may be too long for recursion.
        var path: [(id: TaskID, rest: [TaskID])] = []
        for start in ids where !finished.contains(start) {
            var next: TaskID? = start
            while true {
                if let id = next {
                    if open.contains(id) { return id }
                    if !finished.contains(id), scope?.contains(id) ?? true {
                        open.insert(id)
                        let lane = table.predecessor(of: id).map { [$0] } ?? []
                        path.append((id, table.dependencies(of: id).map(\.on) + lane))
                    }
                }
                guard let top = path.indices.last else { break }
                next = path[top].rest.popLast()
                if next == nil {
                    open.remove(path[top].id)
                    finished.insert(path[top].id)
                    path.removeLast()
                }
            }
        }
        return nil
    }
}
