import Dispatch
import Glibc
import Logging
import Synchronization
import TambourNet
package import TambourProtocol
import TambourSQL
import TambourStore

/// The whole messenger in one object: opens the store, starts lanes and listeners, stops
/// gracefully.
///
/// `@unchecked Sendable`: what changes after `init` is in `state`, guarded by a lock.
package final class Server: @unchecked Sendable {
    /// Why a server cannot start.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String

        package init(_ description: String) {
            self.description = description
        }
    }

    private struct State {
        var listeners: [Listener] = []
        var admin: AdminSocket?
        var isStopping = false
    }

    package let metrics: ServerMetrics
    let configuration: ServerConfiguration
    let shared: SharedServices
    private let directory: DataDirectory
    private let writerConnection: SQLiteConnection
    let lanes: [Lane]
    private let gateways: [LaneGateway]
    private let state = Mutex(State())
    private let nextLane = Atomic<Int>(0)
    private let reloading = Mutex(())
    package let housekeeper: Housekeeper
    package let delayed: DelayedTimer
    private let admission: Admission

    /// How long a stop waits for requests in flight.
    private static let stopDeadline: Duration = .seconds(5)
    private static let readers = 2
    private static let laneTimeout = DispatchTimeInterval.seconds(5)

    /// Opens the store and brings its schema up to date; nothing is served yet.
    package init(_ configuration: ServerConfiguration) throws {
        self.configuration = configuration
        if configuration.loginCodes.fixedDigits != nil,
            let open = configuration.listen.first(where: { !$0.address.isLoopback })
        {
            throw StartError(
                "fixed login codes let anybody in: \(open) is not a loopback address"
            )
        }
        let logger = configuration.logger
        let limits = configuration.limits
        let environment = configuration.environment
        directory = try DataDirectory(configuration.dataDirectory)
        metrics = ServerMetrics(startedMs: environment.wallMs(), limits: limits)
        // A full disk fails every batch.
        let reports = ThrottledLog(logger, nowMs: environment.wallMs)
        let report: @Sendable (String) -> Void = { reports.error("\($0)") }

        let path = directory.databasePath
        if Self.synchronousMode != .full {
            logger.warning("TAMBOUR_DEBUG_SYNCHRONOUS: a power cut will lose messages")
        }
        writerConnection = try SQLiteConnection(
            path: path,
            mode: .readWrite,
            synchronous: Self.synchronousMode
        )
        try StoreConnection.migrate(writerConnection)
        let writer = try StoreWriter(
            StoreConnection(
                environment.disk?(writerConnection, .readWrite) ?? writerConnection,
                limits: limits
            ),
            userIDs: environment.userIDs,
            firstCounter: UInt16(
                truncatingIfNeeded: environment.randomBytes(2).reduce(0) { $0 << 8 | Int($1) }
            )
        )
        let clock = CommitClock(
            persistedLeaseEnd: try writer.persistedLeaseEnd(),
            leaseMs: limits.commitLeaseMs
        )
        let accounts = AccountConnections(
            perToken: limits.maxConnectionsPerToken,
            perUser: limits.maxConnectionsPerUser
        )
        let core = EngineCore(
            writer: writer,
            clock: clock,
            metrics: metrics,
            countedReaders: { accounts.counted(among: $0) },
            report: report
        )
        let router = PushRouter(codes: configuration.loginCodes, environment: environment)
        let presence = PresenceRegistry(
            clock: clock,
            wall: metrics.startedMs,
            limits: limits
        )
        let settings = ServiceConfig(limits: limits, countries: configuration.countries)
        func openReader() throws -> StoreConnection {
            let reader = try SQLiteConnection(path: path, mode: .readOnly)
            return try StoreConnection(
                environment.disk?(reader, .readOnly) ?? reader,
                limits: limits
            )
        }
        let stores = try (0..<Self.readers).map { _ in try openReader() }
        let previews = LinkPreviews(
            source: configuration.linkPreviews,
            limits: limits,
            environment: environment,
            metrics: metrics,
            logger: logger
        )
        let dispatcher = Dispatcher(
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
            connectedSessions: { accounts.sessions(of: $0) },
            report: report
        )
        shared = SharedServices(
            limits: limits,
            environment: environment,
            logger: logger,
            metrics: metrics,
            engine: Engine(
                core: core,
                limits: limits,
                environment: environment,
                router: router,
                queueTimes: metrics.queueTimes
            ),
            readers: ReaderPool(
                stores,
                logins: try openReader(),
                maxUnfinished: limits.maxUnfinishedReads,
                environment: environment
            ),
            clock: clock,
            presence: presence,
            router: router,
            dispatcher: dispatcher,
            settings: settings,
            passwords: PasswordHasher(
                store: try StoreConnection(
                    SQLiteConnection(path: path, mode: .readOnly),
                    limits: limits
                ),
                dispatcher: dispatcher,
                limits: limits,
                environment: environment,
                metrics: metrics,
                report: report
            ),
            previews: previews,
            accounts: accounts
        )
        housekeeper = Housekeeper(
            engine: shared.engine,
            eraser: AccountEraser(limits: limits) { presence.isThere($0) },
            intervalMs: limits.housekeepingIntervalMs,
            environment: environment
        )
        delayed = DelayedTimer(
            engine: shared.engine,
            dispatcher: dispatcher,
            environment: environment
        )
        router.connect(timer: delayed)
        lanes = (0..<configuration.lanes).map { index in
            Lane(
                index: index,
                label: "tambour.lane-\(index)",
                lowPriority: .init(
                    readBytes: limits.maxTurnBytesBeforeLogin,
                    workPerRound: limits.maxStrangerBytesPerRound
                ),
                poisonAfterCallback: configuration.poisonsBuffers || Lane.poisonsByDefault,
                simulated: environment.scheduler
            )
        }
        admission = Admission(
            descriptors: Admission.descriptorLimit,
            limits: limits,
            strangers: shared.strangers,
            metrics: metrics,
            logger: logger,
            nowMs: { [queue = lanes[0].queue] in queue.nowMs }
        )
        let shared = shared
        gateways = lanes.map {
            LaneGateway(lane: $0, shared: shared, rules: configuration.features.rules)
        }
        router.connect(gateways)
    }

    /// FULL. A debug build can be told to be careless, so that the crash tests can prove that they
    /// would notice.
    private static var synchronousMode: SQLiteConnection.SynchronousMode {
        #if DEBUG
            if let mode = getenv("TAMBOUR_DEBUG_SYNCHRONOUS"), String(cString: mode) == "NORMAL" {
                return .normal
            }
        #endif
        return .full
    }

    /// Starts serving.
    ///
    /// - Returns: the addresses it listens on, with their actual ports.
    package func start() throws -> [String] {
        startWithoutDoors()
        let admin = try AdminSocket(
            path: directory.adminSocketPath,
            backend: LiveAdminBackend(self),
            maxConnections: configuration.limits.maxAdminConnections,
            logger: configuration.logger,
            onExhausted: { [admission] in admission.exhausted() }
        )
        state.withLock { $0.admin = admin }
        admission.begin()
        var addresses: [String] = []
        for endpoint in configuration.listen {
            let listener = try Listener(address: endpoint.address)
            state.withLock { $0.listeners.append(listener) }
            addresses.append(listener.boundAddress)
            listener.start { [admission] in
                admission.exhausted()
            } onAccept: { [self] socket, peer in
                guard admission.admits(socket) else {
                    close(socket)
                    return
                }
                accept(socket, peer, dialect: endpoint.dialect)
            }
        }
        return addresses
    }

    /// Starts serving without listeners and admin socket: only connections passed to `accept`.
    package func startWithoutDoors() {
        for lane in lanes { lane.start() }
        housekeeper.start()
        delayed.start()
    }

    /// Serves a connected socket and takes ownership of it.
    ///
    /// - Parameters:
    ///   - peer: the other side's address, as `127.0.0.1:43211`.
    ///   - dialect: the dialect of the listener's clients; nil where each shows its own.
    package func accept(_ socket: Int32, _ peer: String, dialect: Capabilities? = nil) {
        let index = nextLane.add(1, ordering: .relaxed).oldValue
        let gateway = gateways[(index & Int.max) % gateways.count]
        gateway.lane.adopt(
            fileDescriptor: socket,
            peer: peer,
            delegate: Session(gateway: gateway, dialect: dialect)
        )
    }

    /// Live connections, logged in or not.
    package var connectionCount: Int { metrics.connectionCount }
    /// The users whom others have recently found; tests use it to introduce people to each other.
    package var foundPeople: FoundPeople { shared.dispatcher.found }

    /// The state of a lane.
    struct LaneReport {
        /// How long a block that was posted to it waited for its turn, in seconds.
        let delay: Double
        let features: [String: FeatureCount]
    }

    /// Waits until all lanes have answered, so it must not be called on a lane or the engine.
    /// - Returns: nil when a lane has not had its turn for five seconds.
    func laneReports() -> [LaneReport]? {
        let reports = Mutex([LaneReport?](repeating: nil, count: lanes.count))
        let answered = DispatchGroup()
        for (index, gateway) in gateways.enumerated() {
            let posted = ContinuousClock.now
            answered.enter()
            gateway.lane.queue.async {
                let delay = (ContinuousClock.now - posted) / .seconds(1)
                let report = LaneReport(delay: delay, features: gateway.featureCounts)
                reports.withLock { $0[index] = report }
                answered.leave()
            }
        }
        guard answered.wait(timeout: .now() + Self.laneTimeout) == .success else { return nil }
        return reports.withLock { $0.compactMap(\.self) }
    }

    /// Reads the feature rules again and applies them.
    ///
    /// When it returns, every session whose answers changed has been sent them: the reply to a
    /// later PING comes after them. Waits for the lanes, as `laneReports` does.
    /// - Returns: the rules, and the number of sessions that got new answers.
    /// - Throws: the mistakes in the rules; then the old ones stay in force.
    func reloadFeatures() throws -> (rules: FeatureRules, told: Int) {
        guard let load = configuration.features.reload else {
            throw AdminService.Failure(description: "the server was started without --features")
        }
        // One reload at a time, or two lanes could end up with different rules.
        return try reloading.withLock { _ in
            let reload = FeatureReload(try load(), lanes: gateways.count)
            shared.router.route(reload)
            guard let told = reload.wait(Self.laneTimeout) else {
                throw AdminService.Failure(
                    description: "a lane is busy: the rules come into force late"
                )
            }
            return (reload.rules, told)
        }
    }

    /// Opens another read-only connection, for work that takes long.
    func openStore() throws -> StoreConnection {
        try StoreConnection(
            SQLiteConnection(path: directory.databasePath, mode: .readOnly),
            limits: configuration.limits
        )
    }

    /// Rewrites the store without deleted data; commands wait meanwhile.
    ///
    /// - Returns: the size of the file before and after, in bytes.
    func vacuum() throws -> (before: Int64, after: Int64) {
        let result = Mutex<Result<(before: Int64, after: Int64), any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        shared.engine.queue.async { [self] in
            let outcome = Result<(before: Int64, after: Int64), any Error> {
                let before = try writerConnection.fileBytes
                try writerConnection.vacuum()
                return (before, try writerConnection.fileBytes)
            }
            result.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        guard let outcome = result.withLock({ $0 }) else {
            preconditionFailure("the engine signals when it is done")
        }
        return try outcome.get()
    }

    /// Stops accepting, answers requests in flight, checkpoints, releases the data directory.
    ///
    /// - Parameter completion: called once, on some queue, when all of that is done.
    package func stop(completion: @escaping @Sendable () -> Void) {
        let doors: (listeners: [Listener], admin: AdminSocket?)? = state.withLock { state in
            guard !state.isStopping else { return nil }
            state.isStopping = true
            defer { state.listeners = [] }
            return (state.listeners, state.admin)
        }
        guard let doors else { return }
        for listener in doors.listeners { listener.stop() }
        doors.admin?.stop()
        housekeeper.stop()
        delayed.stop()
        shared.router.connect(timer: nil)
        shared.previews.close()
        for gateway in gateways { gateway.post(.stop) }
        let deadline = ContinuousClock.now + Self.stopDeadline
        waitForSessions(until: deadline) { [self] in
            let stopped = DispatchGroup()
            for lane in lanes {
                stopped.enter()
                lane.stop { stopped.leave() }
            }
            stopped.notify(queue: .global()) { [self] in
                shared.passwords.close { [self] in
                    shared.engine.whenIdle { [self] in
                        shared.readers.close { [self] in
                            shared.router.stopCodes { [self] in finish(completion) }
                        }
                    }
                }
            }
        }
    }

    private func finish(_ completion: @escaping @Sendable () -> Void) {
        shared.engine.queue.async { [self] in
            do {
                try writerConnection.checkpoint()
            } catch {
                configuration.logger.error("the last checkpoint failed: \(error)")
            }
            directory.release()
            completion()
        }
    }

    private func waitForSessions(
        until deadline: ContinuousClock.Instant,
        then body: @escaping @Sendable () -> Void
    ) {
        let isDone = connectionCount == 0 && shared.previews.isIdle
        if isDone || ContinuousClock.now >= deadline { return body() }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { [self] in
            waitForSessions(until: deadline, then: body)
        }
    }
}
