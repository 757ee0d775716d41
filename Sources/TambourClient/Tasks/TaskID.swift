/// The permanent id of a task.
///
/// The caller chooses the id and must never reuse it, because a late report on a removed task must
/// not reach another task. A key column with AUTOINCREMENT, or `ClientIDGenerator`, guarantees
/// unique ids.
package struct TaskID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: TaskID, right: TaskID) -> Bool { left.rawValue < right.rawValue }

    package var description: String { String(rawValue) }
}
