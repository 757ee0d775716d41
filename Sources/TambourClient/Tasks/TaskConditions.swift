/// The external conditions that a task requires, or that wake a waiting task.
package struct TaskConditions: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The client has a session with the server.
    package static let connected = TaskConditions(rawValue: 1)
    /// The session is logged in.
    package static let loggedIn = TaskConditions(rawValue: 2)
    /// The network is not metered, or the user accepts metered networks.
    package static let unmetered = TaskConditions(rawValue: 4)
    /// A dependency ran again and has a new output. This condition only wakes tasks; no task
    /// requires it.
    package static let newInput = TaskConditions(rawValue: 8)
    /// The stored folders have all changes that the server has reported on this connection.
    package static let currentFolders = TaskConditions(rawValue: 16)
}
