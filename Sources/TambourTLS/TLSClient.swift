#if TLS
    import COpenSSL
    import Glibc
    import Synchronization
    package import TambourNet

    /// The client's side of TLS. It creates the TLS layers of connections to servers.
    ///
    /// It keeps the newest session of each host. A new connection to the host resumes this session.
    ///
    /// `@unchecked Sendable`: `sessions` is a `Mutex`, and all other properties are constant.
    package final class TLSClient: @unchecked Sendable {
        /// The maximum number of hosts whose sessions are kept. Before the session of one more host
        /// is stored, all sessions are removed.
        private static let keptHosts = 16

        private let context: TLSContext
        private let trust: TLSTrust
        private let sessions = Mutex<[String: Session]>([:])

        /// A session of OpenSSL.
        ///
        /// `@unchecked Sendable`: OpenSSL counts references to a session atomically and locks its
        /// contents.
        private final class Session: @unchecked Sendable {
            let pointer: OpaquePointer

            init(_ pointer: OpaquePointer) { self.pointer = pointer }

            deinit { SSL_SESSION_free(pointer) }
        }

        /// - Parameters:
        ///   - identity: the client's own certificate. Some servers require such a certificate.
        ///   - isOld: whether the client supports only TLS 1.2; for tests.
        ///   - ciphers: the ciphers of TLS 1.2, as OpenSSL names them; for tests.
        package init(
            _ trust: TLSTrust,
            identity: TLSPair? = nil,
            isOld: Bool = false,
            ciphers: String = TLSContext.ciphers
        ) throws(TLSError) {
            self.trust = trust
            context = try TLSContext(TLS_client_method(), groups: TLSContext.allGroups)
            guard SSL_CTX_set_cipher_list(context.pointer, ciphers) == 1 else {
                throw TLSError("OpenSSL lacks \(ciphers)")
            }
            if isOld { tambour_ssl_ctx_set_max_version(context.pointer, TLS1_2_VERSION) }
            if let identity { try context.load(identity) }
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER) { isAccepted, store in
                if isAccepted == 0, let store { TLSLayer.of(store)?.noteRejection(by: store) }
                return isAccepted
            }
            switch trust {
            case .system:
                guard SSL_CTX_set_default_verify_paths(context.pointer) == 1 else {
                    throw TLSError("the system's authorities cannot be read")
                }
            case .authorities(let pem): try context.trust(certificatesOf: pem)
            case .pinned: break
            }
            let this = Unmanaged.passUnretained(self).toOpaque()
            if case .pinned = trust {
                let check: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
                    store,
                    client in
                    guard let store, let client else { return 0 }
                    let this = Unmanaged<TLSClient>.fromOpaque(client).takeUnretainedValue()
                    return this.hasPinnedKey(store) ? 1 : 0
                }
                SSL_CTX_set_cert_verify_callback(context.pointer, check, this)
            }
            SSL_CTX_set_ex_data(context.pointer, 0, this)
            tambour_ssl_ctx_set_cache_mode(context.pointer, tambour_client_session_cache)
            SSL_CTX_sess_set_new_cb(context.pointer) { ssl, session in
                guard let ssl, let session, let layer = SSL_get_ex_data(ssl, 0),
                    let client = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0)
                else { return 0 }
                let host = Unmanaged<TLSLayer>.fromOpaque(layer).takeUnretainedValue().host
                let this = Unmanaged<TLSClient>.fromOpaque(client).takeUnretainedValue()
                this.keep(session, of: host)
                return 1
            }
        }

        /// Creates the layer of a connection.
        ///
        /// - Parameters:
        ///   - host: a DNS name, or an address without brackets. The server's certificate must be
        ///     valid for this name or address.
        ///   - report: called at the end of the handshake, on the connection's lane.
        ///   - refused: called at most once, when the handshake fails or when the server refuses
        ///     the client after the handshake. If the handshake fails, it is called before
        ///     `report`. It is not called when the server only disconnects.
        /// - Throws: if no certificate can contain `host`. Without this check, OpenSSL would accept
        ///   a certificate with any name.
        package func makeLayer(
            host: String,
            report: @escaping @Sendable (TLSOutcome) -> Void = { _ in },
            refused: @escaping @Sendable (TLSRefusal) -> Void = { _ in }
        ) throws(TLSError) -> sending any ConnectionLayer {
            let ssl = context.makeSSL()
            SSL_set_connect_state(ssl)
            var isChecked: Bool
            if Self.isAddress(host) {
                isChecked = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
            } else {
                isChecked = !host.isEmpty && !host.utf8.contains(0)
                isChecked = isChecked && tambour_ssl_set_server_name(ssl, host) == 1
                isChecked = isChecked && SSL_set1_host(ssl, host) == 1
                let flags =
                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
                SSL_set_hostflags(ssl, UInt32(flags))
            }
            guard isChecked else {
                SSL_free(ssl)
                throw TLSError("“\(host)” is no name of a server")
            }
            if let session = sessions.withLock({ $0[host] }) {
                SSL_set_session(ssl, session.pointer)
            }
            let layer = TLSLayer(ssl, owner: self, host: host, report: report, refused: refused)
            SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(layer).toOpaque())
            return layer
        }

        /// Returns the SHA-256 of the public key in a certificate file, for `TLSTrust.pinned`.
        package static func publicKeyDigest(ofFile path: String) throws(TLSError) -> [UInt8] {
            try TLSContext.checkReadable(path)
            let file = BIO_new_file(path, "r")
            defer { BIO_free(file) }
            guard let certificate = PEM_read_bio_X509(file, nil, nil, nil) else {
                throw TLSError("\(path) is no certificate in PEM")
            }
            defer { X509_free(certificate) }
            return digest(ofKeyOf: certificate)
        }

        /// Keeps the session of a completed handshake. This is necessary only for a resumed session
        /// of TLS 1.2. OpenSSL reports every new session, but not the new ticket of such a session.
        func opened(_ ssl: OpaquePointer, to host: String) {
            guard SSL_session_reused(ssl) == 1, SSL_version(ssl) == TLS1_2_VERSION,
                let session = SSL_get1_session(ssl)
            else { return }
            keep(session, of: host)
        }

        private func hasPinnedKey(_ store: OpaquePointer) -> Bool {
            if let certificate = X509_STORE_CTX_get0_cert(store),
                case .pinned(let pin) = trust, Self.digest(ofKeyOf: certificate) == pin
            {
                return true
            }
            X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED)
            TLSLayer.of(store)?.noteOtherKey(in: store)
            return false
        }

        private func keep(_ session: OpaquePointer, of host: String) {
            sessions.withLock { sessions in
                if sessions[host] == nil, sessions.count >= Self.keptHosts {
                    sessions.removeAll()
                }
                sessions[host] = Session(session)
            }
        }

        static func digest(ofKeyOf certificate: OpaquePointer) -> [UInt8] {
            var encoded: UnsafeMutablePointer<UInt8>?
            let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded)
            defer { tambour_free(encoded) }
            var digest = [UInt8](repeating: 0, count: 32)
            guard count > 0 else { return [] }
            EVP_Digest(encoded, Int(count), &digest, nil, EVP_sha256(), nil)
            return digest
        }

        private static func isAddress(_ host: String) -> Bool {
            var bytes = in6_addr()
            return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1
        }
    }
#else
    package import TambourNet

    /// Replaces the class in a build without TLS. `init` always throws.
    package final class TLSClient: Sendable {
        package init(_ trust: TLSTrust) throws(TLSError) {
            throw TLSError("this program was built without TLS; build it with: --traits TLS")
        }

        package func makeLayer(
            host: String,
            report: @escaping @Sendable (TLSOutcome) -> Void = { _ in },
            refused: @escaping @Sendable (TLSRefusal) -> Void = { _ in }
        ) throws(TLSError) -> sending any ConnectionLayer {
            preconditionFailure("there is no TLS in this build")
        }
    }
#endif
