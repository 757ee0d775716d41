import Synchronization
import TambourProtocol

/// The times that a commit writes, in Unix milliseconds.
package struct CommitStamp: Sendable {
    /// The commit clock, stored in the rows of the commit.
    package var ct: Int64
    /// The upper bound of a login's `time` until the next commit; never below `ct`.
    package var leaseEnd: Int64

    package init(ct: Int64, leaseEnd: Int64) {
        self.ct = ct
        self.leaseEnd = leaseEnd
    }
}

/// The clock of commits, in Unix milliseconds. It is the only source of the `time` that a login
/// returns.
///
/// `ct = max(wall, last)`: commits never go backwards, and many may share a millisecond. Two rules
/// keep a login's `time` below the `ct` of every commit that is not visible yet:
///
/// - It is less than the `ct` of the commit in flight. Between commits, it is less than the
///   smallest possible `ct` of the next commit.
/// - It stays within the lease that the last commit left on disk. After a restart, the clock starts
///   above that lease. A wall clock set back across a restart therefore cannot give a later commit
///   a smaller `ct`.
package final class CommitClock: Sendable {
    private struct State {
        var last: Int64
        var inFlight: CommitStamp?
        var leaseEnd: Int64
    }

    /// The length of the lease in milliseconds. Each commit counts it from the wall clock.
    private let lease: Int64
    private let state: Mutex<State>

    /// - Parameter persistedLeaseEnd: the lease end that the last commit left on disk; 0 in a new
    ///   store.
    package init(persistedLeaseEnd: Int64, leaseMs: Int) {
        lease = Int64(leaseMs)
        // A `time` of the previous run may equal the end of the lease, so this run starts above it.
        let start = persistedLeaseEnd == 0 ? 0 : persistedLeaseEnd + 1
        state = Mutex(State(last: start, inFlight: nil, leaseEnd: persistedLeaseEnd))
    }

    /// Begins a commit and stamps it. The engine is the only caller and runs one commit at a time.
    package func begin(wall: Int64) -> CommitStamp {
        state.withLock { state in
            precondition(state.inFlight == nil, "the engine commits one batch at a time")
            let ct = max(wall, state.last)
            // The lease counts from the wall clock, so a commit clock that a restart has set ahead
            // does not extend the lease. Otherwise repeated restarts would move the clock away from
            // the wall clock.
            let stamp = CommitStamp(ct: ct, leaseEnd: max(ct, wall + lease))
            state.last = ct
            state.inFlight = stamp
            return stamp
        }
    }

    /// Ends the commit in flight.
    ///
    /// - Parameter committed: false if the commit was rolled back and nothing reached the disk.
    package func end(committed: Bool) {
        state.withLock { state in
            guard let stamp = state.inFlight else { return }
            state.inFlight = nil
            if committed { state.leaseEnd = stamp.leaseEnd }
        }
    }

    /// Returns the newest `time` that a login may return: it is below the `ct` of every commit that
    /// is not visible yet, and within the lease. Call this before opening a snapshot.
    package func safeTime(wall: Int64) -> Int64 {
        state.withLock { state in
            if let stamp = state.inFlight { return min(stamp.ct - 1, state.leaseEnd) }
            state.last = max(state.last, wall)
            return min(state.last - 1, state.leaseEnd)
        }
    }

    /// Gives all later commits a `ct` after `moment`, even while the wall clock is before it.
    package func settle(through moment: Int64) {
        state.withLock { $0.last = max($0.last, moment + 1) }
    }

    /// Returns the stamp of an event that is sent but not committed. It is above every `time`
    /// returned so far.
    package func now(wall: Int64) -> Int64 {
        state.withLock { state in
            let now = max(wall, state.last)
            state.last = now
            return now
        }
    }

    /// Returns the lead of this clock over the wall clock, in milliseconds; 0 if it has none.
    package func drift(wall: Int64) -> Int64 {
        state.withLock { max(0, $0.last - wall) }
    }
}
