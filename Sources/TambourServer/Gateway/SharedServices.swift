import Logging
import Synchronization
import TambourNet
import TambourProtocol
import TambourStore

/// What every session of every lane needs; safe to share.
final class SharedServices: Sendable {
    let limits: Limits
    let environment: Environment
    let logger: Logger
    let metrics: ServerMetrics
    let engine: Engine
    let readers: ReaderPool
    let clock: CommitClock
    let presence: PresenceRegistry
    let router: PushRouter
    let dispatcher: Dispatcher
    let settings: ServiceConfig
    let passwords: PasswordHasher
    let previews: LinkPreviews
    let tokens: TokenConnections
    let rates: RateLimiter

    init(
        limits: Limits,
        environment: Environment,
        logger: Logger,
        metrics: ServerMetrics,
        engine: Engine,
        readers: ReaderPool,
        clock: CommitClock,
        presence: PresenceRegistry,
        router: PushRouter,
        dispatcher: Dispatcher,
        settings: ServiceConfig,
        passwords: PasswordHasher,
        previews: LinkPreviews
    ) {
        self.limits = limits
        self.environment = environment
        self.logger = logger
        self.metrics = metrics
        self.engine = engine
        self.readers = readers
        self.clock = clock
        self.presence = presence
        self.router = router
        self.dispatcher = dispatcher
        self.settings = settings
        self.passwords = passwords
        self.previews = previews
        tokens = TokenConnections(limit: limits.maxConnectionsPerToken)
        rates = RateLimiter(limits: limits, wallMs: environment.wallMs)
    }
}

/// The live connections of each login token, over all lanes, oldest first.
final class TokenConnections: Sendable {
    private let limit: Int
    private let connections = Mutex<[SessionID: [Session]]>([:])

    init(limit: Int) {
        self.limit = limit
    }

    /// - Returns: the connections that are too many now, the oldest ones.
    func add(_ session: Session, to id: SessionID) -> [Session] {
        connections.withLock { connections in
            let all = connections[id, default: []] + [session]
            connections[id] = all
            return Array(all.prefix(max(0, all.count - limit)))
        }
    }

    func remove(_ session: Session, from id: SessionID) {
        connections.withLock { connections in
            connections[id]?.removeAll { $0 === session }
            if connections[id]?.isEmpty == true { connections[id] = nil }
        }
    }

    var count: Int {
        connections.withLock { $0.values.reduce(0) { $0 + $1.count } }
    }
}
