import Dispatch
import Glibc
import Synchronization

/// One accepted socket, owned by one lane for life; every member is for that lane only.
///
/// Idle it is this object and nothing else: the bytes of a frame that is not complete and the bytes
/// the socket refused are kept in buffers that exist only while there are any.
package final class Connection {
    /// How far the connection has come on its way out.
    enum Phase {
        case open
        /// Sends what is written, discards what comes in.
        case flushing
        /// Has told the peer that nothing more comes, waits for the peer to close.
        case lingering
        /// The descriptor is closed; the delegate may not know yet.
        case closed
    }

    /// What a connection in its last phases needs and others do not.
    final class Farewell {
        let reason: CloseReason
        /// The end at the latest, in the lane's milliseconds.
        let deadlineMs: Int64
        /// How long the peer may take nothing.
        let patience: Duration
        var timer: TimerToken?

        init(_ reason: CloseReason, deadlineMs: Int64, patience: Duration) {
            self.reason = reason
            self.deadlineMs = deadlineMs
            self.patience = patience
        }
    }

    private static let lastID = Atomic<UInt64>(0)

    /// The lane that owns this connection.
    package unowned let lane: Lane
    /// Unique in the process, never reused.
    package let id: UInt64
    /// The peer's address, as `127.0.0.1:43211` or `[::1]:43211`.
    package let peer: String

    let descriptor: Int32
    var delegate: (any ConnectionDelegate)?
    var phase = Phase.open
    /// The position in the lane's list of connections.
    var listIndex: Int32 = -1

    // Input.
    var input: ByteStore?
    var isReadingPaused = false
    var isResuming = false
    /// The peer has ended its side: there is nothing more to read, and nothing to wait for at the end.
    var hasInputEnded = false
    /// The delegate hears of that end once it has been presented what a pause left over.
    var isEndUntold = false

    // Output: what this round collected in the lane's buffer, then what the socket refused.
    var firstSegment: Int32 = -1
    var lastSegment: Int32 = -1
    var collectedBytes: Int32 = 0
    var isDirty = false
    // Placed here to fill padding in the layout.
    /// Whether the lane serves this connection after all others of a round.
    package var isLowPriority = false
    /// Whether the connection stands in one of the lane's queues of turns.
    var awaitsTurn = false
    /// Whether complete requests wait among the bytes that the delegate did not consume.
    package internal(set) var hasEndedTurn = false
    var backlog: ByteStore?

    /// What the epoll descriptor was last told to watch.
    var watched: UInt32 = 0
    var farewell: Farewell?

    init(lane: Lane, descriptor: Int32, peer: String, delegate: any ConnectionDelegate) {
        self.lane = lane
        self.id = Self.lastID.add(1, ordering: .relaxed).newValue
        self.peer = peer
        self.descriptor = descriptor
        self.delegate = delegate
    }

    /// Whether `close` or `closeAfterFlush` was called, or the socket failed.
    package var isClosing: Bool { phase != .open }

    /// Whether bytes wait that the delegate did not consume.
    package var hasPartialInput: Bool { input != nil }

    /// Bytes written and not yet taken by the socket, those of this round included.
    ///
    /// What a round collects for one connection stays below 64 KiB: more is sent at once. So a
    /// large figure means a slow reader.
    package var pendingOutboundBytes: Int { Int(collectedBytes) + (backlog?.count ?? 0) }

    /// Bytes that the socket has refused so far; `connectionDrained` is called when it has taken them.
    package var backlogBytes: Int { backlog?.count ?? 0 }

    /// Sends `bytes` after all that was written before, copying them.
    ///
    /// They leave at the end of the round, in one system call with everything else written to this
    /// connection. After `close` or `closeAfterFlush` nothing is sent.
    package func write(_ bytes: UnsafeRawBufferPointer) {
        lane.preconditionOnLane()
        guard phase == .open, !bytes.isEmpty else { return }
        lane.collect(bytes, for: self)
    }

    /// Sends `bytes` after all that was written before, copying them.
    package func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Closes the socket now; what the socket has not taken yet is lost.
    package func close(_ reason: CloseReason) {
        lane.preconditionOnLane()
        lane.retire(self, reason)
    }

    /// Closes once the peer has everything written so far, after `limit` at the latest, or when the peer takes nothing
    /// for `patience`.
    ///
    /// What the peer still sends is discarded: closing over unread input would reset the connection
    /// and could cost the peer the last bytes.
    package func closeAfterFlush(
        _ reason: CloseReason,
        within limit: Duration,
        patience: Duration? = nil
    ) {
        lane.preconditionOnLane()
        lane.bidFarewell(self, reason, within: limit, patience: patience ?? limit)
    }

    /// Ends the connection's turn early, as a delegate that has enough work for now.
    ///
    /// Called during `received`: what the delegate does not consume is presented again in the
    /// connection's next turn, after the other connections that are ready. Until then nothing more is
    /// read from the peer.
    package func endTurn() {
        lane.preconditionOnLane()
        if phase == .open { hasEndedTurn = true }
    }

    /// Counts `work` to the round at hand; the unit is roughly what handling a byte costs.
    package func charge(_ work: Int) {
        lane.charge(work)
    }

    /// When the bytes that are presented were read, microseconds of the lane's clock.
    package var arrivalUs: Int64 { lane.arrivalUs }

    /// Presents nothing more until `resumeReading`; the peer's bytes then wait in its own kernel.
    ///
    /// Called during `received`, it does not keep the delegate from consuming what it was given.
    package func pauseReading() {
        lane.preconditionOnLane()
        isReadingPaused = true
    }

    /// Ends a pause: what was left unconsumed is presented again in the next round.
    package func resumeReading() {
        lane.preconditionOnLane()
        guard isReadingPaused else { return }
        isReadingPaused = false
        lane.resume(self)
    }
}
