import Dispatch
import Glibc
import Synchronization
import TambourNet
import TambourProtocol
import TambourQueues
import TambourTLS

/// Drives a core with a real network and a real clock, on one lane.
///
/// `@unchecked Sendable`: all mutable state is used on the lane only.
final class ClientDriver: ClientHost, @unchecked Sendable {
    private let lane = Lane(index: 0, label: "tambour.client")
    private let report: @Sendable (Notice) -> Void
    private var made: ClientCore?
    private var connection: Connection?
    private var ear: Ear?
    private var dialing: Dialer.Attempt?
    /// The TLS client, kept over reconnects so that a new connection can resume the TLS session.
    private var secure: (client: TLSClient, trust: ServerTrust)?
    private var timer: TimerToken?
    private let lock: StoreLock
    private let photos: PhotoWorker
    private var isStarted = false
    private var isOver = false

    /// The interval for checking whether another process that shares the store has written or
    /// ended.
    private static let pollInterval: Duration = .milliseconds(250)

    /// A notification from the core to its listeners.
    enum Notice: Sendable {
        case changes(ChangeSet)
        case state(ConnectionState)
        case event(ClientEvent)
    }

    /// - Parameter report: called on the lane.
    init(store: LocalStore, options: ClientOptions, report: @escaping @Sendable (Notice) -> Void) {
        self.report = report
        lock = StoreLock(path: store.path)
        photos = PhotoWorker(options.photoUpload)
        let environment = ClientEnvironment(
            wallMs: { milliseconds(of: CLOCK_REALTIME) },
            nowMs: { milliseconds(of: CLOCK_MONOTONIC) },
            random: { UInt64.random(in: .min ... .max) }
        )
        made = ClientCore(store: store, host: self, environment: environment, options: options)
        lane.start()
    }

    private var core: ClientCore {
        guard let made else { preconditionFailure("the core is made with its driver") }
        return made
    }

    /// Connects if no other process of this account owns the connection, otherwise as soon as that
    /// process ends.
    func start() {
        perform { [self] _ in
            guard !isStarted else { return }
            isStarted = true
            if lock.take() {
                core.start()
            } else {
                core.isElsewhere = true
                report(.state(.elsewhere))
            }
            poll()
        }
    }

    private func poll() {
        _ = lane.schedule(after: Self.pollInterval) { [weak self] in
            guard let self, isStarted else { return }
            if !lock.isHeld, lock.take() { core.start() }
            core.noticeOthers()
            poll()
        }
    }

    /// Runs `body` with the core, on its lane.
    func perform(_ body: @escaping @Sendable (ClientCore) -> Void) {
        lane.queue.async { [self] in lane.round { body(core) } }
    }

