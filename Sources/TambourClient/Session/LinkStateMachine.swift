import TambourProtocol

/// The timeouts of a link, in milliseconds.
package struct LinkPolicy: Sendable {
    /// The time limit for opening a connection.
    package var connectTimeoutMs: Int64 = 15_000
    /// The time limit for the TLS handshake on an accepted connection. A lost packet on a slow
    /// network costs several seconds.
    package var handshakeTimeoutMs: Int64 = 15_000
    /// The time limit for a login on an open connection.
    package var loginTimeoutMs: Int64 = 30_000
    /// The idle time before the client sends a PING. Servers close a connection after five idle
    /// minutes.
    package var keepAliveMs: Int64 = 60_000
    /// The time limit for the reply to a PING. After it, the connection is considered dead.
    package var pingTimeoutMs: Int64 = 20_000
    /// The time limit for the reply to a PING after a change of network. Most connections do not
    /// survive such a change.
    package var kickTimeoutMs: Int64 = 3_000
    /// The maximum of the first pause after a failure. The maximum doubles with each further
    /// failure. Each pause is a random time between half of the maximum and the maximum.
    package var backoffBaseMs: Int64 = 1_000
    /// The highest value that the maximum reaches by doubling.
    package var backoffCapMs: Int64 = 120_000
    /// The longest pause after a failure while the user waits for the connection.
    package var impatientPauseMs: Int64 = 2_000

    package init() {}
}

/// Decides when to connect, when to send a PING, and when to give up a connection.
///
/// It has no clock and no socket. The caller passes the time of a monotonic clock and performs the
/// returned actions. `nextWakeMs` is the latest time for the next call of `tick`.
package struct LinkStateMachine: Sendable {
    package enum Phase: Hashable, Sendable {
        /// No connection is wanted.
        case stopped
        /// Pausing after a failure.
        case waiting(untilMs: Int64)
        case connecting(sinceMs: Int64)
        /// The server has accepted the connection, and the TLS handshake is in progress.
        case securing(sinceMs: Int64)
        /// Connected, but not logged in yet.
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
    /// The number of attempts to connect since the last login; since creation if there was none.
    package private(set) var attempts = 0
    /// The number of failures that determines the length of the next pause. A login, `start`, and a
    /// change of network during a pause reset the number.
    private var failures = 0
    private var lastReceivedMs: Int64 = 0
    /// The earliest time at which `hurry` ends the pause.
    private var soonestMs: Int64 = 0
    /// The end of the last pause that the server requested.
    private var restUntilMs = Int64.min
    /// The time when the reply to the PING in flight is due; nil if no PING is in flight.
    private var answerDueMs: Int64?
    /// Whether the login waits for the user. Such a login has no time limit.
    package var awaitsPerson = false

    package init(policy: LinkPolicy = LinkPolicy()) {
        self.policy = policy
    }

    package var isConnected: Bool {
        switch phase {
        case .stopped, .waiting, .connecting, .securing: false
        case .open, .live: true
        }
    }

    /// Whether the TLS handshake is in progress.
    package var isSecuring: Bool {
        if case .securing = phase { true } else { false }
    }

    /// The time when `tick` is due; nil when no timer is set.
    package var nextWakeMs: Int64? {
        switch phase {
        case .stopped: nil
        case .waiting(let until): until
        case .connecting(let since): since + policy.connectTimeoutMs
        case .securing(let since): since + policy.handshakeTimeoutMs
        case .open(let since):
            awaitsPerson ? keepAliveDueMs : since + policy.loginTimeoutMs
        case .live: keepAliveDueMs
        }
    }

    private var keepAliveDueMs: Int64 { answerDueMs ?? lastReceivedMs + policy.keepAliveMs }

    /// Starts connecting, and keeps the link connected.
    package mutating func start(nowMs: Int64) -> [Action] {
        guard phase == .stopped else { return [] }
        failures = 0
        return connect(nowMs)
    }

    /// Closes the connection, and does not reconnect.
    package mutating func stop() -> [Action] {
        defer { phase = .stopped }
        switch phase {
        case .stopped, .waiting: return []
        case .connecting, .securing, .open, .live: return [.disconnect]
        }
    }

    /// Records that the server has accepted the connection, and the TLS handshake begins.
    package mutating func accepted(nowMs: Int64) {
        guard case .connecting = phase else { return }
        phase = .securing(sinceMs: nowMs)
    }

    /// Records that the connection is open.
    package mutating func opened(nowMs: Int64) {
        switch phase {
        case .connecting, .securing:
            phase = .open(sinceMs: nowMs)
            heard(nowMs: nowMs)
        case .stopped, .waiting, .open, .live: break
        }
    }

    /// Records that the account is logged in.
    package mutating func loggedIn() {
        attempts = 0
        guard case .open = phase else { return }
        phase = .live
        failures = 0
    }

    /// Records that bytes were received.
    package mutating func heard(nowMs: Int64) {
        lastReceivedMs = nowMs
        answerDueMs = nil
    }

    /// Handles the end of the connection, or a failure to open it.
    /// - Parameter random: 64 random bits. They spread the reconnects of clients that lost the same
    ///   server at the same time.
    package mutating func closed(nowMs: Int64, random: UInt64) {
        guard phase != .stopped else { return }
        if case .waiting = phase { return }
        answerDueMs = nil
        phase = .waiting(untilMs: nowMs + pause(random))
        soonestMs = nowMs + policy.impatientPauseMs
        failures += 1
    }

    /// Disconnects for the pause that the server requests.
    package mutating func rest(forMs pauseMs: Int64, nowMs: Int64) -> [Action] {
        guard phase != .stopped else { return [] }
        phase = .waiting(untilMs: nowMs + pauseMs)
        soonestMs = nowMs + pauseMs
        restUntilMs = soonestMs
        return [.disconnect]
    }

    /// Handles a change of network: ends a pause after a failure, or tests the existing connection.
    package mutating func networkChanged(nowMs: Int64) -> [Action] {
        switch phase {
        case .stopped, .connecting, .securing: return []
        case .waiting:
            failures = 0
            return restUntilMs <= nowMs ? connect(nowMs) : []
        case .open, .live:
            answerDueMs = nowMs + policy.kickTimeoutMs
            return [.ping]
        }
    }

    /// Shortens a pause after a failure, because the user waits for the connection. A pause
    /// requested by the server keeps its length.
    package mutating func hurry(nowMs: Int64) -> [Action] {
        guard case .waiting(let until) = phase else { return [] }
        if soonestMs <= nowMs { return connect(nowMs) }
        phase = .waiting(untilMs: min(until, soonestMs))
        return []
    }

    /// Returns the actions that are due.
    package mutating func tick(nowMs: Int64, random: UInt64) -> [Action] {
        guard let due = nextWakeMs, due <= nowMs else { return [] }
        switch phase {
        case .stopped: return []
        case .waiting: return connect(nowMs)
        case .connecting, .securing: return giveUp(nowMs, random)
        case .open where !awaitsPerson: return giveUp(nowMs, random)
        case .open, .live:
            if answerDueMs != nil { return giveUp(nowMs, random) }
            answerDueMs = nowMs + policy.pingTimeoutMs
            return [.ping]
        }
    }

    private mutating func connect(_ nowMs: Int64) -> [Action] {
        attempts += 1
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
