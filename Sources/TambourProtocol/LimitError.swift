/// An invalid override of a limit.
package struct LimitError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the limit, exactly as in the override.
    package var name: String
    /// The description of the error, in English.
    package var reason: String

    package init(name: String, reason: String) {
        self.name = name
        self.reason = reason
    }

    /// One line for people, such as `limit maxDepth: 0 is below 1`.
    package var description: String { "limit \(name): \(reason)" }
}
