/// A dependency of one task on another task, stored in its own row.
package struct TaskDependency: Hashable, Sendable {
    /// Which outcomes of the other task satisfy the dependency.
    package enum Mode: String, Sendable {
        /// Only `done`. If the other task fails, the dependent fails too. If the other task is
        /// cancelled, the dependent is cancelled too.
        case needs
        /// Any outcome.
        case after
        /// Only `done`, as for `needs`. In addition, when the dependent reports that its input has
        /// expired, the other task runs again.
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
