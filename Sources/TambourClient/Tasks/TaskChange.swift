/// What a call changed in the rows, to be written in the order given.
///
/// The order suits foreign keys and unique indexes: dependencies go before the tasks they join,
/// tasks go before those that take their place, dependencies come last. An update holds the whole
/// row. Each row occurs at most once.
package enum TaskChange: Equatable, Sendable {
    case insert(TaskRecord)
    case update(TaskRecord)
    case remove(TaskID)
    case insertDependency(TaskDependency)
    case removeDependency(TaskDependency)
}
