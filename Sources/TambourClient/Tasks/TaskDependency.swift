/// That one task comes after another; a row of its own.
package struct TaskDependency: Hashable, Sendable {
    /// Which end of the other task is good enough.
    package enum Mode: String, Sendable {
        /// Only `done`. When the other fails this one fails with it, when it is cancelled so is this.
        case needs
        /// Any end.
        case after
        /// As `needs`; and when this one reports that its input has expired, the other is run again.
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
