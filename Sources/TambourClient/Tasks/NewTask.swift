/// A task to queue. The fields have the same meaning as in `TaskRecord`.
package struct NewTask: Equatable, Sendable {
    package var id: TaskID
    package var kind: String
    package var codecVersion: Int
    package var payload: [UInt8]
    package var opKey: String
    package var lane: String?
    /// Requires a lane: without a lane, an older run with the same key could end last.
    package var coalescingKey: String?
    package var requires: TaskConditions
    package var deadlineMs: Int64?
    /// Tasks in the scheduler or in the same call, in any order.
    package var dependencies: [TaskID: TaskDependency.Mode]

    package init(
        id: TaskID,
        kind: String,
        codecVersion: Int,
        payload: [UInt8],
        opKey: String,
        lane: String? = nil,
        coalescingKey: String? = nil,
        requires: TaskConditions = [],
        deadlineMs: Int64? = nil,
        dependencies: [TaskID: TaskDependency.Mode] = [:]
    ) {
        self.id = id
        self.kind = kind
        self.codecVersion = codecVersion
        self.payload = payload
        self.opKey = opKey
        self.lane = lane
        self.coalescingKey = coalescingKey
        self.requires = requires
        self.deadlineMs = deadlineMs
        self.dependencies = dependencies
    }
}
