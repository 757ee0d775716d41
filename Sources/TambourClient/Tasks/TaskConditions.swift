/// What a task needs of the world around it, and what wakes it when it waits.
package struct TaskConditions: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// A session with the server stands.
    package static let connected = TaskConditions(rawValue: 1)
    /// The session is logged in.
    package static let loggedIn = TaskConditions(rawValue: 2)
    /// The network does not count bytes, or the user does not mind.
    package static let unmetered = TaskConditions(rawValue: 4)
    /// A dependency has been run again and its output is another one. Wakes, is never required.
    package static let newInput = TaskConditions(rawValue: 8)
}
