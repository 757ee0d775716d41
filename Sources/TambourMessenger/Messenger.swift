package import Logging
import Synchronization
package import TambourProtocol
import TambourQueues
package import TambourSQL
import TambourStore

/// The part of the messenger that doors use. It runs commands and queries, and the two steps of a
/// login: `resolve` and `login`.
///
/// The messenger calls completions on any queue. Doors receive the events of a command before its
/// answer.
package final class Messenger: Sendable {
    /// The requester of a request, its arrival time, and whether its answer is still wanted.
    package struct RequestContext: Sendable {
        package let requester: Requester
        /// The time when the door read the request, in microseconds of the queues' clock.
        package let arrivalUs: Int64
        /// Returns whether the answer is still wanted. The messenger calls it before each step of a
        /// read.
        let isWanted: @Sendable () -> Bool

        package init(
            requester: Requester,
            arrivalUs: Int64,
            isWanted: @escaping @Sendable () -> Bool
        ) {
            self.requester = requester
            self.arrivalUs = arrivalUs
            self.isWanted = isWanted
        }

        fileprivate var subject: WorkSubject { WorkSubject(requester) }
    }

    package let limits: Limits
    package let environment: Environment
    package let logger: Logger
    package let metrics: ServerMetrics
    /// The settings that clients receive.
    package let settings: ServiceConfig
    /// The rate limiter that all doors share. Doors charge a request before it starts.
    package let rates: RateLimiter
    let stores: StoreSource
    let engine: Engine
    let readers: ReaderPool
    let housekeeper: Housekeeper
    let delayed: DelayedTimer
    let router: EventRouter
    let dispatcher: Dispatcher
    let presence: PresenceRegistry
    let previews: LinkPreviews
    let clock: CommitClock
    private let passwords: PasswordHasher
    /// The number of rewrites of the store that run or wait.
    let vacuums = Atomic(0)

    private static let readerCount = 2

    /// Opens the store and migrates its schema. The server's own timers begin only with `start`.
    package init(_ configuration: Configuration, database source: any SQLSource) throws {
        limits = configuration.limits
        environment = configuration.environment
        logger = configuration.logger
        metrics = ServerMetrics(
            startedMs: environment.wallMs(),
            limits: limits,
            codeRuns: configuration.loginCodes.runs
        )
        // Throttle these reports. When the disk is full, every batch fails.
        let reports = ThrottledLog(logger, nowMs: environment.wallMs)
        let report: @Sendable (String) -> Void = { reports.error("\($0)") }
        stores = try StoreSource(
            source,
            limits: limits,
            environment: environment,
            logger: logger
        )
        let writer = try stores.openWriter()
        clock = CommitClock(
            persistedLeaseEnd: try writer.persistedLeaseEnd(),
            leaseMs: limits.commitLeaseMs
        )
        let router = EventRouter(
            codes: configuration.loginCodes,
            environment: environment,
            metrics: metrics
        )
        let presence = PresenceRegistry(clock: clock, wall: metrics.startedMs, limits: limits)
        let previews = LinkPreviews(
            source: configuration.linkPreviews,
            limits: limits,
            environment: environment,
            metrics: metrics,
            logger: logger
        )
        settings = ServiceConfig(
            limits: limits,
            countries: configuration.countries,
            registration: configuration.registration,
            userInvitations: configuration.userInvitations
        )
        rates = RateLimiter(limits: limits, wallMs: environment.wallMs)
        dispatcher = Dispatcher(
            limits: limits,
            environment: environment,
            fixedLoginCode: configuration.loginCodes.fixedDigits,
            hasRoomForCodes: configuration.loginCodes.hasRoom,
            clock: clock,
            presence: presence,
            settings: settings,
            restored: try writer.connection.restored(),
            changesUnknown: try writer.connection.changesUnknown(),
            preview: { previews.preview($0) },
            connectedSessions: { router.sessions(of: $0) },
            report: report
        )
        engine = Engine(
            core: EngineCore(
                writer: writer,
                clock: clock,
                metrics: metrics,
                countedReaders: { router.counted(among: $0) },
                report: report
            ),
            limits: limits,
            environment: environment,
            router: router,
            queueTimes: metrics.queueTimes
        )
        readers = ReaderPool(
            try (0..<Self.readerCount).map { [stores] _ in try stores.openReader() },
            logins: try stores.openReader(),
            maxUnfinished: limits.maxUnfinishedReads,
            environment: environment
        )
        passwords = PasswordHasher(
            store: try stores.openApart(),
            dispatcher: dispatcher,
            limits: limits,
            environment: environment,
            metrics: metrics,
            report: report
        )
        housekeeper = Housekeeper(
            engine: engine,
            eraser: AccountEraser(limits: limits) { presence.isThere($0) },
            auditDays: configuration.auditDays,
            limits: limits,
            environment: environment
        )
        delayed = DelayedTimer(engine: engine, dispatcher: dispatcher, environment: environment)
        self.router = router
        self.presence = presence
        self.previews = previews
        router.connect(timer: delayed)
    }

    /// Delivers all later events to a door, except login codes and due times.
    package func connect(_ door: any Door) {
        router.connect(door)
    }

    /// Starts the server's own work: sending scheduled messages, and housekeeping such as the
    /// erasure of accounts that are due.
    package func start() {
        housekeeper.start()
        delayed.start()
    }

    /// Whether all link previews are finished.
    package var isIdle: Bool { previews.isIdle }

    /// Stops scheduled messages, housekeeping and link previews. Requests are still served.
    package func stopOwnWork() {
        housekeeper.stop()
        delayed.stop()
        router.connect(timer: nil)
        previews.close()
    }

    /// Finishes all accepted requests, and then checkpoints the database's write-ahead log. Drops
    /// requests that wait for a password hash.
    ///
    /// - Parameter completion: called once, on the engine's queue.
    package func stop(_ completion: @escaping @Sendable () -> Void) {
        passwords.close { [self] in
            engine.whenIdle { [self] in
                readers.close { [self] in
                    router.stopCodes { [self] in checkpoint(completion) }
                }
            }
        }
    }

    private func checkpoint(_ completion: @escaping @Sendable () -> Void) {
        engine.queue.async { [self] in
            do {
                try stores.checkpoint()
            } catch {
                logger.error("the last checkpoint failed: \(error)")
            }
            completion()
        }
    }

    /// The people whom each user has recently found by phone, name or link. Tests add entries to
    /// let users reach each other.
    package var foundPeople: FoundPeople { dispatcher.found }

    /// Returns the time by which the commit clock is ahead of the wall clock, in milliseconds.
    package func clockDrift(wall: Int64) -> Int64 { clock.drift(wall: wall) }

    private var safeTime: Int64 { clock.safeTime(wall: environment.wallMs()) }

    // MARK: - Commands

    /// Runs a command on the engine. If the command needs the hash of a password, hashes the
    /// password first.
    package func run(
        _ command: CommandRequest,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        guard PasswordHasher.concerns(command) else {
            return post(command, nil, context, then: completion)
        }
        passwords.post(command, from: context.requester) { [self] password, finished in
            switch password {
            case .success(let password):
                post(command, password, context) {
                    completion($0)
                    finished()
                }
            case .failure(let error):
                completion(.refusal(error))
                finished()
            }
        }
    }

    private func post(
        _ command: CommandRequest,
        _ password: HashedPassword?,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        let command = Command(for: context.subject, arrivalUs: context.arrivalUs) { [self] tx in
            try dispatcher.command(command, from: context.requester, password: password, in: tx)
        } done: {
            completion($0)
        }
        engine.post(command)
    }

    // MARK: - Queries

    /// Runs a query on a reader, step by step.
    package func read(
        _ query: QueryRequest,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        let job = ReaderPool.Job { [self] store in
            guard context.isWanted() else { return nil }
            note(.reader, context)
            let answer = dispatcher.query(
                query,
                from: context.requester,
                time: safeTime,
                on: store
            )
            router.route(answer.events)
            return rest(of: answer, context, then: completion)
        }
        readers.post(for: context.subject, job)
    }

    /// Returns the next step of a read. After the last step, passes the answer to `completion`, and
    /// returns nil. Called on a reader.
    private func rest(
        of answer: Answer,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) -> ReaderPool.Job? {
        guard answer.restOfQuery != nil else {
            completion(answer)
            return nil
        }
        return ReaderPool.Job { [self] store in
            guard context.isWanted() else { return nil }
            return rest(of: dispatcher.resume(answer, on: store), context, then: completion)
        }
    }

    /// Makes a preview of the first link in a text. Calls `completion` once, with nil when there is
    /// no preview. The call happens before this method returns, or later on another thread.
    package func preview(_ text: Text, then completion: @escaping @Sendable (Attach?) -> Void) {
        previews.ask(text, then: completion)
    }

    // MARK: - Login

    /// Looks up a login token.
    ///
    /// - Parameter known: the session to which the connection is already logged in; nil if there is
    ///   none. The token of any other session is refused.
    package func resolve(
        _ token: String,
        knownAs known: Caller?,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Result<OpenSession, RequestError>) -> Void
    ) {
        readers.post(.login, for: context.subject) { [self] store in
            guard context.isWanted() else { return }
            note(.login, context)
            completion(dispatcher.resolve(token, knownAs: known, on: store))
        }
    }

    /// Checks whether a token is still valid. The server has just issued it. If it is no longer
    /// valid, calls `died`.
    package func check(
        _ token: String,
        of requester: Requester,
        then died: @escaping @Sendable () -> Void
    ) {
        readers.post(.login, for: WorkSubject(requester)) { [dispatcher] store in
            let found = dispatcher.resolve(token, knownAs: nil, on: store)
            if case .failure = found { died() }
        }
    }

    /// Answers a LOGIN from a snapshot of the store. The session already receives events, so the
    /// client misses no commit that follows the snapshot.
    package func login(
        _ request: LoginRequest,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        let job = ReaderPool.Job { [self] store in
            guard context.isWanted() else { return nil }
            let answer = dispatcher.login(
                request,
                from: context.requester,
                time: safeTime,
                on: store
            )
            return rest(of: answer, context, then: completion)
        }
        readers.post(.login, for: context.subject, job)
    }

    private func note(_ place: QueueTimes.Place, _ context: RequestContext) {
        metrics.queueTimes.record(place, context.subject, engine.queue.nowUs - context.arrivalUs)
    }
}
