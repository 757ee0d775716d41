import TambourProtocol

/// Tracks the bytes that a client has not read, and decides whether the client is behind.
///
/// While a client is behind, its session starts no query or LOGIN. The session stops reading
/// requests as soon as one request waits. It closes when the client has read no bytes for
/// `stalledReaderTimeoutMs`. The backlog therefore stays bounded, and a slow network alone does not
/// end a session.
struct ReaderBacklog {
    private struct Lag {
        /// The time when the client last read bytes, in milliseconds.
        var sinceMs: Int64
        /// The size of the backlog at the last update.
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

    /// The time, in milliseconds, when the session closes if the client has read nothing until
    /// then; nil for a client that is not behind.
    var deadlineMs: Int64? { lag.map { $0.sinceMs + timeoutMs } }

    /// Updates the state. A client falls behind when its backlog exceeds `maxOutboundBytesToStart`,
    /// and stays behind until it has read all bytes.
    ///
    /// - Parameter bytes: the bytes that are not yet written to the socket.
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
