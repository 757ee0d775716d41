import TambourEvents
package import TambourProtocol

/// The party for which a piece of work is done. The engine and the readers serve subjects in turn.
package enum WorkSubject: Hashable, Sendable {
    case user(UserID)
    /// All clients at one address that have not logged in.
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
