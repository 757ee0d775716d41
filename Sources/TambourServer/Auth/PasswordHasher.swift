import CryptoExtras
import Synchronization
import TambourNet
import TambourProtocol
import TambourStore

/// Hashes passwords with scrypt, which takes long on purpose, one after the other on a queue of its own.
///
/// `@unchecked Sendable`: the connection is touched on the queue only.
final class PasswordHasher: @unchecked Sendable {
    private let queue: SerialQueue
    private let store: StoreConnection
    private let dispatcher: Dispatcher
    private let limit: Int
    private let waiting = Atomic<Int>(0)
    private let report: @Sendable (String) -> Void

    private static let hashBytes = 32
    /// The usual ones; how much it costs is said by the rounds alone.
    private static let blockSize = 8
    private static let parallelism = 1

    init(
        store: StoreConnection,
        dispatcher: Dispatcher,
        limits: Limits,
        environment: Environment,
        report: @escaping @Sendable (String) -> Void
    ) {
        queue = SerialQueue(label: "tambour.passwords", simulated: environment.scheduler)
        self.store = store
        self.dispatcher = dispatcher
        limit = limits.maxPasswordsWaiting
        self.report = report
    }

    /// Whether a command comes by here: all that belong to one track do, so that they keep their order.
    static func concerns(_ request: CommandRequest) -> Bool {
        switch request {
        case .authCheckPassword, .authSet2fa, .authVerifyEmail, .authCheckEmail,
            .authLoginCheckPassword, .authLoginRestorePassword:
            true
        default: false
        }
    }

    /// Hashes the password of a command, if it has one to hash.
    ///
    /// - Returns: false when too many wait; then nothing is called.
    func post(
        _ request: CommandRequest,
        from requester: Requester,
        then body: @escaping @Sendable (Result<HashedPassword?, RequestError>) -> Void
    ) -> Bool {
        guard waiting.add(1, ordering: .relaxed).newValue <= limit else {
            waiting.subtract(1, ordering: .relaxed)
            return false
        }
        queue.async { [self] in
            do {
                let found = try dispatcher.passwordToHash(of: request, from: requester, on: store)
                body(.success(try found.map(Self.hash)))
            } catch {
                report("a password could not be hashed: \(error)")
                body(.failure(.internalError))
            }
            waiting.subtract(1, ordering: .relaxed)
        }
        return true
    }

    static func hash(_ password: PasswordToHash) throws -> HashedPassword {
        let key = try KDF.Scrypt.deriveKey(
            from: Array(password.password.utf8),
            salt: password.salt,
            outputByteCount: hashBytes,
            rounds: 1 << password.logRounds,
            blockSize: blockSize,
            parallelism: parallelism
        )
        return HashedPassword(
            salt: password.salt,
            hash: key.withUnsafeBytes { Array($0) },
            logRounds: password.logRounds
        )
    }

    /// Runs `body` when everything posted before has run; used once, at the end.
    func close(_ body: @escaping @Sendable () -> Void) {
        queue.async(body)
    }
}
