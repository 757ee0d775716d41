import Dispatch
import Glibc
import Synchronization

/// One accepted socket, owned by one lane for life; every member may be used on that lane only.
///
/// An idle connection is only this object: buffers for an incomplete frame, and for bytes the
/// socket refused, exist only while they are needed.
package final class Connection {
    /// The stage of closing that the connection has reached.
    enum Phase {
        case open
        /// Sends pending output and discards input.
        case flushing
        /// Has closed its sending side and waits for the peer to close.
        case lingering
        /// The descriptor is closed; the delegate may not have been notified yet.
        case closed
    }

    /// The state that only closing connections need.
    final class Farewell {
        let reason: CloseReason
        /// The latest time to close, in the lane's milliseconds.
        let deadlineMs: Int64
        /// How long the peer may accept no bytes.
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
    /// Whether the peer closed its side: there is nothing more to read or to wait for.
    var hasInputEnded = false
    /// Whether the end of the input is not reported yet: bytes left from a pause are presented
    /// first.
    var isEndUntold = false

    // Output: collected by this round in the lane's buffer, then refused by the socket.
    var firstSegment: Int32 = -1
    var lastSegment: Int32 = -1
    var collectedBytes: Int32 = 0
    var isDirty = false
    // Placed here to fill padding in the layout.
    /// Whether the lane serves this connection after all others of a round.
    package var isLowPriority = false
    /// Whether the connection is in one of the lane's queues of turns.
    var awaitsTurn = false
    /// Whether the bytes that the delegate left unconsumed include complete requests.
    package internal(set) var hasEndedTurn = false
    var backlog: ByteStore?

    /// The events that epoll watches for.
    var watched: UInt32 = 0
    var farewell: Farewell?
    /// What lies between the socket and the delegate; nil for plain TCP.
    var layers: LayerStack?

    init(
        lane: Lane,
        descriptor: Int32,
        peer: String,
        layers: LayerStack? = nil,
        delegate: any ConnectionDelegate
    ) {
        self.lane = lane
        self.id = Self.lastID.add(1, ordering: .relaxed).newValue
        self.peer = peer
        self.descriptor = descriptor
        self.layers = layers
        self.delegate = delegate
    }

    /// Whether `close` or `closeAfterFlush` was called, or the socket failed.
    package var isClosing: Bool { phase != .open }

    /// Whether the delegate left bytes unconsumed, or a layer has an incomplete record.
    package var hasPartialInput: Bool { input != nil || layers?.hasPartialInput == true }

    /// The bytes written but not yet taken by the socket, including those of this round.
    ///
    /// A round collects less than 64 KiB for one connection; more is sent at once. So a large
    /// number means a slow reader.
    package var pendingOutboundBytes: Int { Int(collectedBytes) + (backlog?.count ?? 0) }

    /// The bytes that the socket has refused so far; `connectionDrained` is called when it has
    /// taken them.
    package var backlogBytes: Int { backlog?.count ?? 0 }

    /// Sends `bytes` after everything written before, copying them.
    ///
    /// They leave at the end of the round, in one system call with everything else written to this
    /// connection. Nothing is sent after `close` or `closeAfterFlush`.
    package func write(_ bytes: UnsafeRawBufferPointer) {
        lane.preconditionOnLane()
        guard phase == .open, !bytes.isEmpty else { return }
        lane.collect(bytes, for: self)
    }

    /// Sends `bytes` after everything written before, copying them.
    package func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Closes the socket now; output that the socket has not taken is lost.
    package func close(_ reason: CloseReason) {
        lane.preconditionOnLane()
        lane.retire(self, reason)
    }

    /// Closes once the peer has received everything written so far, at the latest after `limit`, or
    /// when the peer accepts nothing for `patience`.
    ///
    /// Further input from the peer is discarded: closing with unread input would reset the
    /// connection and could lose the last bytes of output.
    package func closeAfterFlush(
        _ reason: CloseReason,
        within limit: Duration,
        patience: Duration? = nil
    ) {
        lane.preconditionOnLane()
        lane.bidFarewell(self, reason, within: limit, patience: patience ?? limit)
    }

    /// Ends the connection's turn early, when the delegate has enough work for now.
    ///
    /// Call it during `received`: the bytes that the delegate does not consume are presented again
    /// in the connection's next turn, after the other connections that are ready. Until then
    /// nothing more is read from the peer.
    package func endTurn() {
        lane.preconditionOnLane()
        if phase == .open { hasEndedTurn = true }
    }

    /// Adds `work` to the current round; the unit is roughly the cost of handling one byte.
    package func charge(_ work: Int) {
        lane.charge(work)
    }

    /// When the presented bytes were read, microseconds of the lane's clock.
    package var arrivalUs: Int64 { lane.arrivalUs }

    /// Stops presenting input until `resumeReading`; the peer's bytes then wait in its kernel.
    ///
    /// When called during `received`, the delegate may still consume the bytes it was given.
    package func pauseReading() {
        lane.preconditionOnLane()
        isReadingPaused = true
    }

    /// Ends a pause: unconsumed bytes are presented again in the next round.
    package func resumeReading() {
        lane.preconditionOnLane()
        guard isReadingPaused else { return }
        isReadingPaused = false
        lane.resume(self)
    }
}
