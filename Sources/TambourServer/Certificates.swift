import Dispatch
import Logging
import Synchronization
import TambourMessenger
import TambourNet
import TambourProtocol
package import TambourTLS

/// The certificates of a running server. Loads the certificates again when their files change or an
/// operator requests it. Counts handshakes and logs failures.
///
/// `@unchecked Sendable`: `state` is a `Mutex`, and all other properties are constant.
package final class Certificates: @unchecked Sendable {
    private struct State {
        var changes: TLSFileChanges
        var isStopped = false
        /// The certificates for which the log already contains a warning about their expiry.
        var warned: Set<TLSCertificate> = []
    }

    private let tls: TLSServer
    private let logger: Logger
    private let intervalMs: Int
    private let wallMs: @Sendable () -> Int64
    private let queue = DispatchQueue(label: "tambour.certificates")
    private let state: Mutex<State>
    /// The lock that is held while files are loaded. It prevents older contents from replacing
    /// newer contents.
    private let loading = Mutex(())

    /// The time between the warning in the log and the expiry of a certificate, in seconds.
    private static let warnedSeconds: Int64 = 7 * 86_400

    init(_ files: TLSFiles, _ messenger: Messenger) throws(TLSError) {
        let (metrics, limits) = (messenger.metrics, messenger.limits)
        let failures = ThrottledLog(messenger.logger, nowMs: messenger.environment.wallMs)
        let started = ContinuousClock.now
        state = Mutex(State(changes: TLSFileChanges(files.paths)))
        tls = try TLSServer(
            files,
            ticketKeyLifetimeMs: Int64(limits.ticketKeyLifetimeMs),
            nowMs: { Int64((ContinuousClock.now - started) / .milliseconds(1)) },
            report: { outcome in
                switch outcome {
                case .completed(_, let isResumed): metrics.countHandshake(isResumed: isResumed)
                case .failed(let failure, let reason):
                    metrics.countHandshake(failed: failure.rawValue)
                    // An abandoned handshake is common and harmless, so it is not logged.
                    guard failure != .abandoned else { return }
                    failures.notice("a TLS handshake failed", metadata: ["reason": "\(reason)"])
                }
            }
        )
        logger = messenger.logger
        intervalMs = limits.certificateCheckIntervalMs
        wallMs = messenger.environment.wallMs
        warnAboutEnds()
    }

    /// A function that creates the layers of an accepted connection.
    var layers: LayerFactory {
        { [tls] in [tls.makeLayer()] }
    }

    /// The file of each certificate, and the time at which the certificate expires, in seconds
    /// since 1970.
    var ends: [(String, Int)] {
        tls.certificates.map { ($0.path, Int(clamping: $0.expires)) }
    }

    /// Describes the certificates for the operator.
    var summary: [String] {
        tls.certificates.map { "certificate \($0.path) expires \($0.end)" }
    }

    /// Loads the files again.
    ///
    /// - Throws: the reason why a file is invalid. In this case the old certificates stay in use.
    package func reload() throws(TLSError) {
        state.withLock { $0.changes.load() }
        try load()
    }

    /// Loads the files if they have changed and no change is still in progress. Also removes old
    /// ticket keys.
    package func check() {
        tls.rotateKeys()
        if state.withLock({ $0.changes.haveSettled() }) { try? load() }
        warnAboutEnds()
    }

    func start() {
        queue.asyncAfter(deadline: .now() + .milliseconds(intervalMs)) { [weak self] in
            guard let self, !state.withLock({ $0.isStopped }) else { return }
            check()
            start()
        }
    }

    func stop() {
        state.withLock { $0.isStopped = true }
    }

    private func load() throws(TLSError) {
        do {
            try loading.withLock { _ throws(TLSError) in try tls.reload() }
        } catch {
            logger.error(
                "the changed certificates are refused, the old ones stay",
                metadata: ["reason": "\(error)"]
            )
            throw error
        }
        for certificate in tls.certificates {
            logger.notice(
                "certificate loaded",
                metadata: ["certificate": "\(certificate.path)", "expires": "\(certificate.end)"]
            )
        }
        warnAboutEnds()
    }

    /// Warns once about each certificate that has expired or will soon expire.
    private func warnAboutEnds() {
        let now = wallMs() / 1000
        for certificate in tls.certificates where certificate.expires - now < Self.warnedSeconds {
            guard state.withLock({ $0.warned.insert(certificate).inserted }) else { continue }
            let days = (certificate.expires - now) / 86_400
            let text: Logger.Message =
                certificate.expires <= now
                ? "a certificate has expired; clients refuse it"
                : "a certificate expires in \(days) days"
            logger.warning(text, metadata: ["certificate": "\(certificate.path)"])
        }
    }
}

extension TLSCertificate {
    /// The time at which the certificate expires, as text for people.
    fileprivate var end: String { AdminText.time(expires * 1000) }
}
