/// A changed row of one call. Write the changes in the given order.
///
/// The order satisfies foreign keys and unique indexes. Removed dependencies precede their tasks,
/// removed tasks precede their replacements, and new dependencies are last. An update contains the
/// whole row. Each row occurs at most once.
package enum TaskChange: Equatable, Sendable {
    case insert(TaskRecord)
    case update(TaskRecord)
    case remove(TaskID)
    case insertDependency(TaskDependency)
    case removeDependency(TaskDependency)
}
