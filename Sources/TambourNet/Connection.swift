import Dispatch
import Glibc
import Synchronization

/// One accepted socket. One lane owns the connection for its whole life. Every member may be used
/// only on this lane.
///
/// An idle connection needs no memory besides this object. It has buffers for an incomplete frame,
/// and for bytes that the socket did not accept, only while they are needed.
package final class Connection {
    /// The stage of the connection's close.
    enum Phase {
        case open
        /// Sends pending output and discards input.
        case flushing
        /// The server has closed its sending side and waits for the peer to close.
        case lingering
        /// The descriptor is closed. It is possible that the delegate has not yet been notified.
        case closed
    }

    /// The state of a closing connection.
    final class Farewell {
        let reason: CloseReason
        /// The time when the connection closes at the latest, in milliseconds of the lane's clock.
        let deadlineMs: Int64
        /// The longest time that the connection waits for the peer to accept more bytes.
        let patience: Duration
        var timer: TimerToken?

        init(_ reason: CloseReason, deadlineMs: Int64, patience: Duration) {
            self.reason = reason
            self.deadlineMs = deadlineMs
            self.patience = patience
        }
    }

    private struct ReasonsToWait: OptionSet {
        let rawValue: UInt8

        static let lowPriority = Self(rawValue: 1)
        static let opening = Self(rawValue: 2)
    }

    private static let lastID = Atomic<UInt64>(0)

    /// The lane that owns this connection.
    package unowned let lane: Lane
    /// The id of the connection, unique in the process and never reused.
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
    /// Whether the peer has closed its side of the connection.
    var hasInputEnded = false
    /// Whether the end of the input must still be reported to the delegate. The lane first presents
    /// bytes that are left from a pause.
    var isEndUntold = false

    // Output: the bytes of this round are in segments of the lane's buffer. `backlog` contains
    // earlier bytes that the socket did not accept.
    var firstSegment: Int32 = -1
    var lastSegment: Int32 = -1
    var collectedBytes: Int32 = 0
    var isDirty = false
    // These properties are placed here to fill padding in the layout.
    /// The reasons why the lane serves this connection after all other connections of a round.
    private var reasonsToWait: ReasonsToWait = []
    /// Whether the connection is in one of the lane's queues of turns.
    var awaitsTurn = false
    /// Whether the delegate ended its turn early. The unconsumed bytes may then include complete
    /// requests.
    package internal(set) var hasEndedTurn = false
    var backlog: ByteStore?

    /// The epoll events for which the lane watches the socket.
    var watched: UInt32 = 0
    var farewell: Farewell?
    /// The layers between the socket and the delegate; nil for plain TCP.
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

    /// Whether the delegate wants the lane to serve this connection after all other connections of
    /// a round.
    package var isLowPriority: Bool {
        get { reasonsToWait.contains(.lowPriority) }
        set {
            if newValue {
                reasonsToWait.insert(.lowPriority)
            } else {
                reasonsToWait.remove(.lowPriority)
            }
        }
    }

    /// Whether the layers are still opening. The peer gets the written bytes only when they have
    /// opened.
    package internal(set) var isOpening: Bool {
        get { reasonsToWait.contains(.opening) }
        set {
            if newValue { reasonsToWait.insert(.opening) } else { reasonsToWait.remove(.opening) }
        }
    }

    /// Whether the lane serves this connection after all other connections of a round.
    var isServedLast: Bool { !reasonsToWait.isEmpty }

    /// Whether `close` or `closeAfterFlush` was called, or the socket failed.
    package var isClosing: Bool { phase != .open }

    /// Whether the delegate has left bytes unconsumed, or a layer has an incomplete record.
    package var hasPartialInput: Bool { input != nil || layers?.hasPartialInput == true }

    /// The number of written bytes that the socket has not yet accepted, including the bytes of
    /// this round.
    ///
    /// A round collects less than 64 KiB for one connection, and sends larger output at once. A
    /// larger number therefore means that the peer reads slowly.
    package var pendingOutboundBytes: Int { Int(collectedBytes) + (backlog?.count ?? 0) }

    /// The number of bytes in the backlog, which the socket did not accept at once. When it has
    /// accepted all of them, the lane calls `connectionDrained`.
    package var backlogBytes: Int { backlog?.count ?? 0 }

    /// Copies `bytes` and sends them after all bytes written before.
    ///
    /// The lane sends them at the end of the round, in one system call with all other bytes for
    /// this connection. Bytes written after `close` or `closeAfterFlush` are dropped.
    package func write(_ bytes: UnsafeRawBufferPointer) {
        lane.preconditionOnLane()
        guard phase == .open, !bytes.isEmpty else { return }
        lane.collect(bytes, for: self)
    }

    /// Copies `bytes` and sends them after all bytes written before.
    package func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    /// Closes the socket now. Output that the socket has not accepted is lost.
    package func close(_ reason: CloseReason) {
        lane.preconditionOnLane()
        lane.retire(self, reason)
    }

    /// Closes the connection after the peer has received all bytes written so far. Closes it
    /// earlier when `limit` has passed, or when the peer accepts no bytes for `patience`.
    ///
    /// The lane reads and discards further input from the peer. If input were unread at the close,
    /// the system would reset the connection, and the last bytes of output could be lost.
    package func closeAfterFlush(
        _ reason: CloseReason,
        within limit: Duration,
        patience: Duration? = nil
    ) {
        lane.preconditionOnLane()
        lane.bidFarewell(self, reason, within: limit, patience: patience ?? limit)
    }

    /// Ends the connection's turn early. A delegate calls this method when it has enough work for
    /// now.
    ///
    /// Call it during `received`. Other ready connections get their turns first. In the
    /// connection's next turn, the lane presents the unconsumed bytes again. Until then, the lane
    /// reads nothing from the peer.
    package func endTurn() {
        lane.preconditionOnLane()
        if phase == .open { hasEndedTurn = true }
    }

    /// Adds `work` to the current round. One unit is roughly the cost of handling one byte.
    package func charge(_ work: Int) {
        lane.charge(work)
    }

    /// The time when the presented bytes were read, in microseconds of the lane's clock.
    package var arrivalUs: Int64 { lane.arrivalUs }

    /// Stops presenting input until `resumeReading`. Further bytes wait in the socket buffers of
    /// the two kernels.
    ///
    /// A delegate that calls this during `received` may still consume the presented bytes.
    package func pauseReading() {
        lane.preconditionOnLane()
        isReadingPaused = true
    }

    /// Ends a pause. Unconsumed bytes are presented again in the next round.
    package func resumeReading() {
        lane.preconditionOnLane()
        guard isReadingPaused else { return }
        isReadingPaused = false
        lane.resume(self)
    }
}
