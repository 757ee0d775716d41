import Dispatch
import Glibc
import Synchronization
package import TambourMessenger
package import TambourNet
package import TambourProtocol
import TambourQueues

/// The door for clients over TCP: listeners, lanes, and the sessions on the lanes.
package final class Gateway: Sendable {
    /// The state of a lane.
    package struct LaneReport {
        /// The time that a posted block waited for its turn on the lane, in seconds.
        package let delay: Double
        package let features: [String: FeatureCount]
    }

    /// A lane is so busy that it did not answer in time.
    package struct BusyLane: Error {}

    let shared: SharedServices
    let lanes: [Lane]
    private let gateways: [LaneGateway]
    let router: PushRouter
    private let admission: Admission
    private let listeners = Mutex<[Listener]>([])
    private let nextLane = Atomic<Int>(0)
    private let reloading = Mutex(())

    private static let laneTimeout = DispatchTimeInterval.seconds(5)

    /// Creates the lanes and connects this door to the messenger. The door serves connections only
    /// after `start`.
    ///
    /// - Parameter poisonsBuffers: see `ServerConfiguration`.
    package init(
        _ messenger: Messenger,
        lanes count: Int,
        rules: FeatureRules,
        poisonsBuffers: Bool
    ) {
        let limits = messenger.limits
        let shared = SharedServices(messenger)
        self.shared = shared
        lanes = (0..<max(1, count)).map { index in
            Lane(
                index: index,
                label: "tambour.lane-\(index)",
                lowPriority: .init(
                    readBytes: limits.maxTurnBytesBeforeLogin,
                    workPerRound: limits.maxStrangerBytesPerRound,
                    openingsPerRound: limits.maxHandshakesPerRound
                ),
                poisonAfterCallback: poisonsBuffers || Lane.poisonsByDefault,
                simulated: messenger.environment.scheduler
            )
        }
        admission = Admission(
            descriptors: Admission.descriptorLimit,
            limits: limits,
            strangers: shared.strangers,
            metrics: messenger.metrics,
            logger: messenger.logger,
            nowMs: { [queue = lanes[0].queue] in queue.nowMs }
        )
        gateways = lanes.map { LaneGateway(lane: $0, shared: shared, rules: rules) }
        router = PushRouter(gateways, shared.accounts)
        messenger.connect(router)
    }

    /// Starts the lanes.
    package func start() {
        for lane in lanes { lane.start() }
    }

    /// Accepts connections.
    ///
    /// - Parameter tls: creates the layers of each connection of a TLS listener; nil when no
    ///   endpoint uses TLS.
    /// - Returns: the addresses of the listeners, with their actual ports.
    package func listen(
        on endpoints: [ListenEndpoint],
        tls: LayerFactory? = nil
    ) throws -> [String] {
        admission.begin()
        return try endpoints.map { endpoint in
            let layers = endpoint.transport == .tls ? tls : nil
            precondition(endpoint.transport == .tcp || layers != nil, "a TLS listener without TLS")
            let listener = try Listener(address: endpoint.address)
            listeners.withLock { $0.append(listener) }
            listener.start { [admission] in
                admission.exhausted()
            } onAccept: { [self] socket, peer in
                guard admission.admits(socket) else {
                    close(socket)
                    return
                }
                accept(socket, peer, dialect: endpoint.dialect, layers: layers)
            }
            return listener.boundAddress
        }
    }

    /// Serves a connected socket and takes ownership of it.
    ///
    /// - Parameters:
    ///   - peer: the other side's address, as `127.0.0.1:43211`.
    ///   - dialect: the dialect of the listener's clients; nil to detect each client's dialect.
    ///   - layers: creates the layers of the connection.
    package func accept(
        _ socket: Int32,
        _ peer: String,
        dialect: Capabilities? = nil,
        layers: LayerFactory? = nil
    ) {
        let index = nextLane.add(1, ordering: .relaxed).oldValue
        let gateway = gateways[(index & Int.max) % gateways.count]
        gateway.lane.adopt(
            fileDescriptor: socket,
            peer: peer,
            layers: layers?() ?? [],
            delegate: Session(gateway: gateway, dialect: dialect)
        )
    }

    /// Closes connections without a login. Called after the process has run out of descriptors.
    package func makeRoom() {
        admission.exhausted()
    }

    // MARK: - Operator

    /// Live connections, logged in or not.
    package var connectionCount: Int { shared.metrics.connectionCount }
    /// Connections that have logged in.
    package var sessionCount: Int { shared.accounts.count }
    /// Connections that have not logged in.
    package var strangerCount: Int { shared.strangers.count }

    /// Returns a report of each lane. The call waits for the lanes, so do not call it on a lane or
    /// on the engine.
    /// - Returns: the reports; nil when a lane does not answer within five seconds.
    package func laneReports() -> [LaneReport]? {
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

    /// Loads feature rules and applies them on all lanes.
    ///
    /// When this method returns, the lanes have written the new decisions to each session whose
    /// decisions changed. The reply to a later PING follows them. Like `laneReports`, this method
    /// waits for the lanes.
    /// - Returns: the rules, and the number of sessions that got new decisions.
    /// - Throws: the mistakes in the rules. In this case the old rules stay in force. Throws
    ///   `BusyLane` when a lane does not apply the new rules in time.
    package func applyRules(
        _ load: () throws -> FeatureRules
    ) throws -> (rules: FeatureRules, told: Int) {
        // Only one reload runs at a time. Otherwise two lanes could keep different rules.
        try reloading.withLock { _ in
            let reload = FeatureReload(try load(), lanes: gateways.count)
            router.post(.features(reload))
            guard let told = reload.wait(Self.laneTimeout) else { throw BusyLane() }
            return (reload.rules, told)
        }
    }

    // MARK: - Stopping

    package func stopListening() {
        let stopped = listeners.withLock { listeners in
            defer { listeners = [] }
            return listeners
        }
        for listener in stopped { listener.stop() }
    }

    /// Closes each connection as soon as its requests in flight are answered.
    package func closeConnections() {
        router.post(.stop)
    }

    /// Stops the lanes and closes the remaining connections.
    package func stop(_ completion: @escaping @Sendable () -> Void) {
        let stopped = DispatchGroup()
        for lane in lanes {
            stopped.enter()
            lane.stop { stopped.leave() }
        }
        stopped.notify(queue: .global(), execute: completion)
    }
}
