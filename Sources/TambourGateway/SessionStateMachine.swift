import TambourProtocol

/// The state of a connection: its phase, and which of its requests may run now.
///
/// Requests of one session run in order of arrival. Several commands may be in flight, because the
/// engine keeps their order. A query waits for all earlier commands, and a command waits for all
/// earlier queries. LOGIN runs alone. A link preview never starts during a LOGIN; it runs
/// concurrently with all other work and delays no request. PING and similar requests do not pass
/// through this type.
struct SessionStateMachine {
    enum Phase: Equatable {
        case connected
        case initialized
        /// A LOGIN is in flight. `wasLoggedIn` decides the phase after a refusal.
        case loggingIn
        case loggedIn
        case closed
    }

    /// The rule that decides when a request may run.
    enum Turn: Equatable {
        case command
        case query
        /// Runs concurrently with other requests, but does not start during a LOGIN. No other
        /// request waits for this one.
        case beside
        /// Runs alone.
        case exclusive
    }

    private(set) var phase = Phase.connected
    private var wasLoggedIn = false
    private var commands = 0
    private var queries = 0
    /// The number of running requests with the turn `beside`.
    private(set) var beside = 0
    private var isExclusive = false
    /// The number of running or waiting requests with the turn `exclusive`.
    private var exclusives = 0
    private let maxQueries: Int
    /// Whether requests with long replies must wait.
    private var isHeld = false
    private var waiting: [(turn: Turn, ticket: Int)] = []
    private var nextTicket = 0

    /// - Parameter maxQueries: the limit of concurrent queries, at least one.
    init(maxQueries: Int) {
        self.maxQueries = max(1, maxQueries)
    }

    /// The states against which a request is checked when it arrives. A request that follows a
    /// LOGIN waits for the reply to the LOGIN. It is therefore checked as if the session were
    /// logged in, even while the LOGIN itself still waits.
    var statesOnArrival: OpInfo.States { hasLogin ? .loggedIn : states }

    /// The current phase, expressed in the states of the opcode table.
    var states: OpInfo.States {
        switch phase {
        case .connected: .connected
        case .initialized: .initialized
        // A request that follows a LOGIN waits for the reply to the LOGIN. It is therefore checked
        // as if the session were logged in.
        case .loggingIn, .loggedIn: .loggedIn
        case .closed: []
        }
    }

    /// Whether the session is logged in. It stays logged in during a second LOGIN, because a
    /// refusal of the second does not end the first login.
    var isLoggedIn: Bool { phase == .loggedIn || (phase == .loggingIn && wasLoggedIn) }

    /// The number of requests that run or wait.
    var inFlight: Int { commands + queries + beside + (isExclusive ? 1 : 0) + waiting.count }

    /// Whether a LOGIN runs or waits.
    var hasLogin: Bool { exclusives > 0 }

    /// Whether a hold is active and at least one request waits.
    var isBlocked: Bool { isHeld && !waiting.isEmpty }

    mutating func initialized() {
        if phase == .connected { phase = .initialized }
    }

    /// Records that the session is logged in without a LOGIN, because a reply gave its client a
    /// token.
    ///
    /// - Returns: false when a LOGIN has begun or has been answered.
    mutating func signedIn() -> Bool {
        guard phase == .initialized else { return false }
        phase = .loggedIn
        return true
    }

    mutating func loginBegan() {
        wasLoggedIn = phase == .loggedIn
        phase = .loggingIn
    }

    mutating func loginEnded(accepted: Bool) {
        guard phase == .loggingIn else { return }
        phase = accepted || wasLoggedIn ? .loggedIn : .initialized
    }

    mutating func closed() {
        phase = .closed
        waiting = []
    }

    /// Records the arrival of a request.
    ///
    /// - Returns: the request's ticket, and whether the request may start at once. If not,
    ///   `finished` or `release` returns the ticket later.
    mutating func arrived(_ turn: Turn) -> (ticket: Int, starts: Bool) {
        let ticket = nextTicket
        nextTicket += 1
        if turn == .exclusive { exclusives += 1 }
        if waiting.isEmpty, mayStart(turn) {
            started(turn)
            return (ticket, true)
        }
        waiting.append((turn, ticket))
        return (ticket, false)
    }

    /// Records that a running request has been answered.
    ///
    /// - Returns: the tickets of the requests that may start now, in order.
    mutating func finished(_ turn: Turn) -> [Int] {
        switch turn {
        case .command: commands -= 1
        case .query: queries -= 1
        case .beside: beside -= 1
        case .exclusive:
            isExclusive = false
            exclusives -= 1
        }
        return startable()
    }

    /// Holds back further queries and LOGINs, because their replies may be long. Commands still
    /// start.
    mutating func hold() {
        isHeld = true
    }

    /// Ends the hold.
    ///
    /// - Returns: the tickets of the requests that may start now, in order.
    mutating func release() -> [Int] {
        isHeld = false
        return startable()
    }

    private mutating func startable() -> [Int] {
        var tickets: [Int] = []
        while let next = waiting.first, mayStart(next.turn) {
            waiting.removeFirst()
            started(next.turn)
            tickets.append(next.ticket)
        }
        return tickets
    }

    private func mayStart(_ turn: Turn) -> Bool {
        if isExclusive { return false }
        return switch turn {
        case .command: queries == 0
        case .query: commands == 0 && queries < maxQueries && !isHeld
        case .beside: true
        case .exclusive: commands == 0 && queries == 0 && !isHeld
        }
    }

    private mutating func started(_ turn: Turn) {
        switch turn {
        case .command: commands += 1
        case .query: queries += 1
        case .beside: beside += 1
        case .exclusive: isExclusive = true
        }
    }
}
