package import Dispatch
import Glibc
import Logging
import Synchronization
package import TambourGateway
package import TambourMessenger
import TambourNet
package import TambourProtocol
import TambourSQL

/// A whole server in one process: the messenger, its gateway for clients, and the admin socket.
///
/// `@unchecked Sendable`: all state that changes after `init` is in `state`, which a lock guards.
package final class Server: @unchecked Sendable {
    /// The reason why a server cannot start.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String

        package init(_ description: String) {
            self.description = description
        }
    }

    private struct State {
        var admin: AdminSocket?
        var isStopping = false
    }

    package let messenger: Messenger
    package let gateway: Gateway
    let configuration: ServerConfiguration
    /// The certificates for TLS listeners; nil if the configuration names no certificates.
    package let certificates: Certificates?
    private let directory: DataDirectory
    private let state = Mutex(State())

    /// The maximum time for which `stop` waits for requests in flight.
    private static let stopDeadline: Duration = .seconds(5)

    /// Opens the store and migrates its schema. The server serves connections only after `start`.
    package init(_ configuration: ServerConfiguration) throws {
        self.configuration = configuration
        if configuration.messenger.loginCodes.fixedDigits != nil,
            let open = configuration.listen.first(where: { !$0.address.isLoopback })
        {
            throw StartError(
                "fixed login codes let anybody in: \(open) is not a loopback address"
            )
        }
        try Self.checkListeners(configuration)
        directory = try DataDirectory(configuration.dataDirectory)
        if !Self.isDurable {
            configuration.messenger.logger.warning(
                "TAMBOUR_DEBUG_SYNCHRONOUS: a power cut will lose messages"
            )
        }
        messenger = try Messenger(
            configuration.messenger,
            database: SQLFile(directory.databasePath, isDurable: Self.isDurable)
        )
        certificates = try configuration.tls.map { [messenger] files in
            try Certificates(files, messenger)
        }
        gateway = Gateway(
            messenger,
            lanes: configuration.lanes,
            rules: configuration.features.rules,
            poisonsBuffers: configuration.poisonsBuffers
        )
    }

    private static func checkListeners(_ configuration: ServerConfiguration) throws {
        if configuration.tls == nil,
            let listener = configuration.listen.first(where: { $0.transport == .tls })
        {
            throw StartError(
                "\(listener) needs a certificate: --tls-certificate FILE --tls-key FILE"
            )
        }
    }

    /// Whether commits wait for the disk. In a debug build, this can be switched off: the crash
    /// tests thus prove that they detect lost commits.
    private static var isDurable: Bool {
        #if DEBUG
            if let mode = getenv("TAMBOUR_DEBUG_SYNCHRONOUS"), String(cString: mode) == "NORMAL" {
                return false
            }
        #endif
        return true
    }

    package var metrics: ServerMetrics { messenger.metrics }

    /// Starts serving.
    ///
    /// - Returns: the addresses of the listeners, with their actual ports.
    package func start() throws -> [String] {
        startWithoutDoors()
        let admin = try AdminSocket(
            path: directory.adminSocketPath,
            backend: LiveAdminBackend(self),
            maxConnections: messenger.limits.maxAdminConnections,
            logger: messenger.logger,
            onExhausted: { [gateway] in gateway.makeRoom() }
        )
        state.withLock { $0.admin = admin }
        certificates?.start()
        return try gateway.listen(on: configuration.listen, tls: certificates?.layers)
    }

    /// Starts serving without listeners and without an admin socket. The server serves only the
    /// connections that the caller passes to `accept`.
    package func startWithoutDoors() {
        gateway.start()
        messenger.start()
    }

    /// Serves a connected socket; see `Gateway.accept`.
    package func accept(_ socket: Int32, _ peer: String, dialect: Capabilities? = nil) {
        gateway.accept(socket, peer, dialect: dialect)
    }

    /// The number of open connections, with and without a login.
    package var connectionCount: Int { gateway.connectionCount }

    /// Returns whether all lanes, the engine and a reader answer in time. Only the lanes need to
    /// answer while the operator rewrites the store, because commands wait for that.
    package func isAlive(within timeout: DispatchTimeInterval) -> Bool {
        if messenger.isVacuuming { return gateway.laneReports() != nil }
        let answered = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { [self] in
            // A failure is an answer: a restart would not repair a store that cannot be written.
            let lanes = gateway.laneReports()
            try? messenger.write { _ in }
            try? messenger.read { _ in }
            if lanes != nil { answered.signal() }
        }
        // The rewrite may have started after the question.
        return answered.wait(timeout: .now() + timeout) == .success || messenger.isVacuuming
    }

    /// Reloads the certificates and the feature rules, and applies the rules.
    ///
    /// Certificates and rules are loaded independently: a mistake in one does not affect the other.
    /// - Returns: lines for the operator.
    /// - Throws: the mistakes in the files, or an error if a lane is too busy to apply the rules in
    ///   time. After a mistake in the certificates, the old certificates stay in use; after a
    ///   mistake in the rules, the old rules do.
    package func reload() throws -> [String] {
        let load = configuration.features.reload
        guard certificates != nil || load != nil else {
            throw AdminService.Failure(
                description: "the server was started without --features and without certificates"
            )
        }
        var (lines, mistakes): ([String], [any Error]) = ([], [])
        do {
            try certificates?.reload()
            lines += certificates?.summary ?? []
        } catch {
            mistakes.append(error)
        }
        do {
            if let (rules, told) = try load.map(apply) {
                lines += rules.summary + ["sessions told: \(told)"]
            }
        } catch {
            mistakes.append(error)
        }
        if mistakes.count == 1 { throw mistakes[0] }
        guard mistakes.isEmpty else {
            let reasons = mistakes.map { "\($0)" }.joined(separator: "; ")
            throw AdminService.Failure(description: reasons)
        }
        return lines
    }

    private func apply(
        _ load: () throws -> FeatureRules
    ) throws -> (rules: FeatureRules, told: Int) {
        do {
            return try gateway.applyRules(load)
        } catch is Gateway.BusyLane {
            throw AdminService.Failure(
                description: "a lane is busy: the rules come into force late"
            )
        }
    }

    /// Stops the listeners, answers requests in flight, checkpoints, and releases the data
    /// directory.
    ///
    /// - Parameter completion: called once, on any queue, after all these steps. If the server is
    ///   already stopping, it is not called.
    package func stop(completion: @escaping @Sendable () -> Void) {
        let isFirst: Bool = state.withLock { state in
            defer { state.isStopping = true }
            return !state.isStopping
        }
        guard isFirst else { return }
        gateway.stopListening()
        certificates?.stop()
        state.withLock { $0.admin }?.stop()
        messenger.stopOwnWork()
        gateway.closeConnections()
        waitForSessions(until: ContinuousClock.now + Self.stopDeadline) { [self] in
            gateway.stop { [self] in
                messenger.stop { [self] in
                    directory.release()
                    completion()
                }
            }
        }
    }

    private func waitForSessions(
        until deadline: ContinuousClock.Instant,
        then body: @escaping @Sendable () -> Void
    ) {
        let isDone = connectionCount == 0 && messenger.isIdle
        if isDone || ContinuousClock.now >= deadline { return body() }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { [self] in
            waitForSessions(until: deadline, then: body)
        }
    }
}
