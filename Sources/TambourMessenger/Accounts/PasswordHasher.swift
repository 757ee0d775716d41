import Crypto
import CryptoExtras
import Synchronization
import TambourProtocol
import TambourQueues
import TambourStore

/// Hashes passwords with scrypt, one after another on a separate queue. scrypt is slow on purpose.
///
/// A password is hashed only when its command may need the hash. This means that the track exists,
/// attempts are left, and all other checks of the handler succeed. Requests wait in a
/// `PasswordLine`. One account or address therefore delays other subjects by at most one hash.
///
/// `@unchecked Sendable`: only the queue touches the connection to the store.
final class PasswordHasher: @unchecked Sendable {
    /// A command that waits for its turn.
    private struct Job: Sendable {
        let request: CommandRequest
        let requester: Requester
        let start: Start
    }

    /// Starts a command with its hashed password, or refuses it. The hasher calls this function
    /// once, on any queue. It does not call it for a request that `close` drops.
    ///
    /// The function calls `finished` when the command has been answered.
    typealias Start =
        @Sendable (
            _ password: Result<HashedPassword?, RequestError>,
            _ finished: @escaping @Sendable () -> Void
        ) -> Void

    private let queue: SerialQueue
    private let store: StoreConnection
    private let dispatcher: Dispatcher
    private let line: Mutex<PasswordLine<Job>>
    private let isClosed = Atomic<Bool>(false)
    private let metrics: ServerMetrics
    private let report: @Sendable (String) -> Void

    private static let hashBytes = 32
    /// scrypt's usual values. The cost of a hash is set by the number of rounds alone.
    private static let blockSize = 8
    private static let parallelism = 1

    init(
        store: StoreConnection,
        dispatcher: Dispatcher,
        limits: Limits,
        environment: Environment,
        metrics: ServerMetrics,
        report: @escaping @Sendable (String) -> Void
    ) {
        queue = SerialQueue(label: "tambour.passwords", simulated: environment.scheduler)
        self.store = store
        self.dispatcher = dispatcher
        line = Mutex(
            PasswordLine(
                capacity: limits.maxPasswordsWaiting,
                share: limits.maxPasswordsWaitingPerCaller
            )
        )
        self.metrics = metrics
        self.report = report
    }

    /// Returns whether a command passes through the hasher. This applies to all commands on a track
    /// for password settings or for a password challenge. It applies even to commands without a
    /// password, so that all these commands run in order.
    static func concerns(_ request: CommandRequest) -> Bool {
        switch request {
        case .authCheckPassword, .authSet2fa, .authVerifyEmail, .authCheckEmail,
            .authLoginCheckPassword, .authLoginRestorePassword:
            true
        default: false
        }
    }

    /// Queues a command. When its turn comes, hashes the password if the command needs the hash,
    /// then calls `start`.
    ///
    /// When too many requests wait, the hasher refuses one of them with `overloaded`.
    func post(_ request: CommandRequest, from requester: Requester, start: @escaping Start) {
        let job = Job(request: request, requester: requester, start: start)
        switch line.withLock({ $0.add(job, of: WorkSubject(requester)) }) {
        case .taken: break
        case .refused: return start(.failure(.overloaded)) {}
        case .displaced(let other): other.start(.failure(.overloaded)) {}
        }
        queue.async { self.serve() }
    }

    private func serve() {
        guard !isClosed.load(ordering: .relaxed), let (subject, job) = line.withLock({ $0.next() })
        else { return }
        job.start(hash(job)) { [self] in
            line.withLock { $0.finished(subject) }
            queue.async { self.serve() }
        }
    }

    private func hash(_ job: Job) -> Result<HashedPassword?, RequestError> {
        do {
            guard
                let password = try dispatcher.passwordToHash(
                    of: job.request,
                    from: job.requester,
                    on: store
                )
            else { return .success(nil) }
            metrics.passwordsHashed.add(1)
            return .success(try Self.hash(password))
        } catch {
            report("a password could not be hashed: \(error)")
            return .failure(.internalError)
        }
    }

    static func hash(_ password: PasswordToHash) throws -> HashedPassword {
        let key = try KDF.Scrypt.deriveKey(
            from: input(of: password),
            salt: password.salt,
            outputByteCount: hashBytes,
            rounds: 1 << password.logRounds,
            blockSize: blockSize,
            parallelism: parallelism
        )
        return HashedPassword(
            salt: password.salt,
            hash: key.withUnsafeBytes { Array($0) },
            logRounds: password.logRounds,
            version: password.version
        )
    }

    /// Returns the input for scrypt, which uses it as an HMAC key and pads it with zeros. A plain
    /// password therefore has the same hash with and without trailing NULs. Digests do not have
    /// this problem, because all digests have the same length.
    private static func input(of password: PasswordToHash) -> [UInt8] {
        switch password.version {
        case .plain: Array(password.password.utf8)
        case .digested: Array(SHA256.hash(data: Array(password.password.utf8)))
        }
    }

    /// Drops the waiting requests, and runs `body` after the current hash. Called once, at
    /// shutdown.
    func close(_ body: @escaping @Sendable () -> Void) {
        isClosed.store(true, ordering: .relaxed)
        line.withLock { $0.removeAll() }
        queue.async(body)
    }
}
