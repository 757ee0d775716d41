import TambourProtocol

/// How far a client is behind with reading.
///
/// The session starts no query for a client that is behind, and reads nothing after one that waits. It
/// closes a client that takes nothing for `stalledReaderTimeoutMs`. So what waits for a client stays
/// bounded, and a slow network ends nobody's session.
struct ReaderBacklog {
    private struct Lag {
        /// When the client last took something, milliseconds.
        var sinceMs: Int64
        /// What it had to read then or later.
        var bytes: Int
    }

    private let mostBytes: Int
    private let timeoutMs: Int64
    private var lag: Lag?

    init(limits: Limits) {
        mostBytes = limits.maxOutboundBytesToStart
        timeoutMs = Int64(limits.stalledReaderTimeoutMs)
    }

    var isBehind: Bool { lag != nil }

    /// When the client is closed unless it takes something, milliseconds; nil unless it is behind.
    var deadlineMs: Int64? { lag.map { $0.sinceMs + timeoutMs } }

    /// A client is behind from `maxOutboundBytesToStart` on, until it has read everything.
    ///
    /// - Parameter bytes: what the socket has not taken so far.
    mutating func update(bytes: Int, nowMs: Int64) {
        if bytes == 0 {
            lag = nil
        } else if let lag {
            self.lag = Lag(sinceMs: bytes < lag.bytes ? nowMs : lag.sinceMs, bytes: bytes)
        } else if bytes > mostBytes {
            lag = Lag(sinceMs: nowMs, bytes: bytes)
        }
    }
}
