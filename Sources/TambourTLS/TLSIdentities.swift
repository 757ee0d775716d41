#if TLS
    import COpenSSL

    /// The certificates of a server and its ticket keys, ready to use. An instance never changes. A
    /// reload replaces it by a new instance; open connections keep the old instance.
    final class TLSIdentities: Sendable {
        let certificates: [TLSCertificate]
        private let contexts: [TLSContext]
        /// The index of the context for each DNS name. A wildcard begins with `*.`.
        private let byName: [String: Int]
        private let keys: TicketKeys

        init(_ files: TLSFiles, keys: TicketKeys) throws(TLSError) {
            precondition(!files.pairs.isEmpty, "a TLS server without a certificate")
            self.keys = keys
            var contexts: [TLSContext] = []
            var certificates: [TLSCertificate] = []
            var byName: [String: Int] = [:]
            for pair in files.pairs {
                let context = try TLSContext(TLS_server_method(), groups: TLSContext.cheapGroups)
                // One ticket is enough: a client uses a ticket once, and each connection gives the
                // client a new ticket.
                SSL_CTX_set_num_tickets(context.pointer, 1)
                try context.load(pair)
                if let path = files.clientAuthorities { try context.requireClients(of: path) }
                let certificate = try context.certificate(from: pair.certificate)
                for name in certificate.names where byName[name] == nil {
                    byName[name] = contexts.count
                }
                contexts.append(context)
                certificates.append(certificate)
            }
            self.contexts = contexts
            self.certificates = certificates
            self.byName = byName
            for context in contexts { prepare(context) }
        }

        /// Creates the SSL object of a connection. The connection must retain this `TLSIdentities`
        /// object.
        func makeSSL() -> OpaquePointer {
            let ssl = contexts[0].makeSSL()
            SSL_set_accept_state(ssl)
            return ssl
        }

        private func prepare(_ context: TLSContext) {
            let this = Unmanaged.passUnretained(self).toOpaque()
            SSL_CTX_set_ex_data(context.pointer, 0, this)
            tambour_ssl_ctx_set_cache_mode(context.pointer, tambour_no_session_cache)
            SSL_CTX_set_timeout(context.pointer, keys.ticketSeconds)
            tambour_ssl_ctx_set_server_name_callback(
                context.pointer,
                { ssl, _, identities in
                    guard let ssl, let identities else { return SSL_TLSEXT_ERR_NOACK }
                    let this = Unmanaged<TLSIdentities>.fromOpaque(identities)
                    return this.takeUnretainedValue().choose(for: ssl)
                },
                this
            )
            SSL_CTX_set_tlsext_ticket_key_evp_cb(context.pointer) {
                ssl,
                name,
                vector,
                cipher,
                authentication,
                encrypts in
                guard let ssl, let name, let vector, let cipher, let authentication,
                    let this = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0)
                else { return -1 }
                let keys = Unmanaged<TLSIdentities>.fromOpaque(this).takeUnretainedValue().keys
                if encrypts == 1 {
                    return keys.encrypt(name: name, vector: vector, cipher, authentication)
                }
                return keys.decrypt(
                    name: name,
                    vector: vector,
                    cipher,
                    authentication,
                    isUsedOnce: SSL_version(ssl) != TLS1_2_VERSION
                )
            }
        }

        /// Selects the certificate for the name that the client wants to reach.
        private func choose(for ssl: OpaquePointer) -> Int32 {
            guard let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name),
                let index = index(for: String(cString: name))
            else { return SSL_TLSEXT_ERR_NOACK }
            SSL_set_SSL_CTX(ssl, contexts[index].pointer)
            return SSL_TLSEXT_ERR_OK
        }

        /// Returns the index of the pair for a server's name. The pair's certificate contains the
        /// exact name, or a wildcard in place of the name's first label.
        func index(for name: String) -> Int? {
            let name = name.lowercased()
            if let index = byName[name] { return index }
            guard let dot = name.firstIndex(of: "."), dot != name.startIndex else { return nil }
            return byName["*" + name[dot...]]
        }
    }

    extension TLSContext {
        /// Refuses clients that have no certificate signed by the authorities in the file.
        fileprivate func requireClients(of path: String) throws(TLSError) {
            try Self.checkReadable(path)
            guard SSL_CTX_load_verify_locations(pointer, path, nil) == 1,
                let names = SSL_load_client_CA_file(path)
            else {
                throw TLSError(
                    "\(path) has no certificates in PEM: \(TLSFailure.ofQueue(0).reason)"
                )
            }
            SSL_CTX_set_client_CA_list(pointer, names)
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
            // Issue no tickets. In a resumed session, the client's certificate is not checked
            // again. Each resumed connection would provide a ticket for the next connection, so the
            // certificate would never be checked again.
            tambour_ssl_ctx_no_tickets(pointer)
            SSL_CTX_set_num_tickets(pointer, 0)
        }
    }
#endif
