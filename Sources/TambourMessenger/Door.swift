package import TambourEvents
package import TambourProtocol

/// A gateway through which clients reach the messenger. The messenger sends events to the door and
/// asks it about its clients.
///
/// The messenger calls a door from the engine, from readers and on the door's own queues, possibly
/// several times at once. A door must not block, so it queues the events.
package protocol Door: AnyObject, Sendable {
    /// Forwards events to the clients concerned. The events never include login codes or due times.
    /// If the messenger hands over an answer after this call, the client receives it after the
    /// events.
    func deliver(_ events: [Event])

    /// Calls `body`, on any queue, when all earlier events are on their way to the clients.
    func whenDelivered(_ body: @escaping @Sendable () -> Void)

    /// Returns the users among `users` who have a client that receives unread counters with each
    /// message.
    ///
    /// - Parameter users: in the order of their ids.
    func counted(among users: [UserID]) -> [UserID]

    /// Returns a user's connected sessions.
    func sessions(of user: UserID) -> Set<SessionID>
}
