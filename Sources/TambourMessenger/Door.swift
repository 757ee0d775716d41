package import TambourEvents
package import TambourProtocol

/// A way into the messenger for clients: what the messenger tells it, and asks it about its clients.
///
/// The messenger calls it on the engine, on readers and on the door's own queues, several at a time.
/// A door must not block: it queues what it is told.
package protocol Door: AnyObject, Sendable {
    /// Hands events on to the clients concerned; never login codes or due times. An answer that is
    /// handed over afterwards comes after them.
    func deliver(_ events: [Event])

    /// Calls `body`, on any queue, when what was handed over before is on its way to the clients.
    func whenDelivered(_ body: @escaping @Sendable () -> Void)

    /// Returns those of some users who have clients that receive unread counters with each message.
    ///
    /// - Parameter users: in the order of their ids.
    func counted(among users: [UserID]) -> [UserID]

    /// Returns the sessions of a user that are connected.
    func sessions(of user: UserID) -> Set<SessionID>
}
