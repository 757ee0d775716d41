import TambourProtocol

/// Tracks the bytes that a client has not read, and decides whether the client is behind.
///
/// For a client that is behind, the session starts no query or LOGIN, and stops reading requests
/// once a request waits. The session closes when the client reads no bytes for
/// `stalledReaderTimeoutMs`. The backlog therefore stays bounded, and a slow network does not end a
/// session.
struct ReaderBacklog {
    private struct Lag {
        /// The time when the client last read bytes, milliseconds.
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

    /// The time when the session is closed unless the client reads something, milliseconds; nil for
    /// a client that is not behind.
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
