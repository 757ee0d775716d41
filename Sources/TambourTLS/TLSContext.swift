#if TLS
    import COpenSSL
    import Glibc

    /// A context of OpenSSL, with the settings that are the same for servers and clients.
    ///
    /// `@unchecked Sendable`: threads may share a context of OpenSSL while no thread changes it.
    /// Only the thread that creates the context changes it, before other threads can use it.
    package final class TLSContext: @unchecked Sendable {
        let pointer: OpaquePointer

        /// The ciphers of TLS 1.2 with authenticated encryption and ephemeral keys. TLS 1.3 has
        /// only such ciphers.
        package static let ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20"
        private static let ciphers13 =
            "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
        /// The groups of a server. With other groups, which a client could choose, the server would
        /// need several times as much processor time.
        static let cheapGroups = "X25519:P-256"
        /// The groups of a client. P-384 is included, because the server's certificate may have
        /// such a key.
        static let allGroups = "X25519:P-256:P-384"

        init(_ method: OpaquePointer?, groups: String) throws(TLSError) {
            ERR_clear_error()
            guard let pointer = SSL_CTX_new(method) else {
                throw TLSError("OpenSSL does not start: \(TLSFailure.ofQueue(0).reason)")
            }
            self.pointer = pointer
            tambour_ssl_ctx_set_rules(pointer)
            guard tambour_ssl_ctx_set_min_version(pointer, TLS1_2_VERSION) == 1,
                SSL_CTX_set_cipher_list(pointer, Self.ciphers) == 1,
                SSL_CTX_set_ciphersuites(pointer, Self.ciphers13) == 1,
                tambour_ssl_ctx_set_groups(pointer, groups) == 1
            else { throw TLSError("OpenSSL lacks ciphers: \(TLSFailure.ofQueue(0).reason)") }
        }

        deinit { SSL_CTX_free(pointer) }

        /// Loads a certificate with its chain and its private key.
        func load(_ pair: TLSPair) throws(TLSError) {
            for path in [pair.certificate, pair.key] { try Self.checkReadable(path) }
            guard SSL_CTX_use_certificate_chain_file(pointer, pair.certificate) == 1 else {
                throw TLSError(
                    "\(pair.certificate) is no certificate in PEM: \(TLSFailure.ofQueue(0).reason)"
                )
            }
            // Without this function, OpenSSL would ask for the key's password on the terminal.
            var wantsPassword = false
            SSL_CTX_set_default_passwd_cb(pointer) { _, _, _, wantsPassword in
                wantsPassword?.storeBytes(of: true, as: Bool.self)
                return -1
            }
            let isLoaded = withUnsafeMutablePointer(to: &wantsPassword) { wantsPassword in
                SSL_CTX_set_default_passwd_cb_userdata(pointer, wantsPassword)
                defer { SSL_CTX_set_default_passwd_cb_userdata(pointer, nil) }
                return SSL_CTX_use_PrivateKey_file(pointer, pair.key, SSL_FILETYPE_PEM) == 1
            }
            if wantsPassword {
                throw TLSError(
                    """
                    the key \(pair.key) is encrypted, and a server has nobody to ask for the \
                    password; decrypt it with: openssl pkey -in \(pair.key) -out FILE
                    """
                )
            }
            if isLoaded, SSL_CTX_check_private_key(pointer) == 1 { return }
            let reason = ERR_GET_REASON(ERR_peek_error())
            if reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH {
                throw TLSError("the key \(pair.key) does not fit \(pair.certificate)")
            }
            throw TLSError(
                "\(pair.key) is no private key in PEM: \(TLSFailure.ofQueue(0).reason)"
            )
        }

        /// Returns the loaded certificate.
        ///
        /// - Parameter path: the file from which it was loaded.
        func certificate(from path: String) throws(TLSError) -> TLSCertificate {
            guard let certificate = SSL_CTX_get0_certificate(pointer) else {
                throw TLSError("\(path) has no certificate")
            }
            return TLSCertificate(
                path: path,
                names: Self.names(of: certificate),
                expires: Self.seconds(X509_get0_notAfter(certificate))
            )
        }

        /// Returns the DNS names of a certificate, in lower case.
        static func names(of certificate: OpaquePointer, most: Int = .max) -> [String] {
            var names: [String] = []
            while names.count < most,
                let name = tambour_x509_dns_name(certificate, Int32(names.count))
            {
                names.append(String(cString: name).lowercased())
                tambour_free(name)
            }
            return names
        }

        /// Converts a time of OpenSSL to seconds since 1970.
        static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
            var parts = tm()
            ASN1_TIME_to_tm(time, &parts)
            return Int64(timegm(&parts))
        }

        /// Trusts the certificates in a text in PEM format.
        ///
        /// - Throws: if a certificate in the text is invalid, or the text contains no certificate.
        func trust(certificatesOf pem: String) throws(TLSError) {
            let store = SSL_CTX_get_cert_store(pointer)
            X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
            let text = BIO_new(BIO_s_mem())
            defer { BIO_free(text) }
            let bytes = Array(pem.utf8)
            guard BIO_write(text, bytes, Int32(clamping: bytes.count)) == bytes.count else {
                throw TLSError("there is no certificate in PEM")
            }
            ERR_clear_error()
            var count = 0
            while let certificate = PEM_read_bio_X509(text, nil, nil, nil) {
                X509_STORE_add_cert(store, certificate)
                X509_free(certificate)
                count += 1
            }
            // At the end of the text, OpenSSL reports that it finds no further certificate. Any
            // other error means that a certificate is invalid.
            let isBroken = ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE
            ERR_clear_error()
            if isBroken { throw TLSError("a certificate in PEM is broken") }
            if count == 0 { throw TLSError("there is no certificate in PEM") }
        }

        static func checkReadable(_ path: String) throws(TLSError) {
            if access(path, R_OK) != 0 {
                throw TLSError("cannot read \(path): \(String(cString: strerror(errno)))")
            }
        }

        func makeSSL() -> OpaquePointer {
            guard let ssl = SSL_new(pointer) else {
                preconditionFailure("no memory for a TLS connection")
            }
            return ssl
        }
    }
#endif
