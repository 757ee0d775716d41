extension TaskScheduler {
    /// Replaces the payload of an unfinished task. A run in flight still uses the old payload.
    package mutating func rewrite(_ id: TaskID, payload: [UInt8]) -> [TaskChange] {
        guard let state = table[id]?.state, state != .done, state != .cancelled else { return [] }
        table.update(id) { $0.payload = payload }
        return commit()
    }
}