    /// Runs `body` with the core and returns its result. Must not be called on the lane.
    func call<Value: Sendable>(
        _ body: @escaping @Sendable (ClientCore) throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        let result: Result<Value, ClientError> = await withCheckedContinuation { continuation in
            perform { core in
                do throws(ClientError) {
                    continuation.resume(returning: .success(try body(core)))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    /// Closes the connection and stops the lane, once. No other call may follow.
    ///
    /// - Parameter completion: called when the driver has stopped, even if it had stopped before.
    func stop(completion: @escaping @Sendable () -> Void) {
        lane.queue.async { [self] in
            guard !isOver else { return completion() }
            isOver = true
            isStarted = false
            lane.round {
                core.stop()
                lock.release()
            }
            lane.stop(completion: completion)
        }
    }

    // MARK: - ClientHost

    func connect(to server: ServerAddress, trusting trust: ServerTrust) {
        disconnect()
        dialing = Dialer.connect(to: server) { [self] socket, attempt in
            lane.queue.async { [self] in
                lane.round { dialed(socket, attempt, server, trust) }
            }
        }
    }

    private func dialed(
        _ result: Result<Int32, ConnectionFailure>,
        _ attempt: Dialer.Attempt,
        _ server: ServerAddress,
        _ trust: ServerTrust
    ) {
        guard dialing === attempt else {
            if case .success(let socket) = result { close(socket) }
            return
        }
        dialing = nil
        let socket: Int32
        do {
            socket = try result.get()
        } catch {
            return core.connectionClosed(error)
        }
        let ear = Ear(self, isSecure: server.scheme == .tls)
        do {
            let layers = try layers(server, trust, ear)
            self.ear = ear
            lane.adopt(fileDescriptor: socket, peer: "server", layers: layers, delegate: ear)
        } catch {
            close(socket)
            core.connectionClosed(.tlsUnavailable(reason: "\(error)"))
        }
    }

    /// Creates the layers between the socket and the `Ear`.
    private func layers(
        _ server: ServerAddress,
        _ trust: ServerTrust,
        _ ear: Ear
    ) throws(TLSError) -> sending [any ConnectionLayer] {
        guard server.scheme == .tls else { return [] }
        let client: TLSClient
        if let secure, secure.trust == trust {
            client = secure.client
        } else {
            client = try TLSClient(trust.forTLS)
            secure = (client, trust)
        }
        let layer = try client.makeLayer(
            host: server.name,
            refused: { [weak ear] refusal in
                ear?.refusal = refusal
            }
        )
        return [layer]
    }

    func disconnect() {
        dialing?.giveUp()
        dialing = nil
        // Ignore later events of the old connection.
        let old = connection
        connection = nil
        ear = nil
        old?.close(.local("the client closes"))
    }

    func send(_ bytes: [UInt8]) {
        connection?.write(bytes)
    }

    func wake(afterMs: Int64?) {
        if let timer { lane.cancel(timer) }
        timer = nil
        guard let afterMs else { return }
        timer = lane.schedule(after: .milliseconds(afterMs)) { [weak self] in
            self?.timer = nil
            self?.core.wake()
        }
    }

    func begin(_ work: PhotoWork) {
        let run = work.run
        photos.begin(work) { [weak self] report in self?.hear(report, of: run) }
    }

    func giveUp(_ run: TaskRun) { photos.giveUp(run) }

    /// Passes a report to the core on its lane. May be called from any thread.
    private func hear(_ report: PhotoReport, of run: TaskRun) {
        lane.queue.async { [self] in
            // After `stop` the store is closed.
            guard isStarted else { return }
            lane.round { core.photos.reported(report, by: run) }
        }
    }

    func publish(_ changes: ChangeSet) { report(.changes(changes)) }

    func publish(_ state: ConnectionState) { report(.state(state)) }

    func publish(_ event: ClientEvent) { report(.event(event)) }

    // MARK: - Events of the connection

    /// Receives the events of one connection, until another connection replaces it in the driver.
    ///
    /// `@unchecked Sendable`: used on the lane only; `adopt` hands the object to the lane.
    private final class Ear: ConnectionDelegate, @unchecked Sendable {
        private weak var driver: ClientDriver?
        private let isSecure: Bool
        /// Whether the core was told that the connection is open.
        private var isOpen = false
        /// Why the client has not accepted the server, or the server has not accepted the client.
        var refusal: TLSRefusal?

        init(_ driver: ClientDriver, isSecure: Bool) {
            self.driver = driver
            self.isSecure = isSecure
        }

        private var current: ClientDriver? { driver?.ear === self ? driver : nil }

        func connectionOpened(_ connection: Connection) {
            guard let current else {
                return connection.close(.local("the client needs no connection"))
            }
            current.connection = connection
            if isSecure {
                current.core.connectionAccepted()
            } else {
                isOpen = true
                current.core.connectionOpened()
            }
        }

        func connectionLayersOpened(_ connection: Connection) {
            guard let current else { return }
            isOpen = true
            current.core.connectionOpened()
        }

        func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int {
            current?.core.connectionReceived(bytes)
            return bytes.count
        }

        func connectionClosed(_ connection: Connection, reason: CloseReason) {
            guard let current else { return }
            current.connection = nil
            current.ear = nil
            current.core.connectionClosed(failure)
        }

        /// The reason why the connection ended, if the driver knows it; nil if the core must find
        /// the reason.
        private var failure: ConnectionFailure? {
            if let refusal { return ConnectionFailure(refusal) }
            return isOpen ? nil : .closedDuringHandshake
        }
    }
}

private func milliseconds(of clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
