/// A row that a call has changed. Write the changes in the given order.
///
/// The order satisfies foreign keys and unique indexes. Dependencies are removed before their
/// tasks, tasks are removed before their replacements are inserted, and new dependencies come last.
/// An update contains the whole row. Each row occurs at most once.
package enum TaskChange: Equatable, Sendable {
    case insert(TaskRecord)
    case update(TaskRecord)
    case remove(TaskID)
    case insertDependency(TaskDependency)
    case removeDependency(TaskDependency)
}
