import TambourProtocol

/// The deadlines of a session. One timer is set to the nearest deadline. Times are milliseconds of
/// the lane's clock.
struct Deadlines {
    /// The part of a session's state that decides which deadlines apply.
    struct Situation {
        let phase: SessionStateMachine.Phase
        let isStranger: Bool
        /// The time when the session closes if its client has read nothing until then; nil for a
        /// client without a backlog.
        let stalledAtMs: Int64?
    }

    /// The session's action when its timer fires.
    enum Action: Equatable {
        case setTimer(at: Int64)
        case closeSlowReader
        case close
    }

    private let limits: Limits
    private var openedAt: Int64 = 0
    /// Whether the connection's layers are still opening.
    private var isOpening = false
    private var lastByteAt: Int64 = 0
    /// The time when the current incomplete frame began; nil when there is no incomplete frame.
    private var partialSince: Int64?
    private var timerAt = Int64.max

    init(limits: Limits) {
        self.limits = limits
    }

    /// - Parameter isOpening: whether the connection's layers are still opening.
    mutating func opened(at now: Int64, isOpening: Bool = false) {
        openedAt = now
        lastByteAt = now
        self.isOpening = isOpening
    }

    /// Records that the layers have opened. The deadlines of SESSION_INIT and LOGIN count from this
    /// time.
    mutating func layersOpened(at now: Int64) {
        openedAt = now
        isOpening = false
    }

    mutating func received(at now: Int64) {
        lastByteAt = now
    }

    /// Records that a frame is complete. The bytes after it start a new frame, which gets its own
    /// deadline.
    mutating func frameEnded() {
        partialSince = nil
    }

    /// Records whether a frame is incomplete after a round.
    ///
    /// - Returns: whether the deadline of an incomplete frame starts with this call.
    mutating func roundEnded(isPartial: Bool, at now: Int64) -> Bool {
        guard isPartial else {
            partialSince = nil
            return false
        }
        guard partialSince == nil else { return false }
        partialSince = now
        return true
    }

    /// Returns the time to which the timer must be set; nil when the timer already fires early
    /// enough.
    mutating func timer(in situation: Situation) -> Int64? {
        let deadline = next(in: situation)
        guard deadline < timerAt else { return nil }
        timerAt = deadline
        return deadline
    }

    /// Returns what the session must do now that its timer has fired.
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
            let time = isOpening ? limits.handshakeTimeoutMs : limits.sessionInitTimeoutMs
            deadline = min(deadline, openedAt + Int64(time))
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
