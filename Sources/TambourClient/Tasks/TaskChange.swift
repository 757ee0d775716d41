/// A row change that a call made. Write the changes in the order given.
///
/// The order suits foreign keys and unique indexes. Removed dependencies come before the tasks they
/// join, removed tasks before those that replace them, and new dependencies last. An update
/// contains the whole row. Each row occurs at most once.
package enum TaskChange: Equatable, Sendable {
    case insert(TaskRecord)
    case update(TaskRecord)
    case remove(TaskID)
    case insertDependency(TaskDependency)
    case removeDependency(TaskDependency)
}
