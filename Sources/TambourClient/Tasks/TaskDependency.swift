/// A dependency of one task on another; stored as a row of its own.
package struct TaskDependency: Hashable, Sendable {
    /// The outcome of the other task that satisfies the dependency.
    package enum Mode: String, Sendable {
        /// Only `done`. If the other task fails, this one fails too; if it is cancelled, this one
        /// is cancelled.
        case needs
        /// Any outcome.
        case after
        /// As `needs`. In addition, when this task reports that its input has expired, the other
        /// one runs again.
        case refresh
    }

    package let task: TaskID
    package let on: TaskID
    package let mode: Mode

    package init(task: TaskID, on: TaskID, mode: Mode) {
        self.task = task
        self.on = on
        self.mode = mode
    }
}
