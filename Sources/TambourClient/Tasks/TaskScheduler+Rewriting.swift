extension TaskScheduler {
    /// Gives a task that is not done another payload, in its place; a run that is going on has begun with the old one.
    package mutating func rewrite(_ id: TaskID, payload: [UInt8]) -> [TaskChange] {
        guard let state = table[id]?.state, state != .done, state != .cancelled else { return [] }
        table.update(id) { $0.payload = payload }
        return commit()
    }
}
