/// One login on one device: the row that a login token identifies.
package struct SessionID: Hashable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }
}

/// One installation of one user, whatever its login token; part of the key of `cid`.
package struct DeviceID: Hashable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }
}

/// One connection of this process; unique while it runs, never stored.
package struct ConnectionID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

extension DeviceID {
    /// The device of messages that nobody sent: events of a chat. No installation has this id.
    package static let server = DeviceID(0)
}
