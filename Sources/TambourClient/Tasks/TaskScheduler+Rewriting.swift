extension TaskScheduler {
    /// Replaces the payload of a task that is not done. A run in flight has started with the old
    /// one.
    package mutating func rewrite(_ id: TaskID, payload: [UInt8]) -> [TaskChange] {
        guard let state = table[id]?.state, state != .done, state != .cancelled else { return [] }
        table.update(id) { $0.payload = payload }
        return commit()
    }
}
