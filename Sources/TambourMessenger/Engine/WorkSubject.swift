import TambourEvents
package import TambourProtocol

/// The party whose turn a piece of work takes: engine and readers serve subjects in turn.
package enum WorkSubject: Hashable, Sendable {
    case user(UserID)
    /// All clients that have not logged in and share an address.
    case address(PeerAddress)
    /// The server itself, and its administrators.
    case server
}

extension WorkSubject {
    package init(_ requester: Requester) {
        self =
            requester.caller.map { .user($0.userID) }
            ?? .address(PeerAddress(requester.origin.address))
    }
}
