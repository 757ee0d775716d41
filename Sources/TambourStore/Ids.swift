/// The key of a chat inside the store; it never travels.
///
/// Groups and channels use their wire id (negative); dialogs and saved messages get a positive number of their
/// own, because the wire's dialog id (`A xor B`) is unique only for the user who asks.
package struct ChatKey: Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func < (lhs: ChatKey, rhs: ChatKey) -> Bool {
        lhs.rawValue < rhs.rawValue
    }
}

/// One login of one device: the row a login token stands for.
package struct SessionID: Hashable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }
}

/// One installation of one user, whatever its login token is today; part of the key of `cid`.
package struct DeviceID: Hashable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }
}

extension DeviceID {
    /// Behind what nobody sent: events of a chat. No installation has it.
    package static let server = DeviceID(0)
}

/// One connection of this process; unique while it runs, never stored.
package struct ConnectionID: Hashable, Sendable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }
}
