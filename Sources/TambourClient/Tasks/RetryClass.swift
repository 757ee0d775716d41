import TambourProtocol

/// What a failed run means for the task. The first three are the `retry` classes of the server's
/// errors.
package enum RetryClass: Hashable, Sendable {
    /// The server would refuse again.
    case never
    /// Retry after a pause: one that doubles each time, or the one that the server asks for.
    case later
    /// The session is not logged in.
    case afterLogin
    /// No reply came. Does not count as an attempt: nobody knows whether the request arrived.
    case networkLost
    /// The network became metered and the task is too big for that. Does not count as an attempt.
    case metered
    /// This version cannot read the payload: another version of the app wrote it.
    case unreadable
}

/// The pause before the next attempt: `min(cap, base * 2^n)`, less up to half of it at random. The
/// jitter keeps clients that failed together from retrying together.
package enum Backoff {
    package static let baseMs: Int64 = 1000
    package static let capMs: Int64 = 300_000

    /// Returns a pause in milliseconds after `attempts` earlier failures: half to all of the full
    /// pause.
    package static func delayMs(attempts: Int, random: UInt64) -> Int64 {
        // Further doublings would exceed the cap, and later overflow 64 bits.
        let full = min(capMs, baseMs << min(max(attempts, 0), 10))
        let half = full / 2
        return half + Int64(random.multipliedFullWidth(by: UInt64(clamping: full - half + 1)).high)
    }
}
