import TambourProtocol

/// How long a link waits for what, in milliseconds.
package struct LinkPolicy: Sendable {
    /// A connection that is not there by then is given up.
    package var connectTimeoutMs: Int64 = 15_000
    /// A server that has not let the account in by then is given up.
    package var loginTimeoutMs: Int64 = 30_000
    /// So long nothing may come before the client asks whether anybody is there. Servers close a
    /// connection that is silent for five minutes.
    package var keepAliveMs: Int64 = 60_000
    /// An answer to that question comes by then, or the connection is dead.
    package var pingTimeoutMs: Int64 = 20_000
    /// The same after the network has changed: most connections do not survive that.
    package var kickTimeoutMs: Int64 = 3_000
    /// The first pause after a failure; each further one is twice as long.
    package var backoffBaseMs: Int64 = 1_000
    /// The longest pause.
    package var backoffCapMs: Int64 = 120_000
    /// The shortest pause after a failure while somebody waits for the connection.
    package var impatientPauseMs: Int64 = 2_000

    package init() {}
}

/// When to connect, when to ask whether the server is still there, and when to give a connection up.
///
/// It has neither clock nor socket: every call says what time it is, on a clock that never goes back,
/// and answers what is to be done. Between calls `nextWakeMs` says when to call `tick` at the latest.
package struct LinkStateMachine: Sendable {
    package enum Phase: Hashable, Sendable {
        /// Nobody wants a connection.
        case stopped
        /// Pauses after a failure.
        case waiting(untilMs: Int64)
        case connecting(sinceMs: Int64)
        /// Connected; the account is not logged in yet.
        case open(sinceMs: Int64)
        /// Logged in.
        case live
    }

    package enum Action: Hashable, Sendable {
        case connect
        case disconnect
        case ping
    }

    package private(set) var phase = Phase.stopped
    private let policy: LinkPolicy
    /// Connections in a row that did not get as far as a login.
    private var failures = 0
    private var lastReceivedMs: Int64 = 0
    /// The earliest time at which somebody who waits may end a pause.
    private var soonestMs: Int64 = 0
    /// When an answer to a PING is due.
    private var answerDueMs: Int64?
    /// Whether somebody has to act before this account can log in, so that time is no failure.
    package var awaitsPerson = false

    package init(policy: LinkPolicy = LinkPolicy()) {
        self.policy = policy
    }

    package var isConnected: Bool {
        switch phase {
        case .stopped, .waiting, .connecting: false
        case .open, .live: true
        }
    }

    /// When something is due; nil when nothing is until somebody calls.
    package var nextWakeMs: Int64? {
        switch phase {
        case .stopped: nil
        case .waiting(let until): until
        case .connecting(let since): since + policy.connectTimeoutMs
        case .open(let since):
            awaitsPerson ? keepAliveDueMs : since + policy.loginTimeoutMs
        case .live: keepAliveDueMs
        }
    }

    private var keepAliveDueMs: Int64 { answerDueMs ?? lastReceivedMs + policy.keepAliveMs }

    /// Somebody wants a connection from now on.
    package mutating func start(nowMs: Int64) -> [Action] {
        guard phase == .stopped else { return [] }
        failures = 0
        return connect(nowMs)
    }

    /// Nobody wants one any more.
    package mutating func stop() -> [Action] {
        defer { phase = .stopped }
        switch phase {
        case .stopped, .waiting: return []
        case .connecting, .open, .live: return [.disconnect]
        }
    }

    /// The connection is there.
    package mutating func opened(nowMs: Int64) {
        guard case .connecting = phase else { return }
        phase = .open(sinceMs: nowMs)
        heard(nowMs: nowMs)
    }

    /// The account is logged in.
    package mutating func loggedIn() {
        guard case .open = phase else { return }
        phase = .live
        failures = 0
    }

    /// Bytes have come.
    package mutating func heard(nowMs: Int64) {
        lastReceivedMs = nowMs
        answerDueMs = nil
    }

    /// The connection has ended, or could not be made.
    /// - Parameter random: any 64 random bits; they spread those who lost the same server.
    package mutating func closed(nowMs: Int64, random: UInt64) {
        guard phase != .stopped else { return }
        if case .waiting = phase { return }
        answerDueMs = nil
        phase = .waiting(untilMs: nowMs + pause(random))
        soonestMs = nowMs + policy.impatientPauseMs
        failures += 1
    }

    /// The server asks to be left alone for a while.
    package mutating func rest(forMs pauseMs: Int64, nowMs: Int64) -> [Action] {
        guard phase != .stopped else { return [] }
        phase = .waiting(untilMs: nowMs + pauseMs)
        soonestMs = nowMs + pauseMs
        return [.disconnect]
    }

    /// The network is another one now: no use to wait, and no trust in what was connected before.
    package mutating func networkChanged(nowMs: Int64) -> [Action] {
        switch phase {
        case .stopped, .connecting: return []
        case .waiting:
            failures = 0
            return connect(nowMs)
        case .open, .live:
            answerDueMs = nowMs + policy.kickTimeoutMs
            return [.ping]
        }
    }

    /// Shortens a pause after a failure, because somebody waits for the connection. A rest that the server has
    /// asked for stays as long as it is.
    package mutating func hurry(nowMs: Int64) -> [Action] {
        guard case .waiting(let until) = phase else { return [] }
        if soonestMs <= nowMs { return connect(nowMs) }
        phase = .waiting(untilMs: min(until, soonestMs))
        return []
    }

    /// Does what is due.
    package mutating func tick(nowMs: Int64, random: UInt64) -> [Action] {
        guard let due = nextWakeMs, due <= nowMs else { return [] }
        switch phase {
        case .stopped: return []
        case .waiting: return connect(nowMs)
        case .connecting: return giveUp(nowMs, random)
        case .open where !awaitsPerson: return giveUp(nowMs, random)
        case .open, .live:
            if answerDueMs != nil { return giveUp(nowMs, random) }
            answerDueMs = nowMs + policy.pingTimeoutMs
            return [.ping]
        }
    }

    private mutating func connect(_ nowMs: Int64) -> [Action] {
        phase = .connecting(sinceMs: nowMs)
        return [.connect]
    }

    private mutating func giveUp(_ nowMs: Int64, _ random: UInt64) -> [Action] {
        closed(nowMs: nowMs, random: random)
        return [.disconnect]
    }

    private func pause(_ random: UInt64) -> Int64 {
        let doubled = policy.backoffBaseMs << min(failures, 20)
        let longest = min(policy.backoffCapMs, max(doubled, policy.backoffBaseMs))
        return longest / 2 + Int64(random % UInt64(clamping: max(longest / 2, 1)))
    }
}
