/// Names one task for good.
///
/// The caller chooses it, and never chooses a number twice: a late report on a task that has left
/// must not fall on another one. A key column with AUTOINCREMENT, or `ClientIDGenerator`, does.
package struct TaskID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (left: TaskID, right: TaskID) -> Bool { left.rawValue < right.rawValue }

    package var description: String { String(rawValue) }
}
