import TambourProtocol

/// The kind of failure of a run, which decides when the task is retried. The first three are also
/// the `retry` classes of the server's errors.
package enum RetryClass: Hashable, Sendable {
    /// The server would refuse again.
    case never
    /// Retry after a pause. The pause doubles for each attempt, unless the server requests a pause.
    case later
    /// The session is not logged in.
    case afterLogin
    /// No reply came. This does not count as an attempt, because the request may not have reached
    /// the server.
    case networkLost
    /// The network became metered, and the task is too big for a metered network. Does not count as
    /// an attempt.
    case metered
    /// This version cannot read the payload: another version of the app wrote it.
    case unreadable
}

/// The pause before the next attempt: `min(cap, base * 2^n)`, reduced at random by up to half. The
/// jitter keeps clients that failed together from retrying together.
package enum Backoff {
    package static let baseMs: Int64 = 1000
    package static let capMs: Int64 = 300_000

    /// Returns a pause in milliseconds after `attempts` earlier failures: between half and all of
    /// the full pause.
    package static func delayMs(attempts: Int, random: UInt64) -> Int64 {
        // More doublings would exceed the cap and finally overflow 64 bits.
        let full = min(capMs, baseMs << min(max(attempts, 0), 10))
        let half = full / 2
        return half + Int64(random.multipliedFullWidth(by: UInt64(clamping: full - half + 1)).high)
    }
}
