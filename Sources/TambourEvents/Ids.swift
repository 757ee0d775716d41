/// The id of one login on one device: the row that a login token identifies.
package struct SessionID: Hashable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }
}

/// The id of one installation of one user. It does not depend on the login token, and is part of
/// the idempotency key of a `cid`.
package struct DeviceID: Hashable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }
}

/// The id of one connection. It is unique while the process runs, and is never stored.
package struct ConnectionID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

extension DeviceID {
    /// The device id of messages that record events of a chat. No installation has this id.
    package static let server = DeviceID(0)
}
