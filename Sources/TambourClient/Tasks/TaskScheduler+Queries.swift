extension TaskScheduler {
    /// Returns a task; nil when the scheduler does not contain it.
    package subscript(id: TaskID) -> TaskRecord? { table[id] }

    /// Returns the task of this operation, or nil. A done or cancelled task may have been removed.
    package func task(opKey: String) -> TaskRecord? {
        table.id(ofOpKey: opKey).flatMap { table[$0] }
    }

    /// All tasks of the scheduler, oldest first.
    package var tasks: [TaskRecord] { table.records.values.sorted { $0.place < $1.place } }

    /// The number of tasks that have not ended.
    package var queueLength: Int { table.records.values.count { !$0.state.isTerminal } }

    /// Returns the tasks of a lane in order, including ended tasks.
    package func tasks(inLane lane: String) -> [TaskRecord] {
        (table.lanes[lane] ?? []).compactMap { table[$0] }
    }

    /// Returns the input of a run: the outputs of the tasks that it needs.
    package func inputs(of id: TaskID) -> [TaskID: [UInt8]] {
        var inputs: [TaskID: [UInt8]] = [:]
        for dependency in table.dependencies(of: id) where dependency.mode != .after {
            inputs[dependency.on] = table[dependency.on]?.output
        }
        return inputs
    }

    /// Returns the tasks that a task needs, directly or indirectly, oldest first.
    package func needed(for id: TaskID) -> [TaskID] {
        var found: Set<TaskID> = []
        var upwards = [id]
        while let next = upwards.popLast() {
            for dependency in table.dependencies(of: next) where dependency.mode != .after {
                if found.insert(dependency.on).inserted { upwards.append(dependency.on) }
            }
        }
        return found.sorted { (table[$0]?.place ?? 0) < (table[$1]?.place ?? 0) }
    }
}
