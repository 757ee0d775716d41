import Synchronization

/// The clock of commits, in Unix milliseconds, and the only source of the `time` a login returns.
///
/// `ct = max(wall, last)`: commits never run backwards, many may share a millisecond. Two rules keep
/// a login's `time` below everything that can still appear:
///
/// - it is `min(ct of the commit in flight, or the next one could get) - 1`;
/// - it stays within `lease` of the last clock value on disk, and a restart begins above that lease,
///   so that a wall clock set back across a restart cannot give a later commit a smaller `ct`.
package final class CommitClock: Sendable {
    private struct State {
        var last: Int64
        var inFlight: Int64?
        var ceiling: Int64
    }

    /// How far a login's `time` may run ahead of the clock value on disk, in milliseconds.
    private let lease: Int64
    private let state: Mutex<State>

    /// - Parameter persisted: the clock of the last commit on disk, 0 for a new store.
    package init(persisted: Int64, leaseMs: Int) {
        lease = Int64(leaseMs)
        // A `time` of the last run may equal the end of the lease; what comes now is above it.
        let start = persisted == 0 ? 0 : persisted + lease + 1
        state = Mutex(State(last: start, inFlight: nil, ceiling: persisted + lease))
    }

    /// Begins a commit and returns its `ct`. One commit at a time: the engine is the only caller.
    package func begin(wall: Int64) -> Int64 {
        state.withLock { state in
            precondition(state.inFlight == nil, "the engine commits one batch at a time")
            let ct = max(wall, state.last)
            state.last = ct
            state.inFlight = ct
            return ct
        }
    }

    /// Ends the commit in flight.
    ///
    /// - Parameter committed: false when it was rolled back: then nothing reached the disk.
    package func end(committed: Bool) {
        state.withLock { state in
            guard let ct = state.inFlight else { return }
            state.inFlight = nil
            if committed { state.ceiling = ct + lease }
        }
    }

    /// The newest time below which nothing can appear any more. Read it before opening a snapshot.
    package func safeTime(wall: Int64) -> Int64 {
        state.withLock { state in
            if let ct = state.inFlight { return min(ct - 1, state.ceiling) }
            state.last = max(state.last, wall)
            return min(state.last - 1, state.ceiling)
        }
    }

    /// How far the clock runs ahead of the wall, in milliseconds; 0 when it does not.
    package func drift(wall: Int64) -> Int64 {
        state.withLock { max(0, $0.last - wall) }
    }
}
