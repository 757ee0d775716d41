#if TLS
    import COpenSSL

    /// The reasons for a failed handshake that a client shows to the user.
    extension TLSLayer {
        /// Returns the layer of the connection whose certificate OpenSSL is verifying.
        static func of(_ store: OpaquePointer) -> TLSLayer? {
            let index = SSL_get_ex_data_X509_STORE_CTX_idx()
            guard let ssl = X509_STORE_CTX_get_ex_data(store, index),
                let layer = SSL_get_ex_data(OpaquePointer(ssl), 0)
            else { return nil }
            return Unmanaged<TLSLayer>.fromOpaque(layer).takeUnretainedValue()
        }

        /// Records why OpenSSL rejects a certificate. After the handshake, the certificate no
        /// longer exists.
        func noteRejection(by store: OpaquePointer) {
            guard rejection == nil, let own = X509_STORE_CTX_get0_cert(store) else { return }
            let current = X509_STORE_CTX_get_current_cert(store) ?? own
            let error = X509_STORE_CTX_get_error(store)
            switch error {
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
                let names = TLSContext.names(of: own, most: TLSRefusal.mostNames)
                rejection = .wrongName(
                    names: names.map { String($0.prefix(TLSRefusal.mostNameCharacters)) }
                )
            case X509_V_ERR_CERT_HAS_EXPIRED:
                let end = TLSContext.seconds(X509_get0_notAfter(current))
                rejection = .expired(atSeconds: end)
            case X509_V_ERR_CERT_NOT_YET_VALID:
                let begin = TLSContext.seconds(X509_get0_notBefore(current))
                rejection = .notYetValid(beforeSeconds: begin)
            default:
                let text = X509_verify_cert_error_string(Int(error)).map { String(cString: $0) }
                rejection = .untrusted(
                    reason: text ?? "not trusted",
                    key: TLSClient.digest(ofKeyOf: own)
                )
            }
        }

        /// Records that the server's key is not the pinned key.
        func noteOtherKey(in store: OpaquePointer) {
            guard let own = X509_STORE_CTX_get0_cert(store) else { return }
            rejection = .wrongKey(TLSClient.digest(ofKeyOf: own))
        }

        /// Returns the refusal that the client reports for a failed handshake. Its reason is the
        /// recorded rejection, or the oldest OpenSSL error of this thread.
        func refusal(_ failure: TLSFailure, _ reason: String) -> TLSRefusal {
            if let rejection { return rejection }
            let error = ERR_peek_error()
            let code = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0
            switch (failure, code) {
            case (_, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED): return .certificateRequired
            // TLS 1.2 has the same alert for a missing certificate and for a missing cipher.
            case (_, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE):
                return pipe.wasAskedForCertificate
                    ? .certificateRequired : .nothingShared(reason: reason)
            case (_, SSL_R_TLSV1_UNRECOGNIZED_NAME): return .wrongName(names: [])
            case (.notTLS, _): return .notTLS
            case (.version, _), (.cipher, _): return .nothingShared(reason: reason)
            case (.alert, _): return .alert(reason: reason)
            case (.abandoned, _), (.untrusted, _), (.wrongName, _), (.other, _):
                return .other(reason: reason)
            }
        }
    }
#endif
