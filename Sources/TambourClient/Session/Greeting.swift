/// The greeting of the server: whether it has answered SESSION_INIT on this connection, and who
/// waits for that to sign in.
struct Greeting {
    typealias Waiter = (Result<Void, ClientError>) -> Void

    /// Whether the server has accepted the client on this connection.
    private(set) var isDone = false
    /// Why the last connection ended before the server accepted the client.
    private(set) var error: ClientError?
    private var waiters: [Waiter] = []

    /// Adds somebody who waits for a connection on which they can sign in, or for the reason why
    /// there is none.
    mutating func wait(_ waiter: @escaping Waiter) { waiters.append(waiter) }

    /// Notes the server's answer: nil if it accepted the client.
    mutating func answered(_ error: ClientError?) {
        isDone = error == nil
        self.error = error
    }

    /// Notes why there is no connection on which the server has accepted the client.
    mutating func failed(_ error: ClientError) { self.error = error }

    /// Notes that nobody can sign in on this connection any longer.
    mutating func end() { isDone = false }

    /// Removes and returns those who wait.
    mutating func takeWaiters() -> [Waiter] {
        defer { waiters = [] }
        return waiters
    }

    /// Lets callers wait for the next connection, in place of those who wait now.
    mutating func putBack(_ waiters: [Waiter]) { self.waiters = waiters }

    /// Ends a transaction that failed: the same callers wait as before it.
    mutating func rollBack(to earlier: Greeting) { waiters = earlier.waiters }
}
