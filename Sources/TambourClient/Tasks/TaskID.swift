/// The permanent id of a task.
///
/// The caller chooses it and must never reuse one: a late report on a removed task must not reach
/// another. A key column with AUTOINCREMENT, or `ClientIDGenerator`, guarantees that.
package struct TaskID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: TaskID, right: TaskID) -> Bool { left.rawValue < right.rawValue }

    package var description: String { String(rawValue) }
}
