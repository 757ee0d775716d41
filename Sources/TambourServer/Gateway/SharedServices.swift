import Logging
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
    let accounts: AccountConnections
    let strangers: Strangers
    let brokenFrames: ThrottledLog
    let longReplies: ThrottledLog
    let longPushes: ThrottledLog
    let rates: RateLimiter
    let messenger: Messenger

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
        previews: LinkPreviews,
        accounts: AccountConnections
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
        self.accounts = accounts
        brokenFrames = ThrottledLog(logger, nowMs: environment.wallMs)
        longReplies = ThrottledLog(logger, nowMs: environment.wallMs)
        longPushes = ThrottledLog(logger, nowMs: environment.wallMs)
        strangers = Strangers(limits: limits)
        messenger = Messenger(
            engine: engine,
            readers: readers,
            dispatcher: dispatcher,
            passwords: passwords,
            router: router,
            clock: clock,
            environment: environment,
            queueTimes: metrics.queueTimes
        )
        rates = RateLimiter(limits: limits, wallMs: environment.wallMs)
    }
}
