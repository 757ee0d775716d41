/// The reason why the scheduler rejected a call. A rejected call changes nothing.
package enum TaskError: Error, Equatable {
    /// The scheduler already contains a task with this id.
    case duplicateID(TaskID)
    /// Another task, with the id given here, has the same `opKey`. The server would answer one of
    /// the two tasks with the reply to the other task.
    case duplicateOpKey(TaskID)
    /// Two tasks of one call share a coalescing key.
    case duplicateCoalescingKey(TaskID)
    /// A task with a coalescing key has no lane.
    case coalescingWithoutLane(TaskID)
    /// The dependency is unknown: it was never queued, or it is done and has been removed.
    case unknownDependency(TaskID)
    /// The task would wait for itself, through dependencies or through lane order.
    case cycle(TaskID)
    /// The task is not ready, is not the first of its lane, or finds no free slot.
    case notStartable(TaskID)
    /// The run has ended, or has lost its lease. Its result must not be stored.
    case runIsOver(TaskRun)
    /// Only a failed task can be retried or discarded.
    case notFailed(TaskID)
    /// The failed task cannot be discarded, because the task with the id given here needs it and
    /// may still run.
    case stillNeeded(by: TaskID)
}
