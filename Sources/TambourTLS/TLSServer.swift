#if TLS
    import COpenSSL
    import Synchronization
    package import TambourNet

    /// The server's side of TLS. It creates the TLS layers of accepted connections.
    package final class TLSServer: Sendable {
        private let files: TLSFiles
        private let keys: TicketKeys
        private let report: @Sendable (TLSOutcome) -> Void
        private let current: Mutex<TLSIdentities>

        /// Loads the files.
        ///
        /// - Parameters:
        ///   - ticketKeyLifetimeMs: the time for which a key encrypts session tickets. Afterwards a
        ///     new key replaces it.
        ///   - nowMs: returns the time of a clock that is never set back.
        ///   - report: called at the end of each handshake, on the connection's lane.
        package init(
            _ files: TLSFiles,
            ticketKeyLifetimeMs: Int64,
            nowMs: @escaping @Sendable () -> Int64,
            report: @escaping @Sendable (TLSOutcome) -> Void
        ) throws(TLSError) {
            self.files = files
            self.report = report
            keys = TicketKeys(lifetimeMs: ticketKeyLifetimeMs, nowMs: nowMs)
            current = Mutex(try TLSIdentities(files, keys: keys))
        }

        /// The certificates in use, in the order of the pairs.
        package var certificates: [TLSCertificate] { current.withLock { $0.certificates } }

        /// Loads the files again. Open connections are not affected, and session tickets stay
        /// valid.
        ///
        /// - Throws: the reason why a file is invalid. In this case the old certificates stay in
        ///   use.
        package func reload() throws(TLSError) {
            let fresh = try TLSIdentities(files, keys: keys)
            current.withLock { $0 = fresh }
        }

        /// Replaces and removes ticket keys that are too old. Without this call, this happens only
        /// when a client connects.
        package func rotateKeys() {
            keys.rotate()
        }

        /// Creates the layer of an accepted connection.
        package func makeLayer() -> sending any ConnectionLayer {
            let identities = current.withLock { $0 }
            return TLSLayer(identities.makeSSL(), owner: identities, report: report)
        }
    }
#else
    package import TambourNet

    /// Replaces the class in a build without TLS. `init` always throws.
    package final class TLSServer: Sendable {
        package init(
            _ files: TLSFiles,
            ticketKeyLifetimeMs: Int64,
            nowMs: @escaping @Sendable () -> Int64,
            report: @escaping @Sendable (TLSOutcome) -> Void
        ) throws(TLSError) {
            throw TLSError("this program was built without TLS; build it with: --traits TLS")
        }

        package var certificates: [TLSCertificate] { [] }

        package func reload() throws(TLSError) {}

        package func rotateKeys() {}

        package func makeLayer() -> sending any ConnectionLayer {
            preconditionFailure("there is no TLS in this build")
        }
    }
#endif
