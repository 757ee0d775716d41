/// Why a call on the scheduler was refused. The scheduler is then as it was before.
package enum TaskError: Error, Equatable {
    /// A task of this id is held already.
    case duplicateID(TaskID)
    /// This held task has the same `opKey`: the server would answer one with the reply to the other.
    case duplicateOpKey(TaskID)
    /// Two tasks of one call have one coalescing key.
    case duplicateCoalescingKey(TaskID)
    /// A task with a coalescing key has no lane.
    case coalescingWithoutLane(TaskID)
    /// The dependency is not held: it never was, or it is done and has left.
    case unknownDependency(TaskID)
    /// The task would wait for itself, through dependencies or through the order of a lane.
    case cycle(TaskID)
    /// The task is not ready, not the first of its lane, or too many are running.
    case notStartable(TaskID)
    /// The run has been ended by somebody else, or its lease was lost. Its result must not be stored.
    case runIsOver(TaskRun)
    /// Only a failed task can be retried or discarded.
    case notFailed(TaskID)
    /// The failed task cannot be discarded: this one may still run, and needs it.
    case stillNeeded(by: TaskID)
}
