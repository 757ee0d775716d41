import Logging
import TambourMessenger
import TambourProtocol

/// The services that all sessions of all lanes share.
final class SharedServices: Sendable {
    let messenger: Messenger
    let limits: Limits
    let environment: Environment
    let logger: Logger
    let metrics: ServerMetrics
    let settings: ServiceConfig
    let rates: RateLimiter
    let accounts: AccountConnections
    let strangers: Strangers
    let brokenFrames: ThrottledLog
    let longReplies: ThrottledLog
    let longPushes: ThrottledLog

    init(_ messenger: Messenger) {
        self.messenger = messenger
        limits = messenger.limits
        environment = messenger.environment
        logger = messenger.logger
        metrics = messenger.metrics
        settings = messenger.settings
        rates = messenger.rates
        accounts = AccountConnections(
            perToken: limits.maxConnectionsPerToken,
            perUser: limits.maxConnectionsPerUser
        )
        strangers = Strangers(limits: limits)
        brokenFrames = ThrottledLog(logger, nowMs: environment.wallMs)
        longReplies = ThrottledLog(logger, nowMs: environment.wallMs)
        longPushes = ThrottledLog(logger, nowMs: environment.wallMs)
    }
}
