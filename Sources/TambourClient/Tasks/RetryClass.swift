import TambourProtocol

/// What a failed run means for the task; the first three are the `retry` of the server's errors.
package enum RetryClass: Hashable, Sendable {
    /// The server will not change its mind.
    case never
    /// Another time: after a pause that doubles, or the one the server asks for.
    case later
    /// The session is not logged in.
    case afterLogin
    /// No reply came. Not an attempt: nobody knows whether the request arrived.
    case networkLost
    /// The network began to count bytes and the task is too big for that. Not an attempt.
    case metered
    /// The payload cannot be read here: another version of the app wrote it.
    case unreadable
}

/// The pause before the next attempt: `min(cap, base * 2^n)`, of which a random half is taken off so
/// that clients that failed together do not come back together.
package enum Backoff {
    package static let baseMs: Int64 = 1000
    package static let capMs: Int64 = 300_000

    /// The pause in milliseconds after `attempts` earlier failures, from half of it to all of it.
    package static func delayMs(attempts: Int, random: UInt64) -> Int64 {
        // More doublings are beyond the cap, and at some point beyond 64 bits.
        let full = min(capMs, baseMs << min(max(attempts, 0), 10))
        let half = full / 2
        return half + Int64(random.multipliedFullWidth(by: UInt64(clamping: full - half + 1)).high)
    }
}
