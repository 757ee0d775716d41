import Synchronization
import TambourProtocol

/// The times that a commit writes, in Unix milliseconds.
package struct CommitStamp: Sendable {
    /// The commit clock, stored in the rows of the commit.
    package var ct: Int64
    /// The end of the lease: until the next commit, the `time` of a login is at most this value. It
    /// is never below `ct`.
    package var leaseEnd: Int64

    package init(ct: Int64, leaseEnd: Int64) {
        self.ct = ct
        self.leaseEnd = leaseEnd
    }
}

/// The clock of commits, in Unix milliseconds. It is the only source of the `time` that a login
/// returns.
///
/// `ct = max(wall, last)`: the `ct` of commits never decreases, and many commits may have the same
/// `ct`. Two rules keep a login's `time` below the `ct` of every commit that is not visible yet:
///
/// - While a commit is in flight, `time` is less than the commit's `ct`. Between commits, `time` is
///   less than the smallest possible `ct` of the next commit.
/// - `time` is at most the end of the lease that the last commit wrote to the disk. After a
///   restart, the clock starts above the end of this lease. Later commits therefore have a larger
///   `ct`, even if somebody sets the wall clock back during the restart.
package final class CommitClock: Sendable {
    private struct State {
        var last: Int64
        var inFlight: CommitStamp?
        var leaseEnd: Int64
    }

    /// The length of the lease in milliseconds. The lease of each commit begins at the time of the
    /// wall clock.
    private let lease: Int64
    private let state: Mutex<State>

    /// - Parameter persistedLeaseEnd: the end of the lease that the last commit wrote to the disk;
    ///   0 in a new store.
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
            // The lease begins at the time of the wall clock. The commit clock may be ahead of the
            // wall clock after a restart. If the lease began at the commit clock, repeated restarts
            // would move the commit clock further and further ahead.
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

    /// Returns the latest `time` that a login may return. It is below the `ct` of every commit that
    /// is not visible yet, and not after the end of the lease. Call this function before opening a
    /// snapshot.
    package func safeTime(wall: Int64) -> Int64 {
        state.withLock { state in
            if let stamp = state.inFlight { return min(stamp.ct - 1, state.leaseEnd) }
            state.last = max(state.last, wall)
            return min(state.last - 1, state.leaseEnd)
        }
    }

    /// Ensures that all later commits have a `ct` above `moment`, even if the wall clock has not
    /// reached `moment` yet.
    package func settle(through moment: Int64) {
        state.withLock { $0.last = max($0.last, moment + 1) }
    }

    /// Returns the stamp for an event that the server sends without a commit. The stamp is above
    /// every `time` that a login has returned so far.
    package func now(wall: Int64) -> Int64 {
        state.withLock { state in
            let now = max(wall, state.last)
            state.last = now
            return now
        }
    }

    /// Returns how far this clock is ahead of the wall clock, in milliseconds; 0 if it is not
    /// ahead.
    package func drift(wall: Int64) -> Int64 {
        state.withLock { max(0, $0.last - wall) }
    }
}
