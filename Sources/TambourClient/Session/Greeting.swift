import TambourProtocol

/// The state of SESSION_INIT on this connection, and the callers that wait for its reply before
/// they sign in.
struct Greeting {
    typealias Waiter = (Result<Void, ClientError>) -> Void

    /// Whether the server has accepted the client on this connection.
    private(set) var isDone = false
    /// The reason why the last connection ended before the server accepted the client.
    private(set) var error: ClientError?
    /// Who may register on the server, as the server last reported.
    private(set) var registration = Client.RegistrationPolicy.open
    private var waiters: [Waiter] = []

    /// Adds a caller that waits to sign in. The caller receives an error if the connection, or the
    /// attempt to open it, ends first.
    mutating func wait(_ waiter: @escaping Waiter) { waiters.append(waiter) }

    /// Records that the server accepted the client.
    mutating func accepted(_ reply: SessionInitReply) {
        isDone = true
        error = nil
        registration = Client.RegistrationPolicy(reply.registration)
    }

    /// Records that the server refused the client.
    mutating func refused(_ error: ClientError) {
        isDone = false
        self.error = error
    }

    /// Records why the connection failed before the server accepted the client.
    mutating func failed(_ error: ClientError) { self.error = error }

    /// Records that this connection can no longer be used to sign in.
    mutating func end() { isDone = false }

    /// Removes and returns the waiting callers.
    mutating func takeWaiters() -> [Waiter] {
        defer { waiters = [] }
        return waiters
    }

    /// Makes these callers, instead of the current callers, wait for the next connection.
    mutating func putBack(_ waiters: [Waiter]) { self.waiters = waiters }

    /// Restores the waiting callers after a failed transaction.
    mutating func rollBack(to earlier: Greeting) { waiters = earlier.waiters }
}
