import TambourProtocol

/// What a connection has done so far and which of its requests may run now.
///
/// Requests of one session run in the order they came: commands may be under way together, for the
/// engine keeps their order; a query waits for the commands before it, a command for the queries
/// before it; LOGIN runs alone. A preview runs beside what else there is and keeps nothing waiting. PING and the
/// like never ask here.
struct SessionStateMachine {
    enum Phase: Equatable {
        case connected
        case initialized
        /// LOGIN is under way; `then` is where a refusal leads back to.
        case loggingIn
        case loggedIn
        case closed
    }

    /// When a request may run.
    enum Turn: Equatable {
        case command
        case query
        /// Whatever else runs, but a LOGIN; nothing waits for it.
        case beside
        /// Nothing runs beside it.
        case exclusive
    }

    private(set) var phase = Phase.connected
    private var wasLoggedIn = false
    private var commands = 0
    private var queries = 0
    /// Requests that run beside the others.
    private(set) var beside = 0
    private var isExclusive = false
    /// Requests that run alone, running or waiting.
    private var exclusives = 0
    private let maxQueries: Int
    /// Whether nothing with a long reply may start.
    private var isHeld = false
    private var waiting: [(turn: Turn, ticket: Int)] = []
    private var nextTicket = 0

    /// - Parameter maxQueries: how many queries may run beside each other, at least one.
    init(maxQueries: Int) {
        self.maxQueries = max(1, maxQueries)
    }

    /// The states by which a request is judged that arrives now. What comes behind a LOGIN waits for its
    /// reply, whatever the LOGIN itself waits for.
    var statesOnArrival: OpInfo.States { hasLogin ? .loggedIn : states }

    /// The bit of this phase in the opcode table.
    var states: OpInfo.States {
        switch phase {
        case .connected: .connected
        case .initialized: .initialized
        // What comes after a LOGIN waits for its reply, so it is judged by what follows it.
        case .loggingIn, .loggedIn: .loggedIn
        case .closed: []
        }
    }

    /// Also while another LOGIN is under way: if it is refused, the first one still holds.
    var isLoggedIn: Bool { phase == .loggedIn || (phase == .loggingIn && wasLoggedIn) }

    /// Requests that run or wait.
    var inFlight: Int { commands + queries + beside + (isExclusive ? 1 : 0) + waiting.count }

    /// Whether a LOGIN runs or waits.
    var hasLogin: Bool { exclusives > 0 }

    /// Whether requests wait for the end of a hold.
    var isBlocked: Bool { isHeld && !waiting.isEmpty }

    mutating func initialized() {
        if phase == .connected { phase = .initialized }
    }

    /// A request that leads to a login token was answered with one.
    ///
    /// - Returns: false where a LOGIN has begun, or has been answered.
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

    /// A request arrived.
    ///
    /// - Returns: its ticket, and whether it may start at once; if not, `finished` names it later.
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

    /// A request that had started is answered.
    ///
    /// - Returns: the tickets of those that may start now, in order.
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

    /// Starts no further query or LOGIN, whose replies may be long; commands go on.
    mutating func hold() {
        isHeld = true
    }

    /// Ends what `hold` began.
    ///
    /// - Returns: the tickets of those that may start now, in order.
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
