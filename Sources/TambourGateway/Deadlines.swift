import TambourProtocol

/// The deadlines of a session; one timer is set to the nearest. Times are milliseconds of the lane's clock.
struct Deadlines {
    /// What the end of a deadline depends on beside time.
    struct Situation {
        let phase: SessionStateMachine.Phase
        let isStranger: Bool
        /// When a client that takes nothing is closed; nil unless it is behind with reading.
        let stalledAtMs: Int64?
    }

    /// What the session does when its timer fires.
    enum Action: Equatable {
        case setTimer(at: Int64)
        case closeSlowReader
        case close
    }

    private let limits: Limits
    private var openedAt: Int64 = 0
    private var lastByteAt: Int64 = 0
    /// Since when a frame is incomplete.
    private var partialSince: Int64?
    private var timerAt = Int64.max

    init(limits: Limits) {
        self.limits = limits
    }

    mutating func opened(at now: Int64) {
        openedAt = now
        lastByteAt = now
    }

    mutating func received(at now: Int64) {
        lastByteAt = now
    }

    /// Notes that a frame is complete; the bytes after it start a new one, which gets its own deadline.
    mutating func frameEnded() {
        partialSince = nil
    }

    /// Notes whether a frame is incomplete after a round.
    ///
    /// - Returns: whether its deadline has just begun.
    mutating func roundEnded(isPartial: Bool, at now: Int64) -> Bool {
        guard isPartial else {
            partialSince = nil
            return false
        }
        guard partialSince == nil else { return false }
        partialSince = now
        return true
    }

    /// Returns when to set the timer to; nil when it fires early enough already.
    mutating func timer(in situation: Situation) -> Int64? {
        let deadline = next(in: situation)
        guard deadline < timerAt else { return nil }
        timerAt = deadline
        return deadline
    }

    /// Notes that the timer has fired, and returns what follows.
    mutating func timerFired(in situation: Situation, at now: Int64) -> Action {
        if let stalled = situation.stalledAtMs, stalled <= now { return .closeSlowReader }
        let deadline = next(in: situation)
        if deadline <= now { return .close }
        timerAt = deadline
        return .setTimer(at: deadline)
    }

    private func next(in situation: Situation) -> Int64 {
        var deadline = lastByteAt + Int64(limits.idleTimeoutMs)
        if let partialSince {
            deadline = min(deadline, partialSince + Int64(limits.partialFrameTimeoutMs))
        }
        switch situation.phase {
        case .connected:
            deadline = min(deadline, openedAt + Int64(limits.sessionInitTimeoutMs))
        case .initialized, .loggingIn:
            if situation.isStranger {
                deadline = min(deadline, openedAt + Int64(limits.loginTimeoutMs))
            }
        case .loggedIn, .closed:
            break
        }
        return situation.stalledAtMs.map { min(deadline, $0) } ?? deadline
    }
}
