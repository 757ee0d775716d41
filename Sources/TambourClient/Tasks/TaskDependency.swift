/// A dependency of one task on another, stored in its own row.
package struct TaskDependency: Hashable, Sendable {
    /// Which outcomes of the other task satisfy the dependency.
    package enum Mode: String, Sendable {
        /// Only `done`. If the other task fails, the dependent fails too; if the other task is
        /// cancelled, so is the dependent.
        case needs
        /// Any outcome.
        case after
        /// The same outcome as for `needs`. In addition, when the dependent reports that its input
        /// has expired, the other task runs again.
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
