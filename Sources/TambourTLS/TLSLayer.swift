#if TLS
    import COpenSSL
    import TambourNet

    /// The TLS layer between a socket and the layer above. The client's side and the server's side
    /// of a connection both use it.
    ///
    /// Until the handshake is complete, the layer keeps the bytes to send. An idle connection has
    /// no buffers for records.
    final class TLSLayer: ConnectionLayer {
        private enum State {
            case opening
            case open
            /// This side has ended its stream, or the layer has failed.
            case closed
        }

        /// The maximum size of a record's plain text, in bytes.
        private static let recordBytes = 16_384
        /// The maximum number of control messages after the handshake. A peer needs a few of them,
        /// for tickets and new keys. Without a limit, a peer could consume processor time and cause
        /// output.
        private static let maxControlMessages = 64

        let ssl: OpaquePointer
        let pipe = TLSPipe()
        /// The owner of the SSL object's context. The layer retains it, because OpenSSL's callbacks
        /// have unretained pointers to it and to its contexts.
        private let owner: AnyObject
        /// On the client's side, the server's name as the user typed it. On the server's side,
        /// empty.
        let host: String
        private let report: @Sendable (TLSOutcome) -> Void
        private let refused: @Sendable (TLSRefusal) -> Void
        /// The reason why the client rejects the server's certificate; nil if it does not.
        var rejection: TLSRefusal?
        private var state = State.opening
        private var hasBegun = false
        /// The bytes to send after the handshake. If a part of a later handshake message has
        /// arrived, new bytes also wait here: OpenSSL does not encrypt them until the message is
        /// complete.
        private var held: [UInt8] = []

        /// - Parameter ssl: an SSL object whose role, client or server, is set. The layer becomes
        ///   its owner.
        init(
            _ ssl: OpaquePointer,
            owner: AnyObject,
            host: String = "",
            report: @escaping @Sendable (TLSOutcome) -> Void,
            refused: @escaping @Sendable (TLSRefusal) -> Void = { _ in }
        ) {
            self.ssl = ssl
            self.owner = owner
            self.host = host
            self.report = report
            self.refused = refused
            pipe.attach(to: ssl)
        }

        deinit {
            if state == .opening, hasBegun {
                report(.failed(.abandoned, reason: "the peer left, or took too long"))
            }
            // Mark the connection as closed. Otherwise OpenSSL considers the session invalid and
            // does not resume it.
            SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
            SSL_free(ssl)
        }

        var isOpening: Bool { state == .opening }

        var hasPartialInput: Bool {
            // When OpenSSL has read only the header of a record, it reports no pending bytes, but
            // it waits for the body (state "B").
            SSL_has_pending(ssl) != 0 || SSL_rstate_string(ssl)[1] == Int8(UInt8(ascii: "B"))
                || state == .open && SSL_in_init(ssl) != 0
        }

        func open(into output: inout [UInt8]) {
            guard SSL_is_server(ssl) == 0 else { return }
            hasBegun = true
            withPipe(into: &output) { _ = SSL_do_handshake(ssl) }
        }

        func received(
            _ bytes: UnsafeRawBufferPointer,
            into input: inout [UInt8],
            answering answer: inout [UInt8]
        ) throws(LayerError) -> Bool {
            pipe.incoming = bytes
            defer { pipe.incoming = UnsafeRawBufferPointer(start: nil, count: 0) }
            var end = ReadEnd.moreLater
            withPipe(into: &answer) {
                hasBegun = true
                if state != .opening || handshake(&end) {
                    end = read(into: &input, arrived: bytes.count)
                }
                writeHeld()
            }
            if state == .open, pipe.controlMessages > Self.maxControlMessages {
                end = .failed("TLS: too many handshake messages")
            }
            switch end {
            case .moreLater: return false
            case .closed: return true
            case .failed(let reason):
                state = .closed
                throw LayerError(reason)
            }
        }

        func enclose(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8]) {
            switch state {
            case .opening: held += bytes
            case .open where !held.isEmpty: held += bytes
            case .open: withPipe(into: &output) { write(bytes) }
            case .closed: break
            }
        }

        func close(into output: inout [UInt8]) {
            if state == .open { withPipe(into: &output) { _ = SSL_shutdown(ssl) } }
            if state == .opening, hasBegun {
                report(.failed(.abandoned, reason: "the peer left, or took too long"))
            }
            state = .closed
        }

        // MARK: - OpenSSL

        private enum ReadEnd {
            case moreLater
            case closed
            case failed(String)
        }

        /// Runs `body`, which calls OpenSSL. Appends the output of OpenSSL to `output`.
        private func withPipe(into output: inout [UInt8], _ body: () -> Void) {
            swap(&pipe.outgoing, &output)
            // Each thread has one queue of errors, and another connection may have left errors in
            // it.
            ERR_clear_error()
            body()
            swap(&pipe.outgoing, &output)
        }

        /// Continues the handshake.
        ///
        /// - Returns: whether the handshake is complete.
        private func handshake(_ end: inout ReadEnd) -> Bool {
            let result = SSL_do_handshake(ssl)
            if result == 1 {
                state = .open
                let version = SSL_get_version(ssl).map { String(cString: $0) } ?? ""
                (owner as? TLSClient)?.opened(ssl, to: host)
                report(.completed(version: version, isResumed: SSL_session_reused(ssl) == 1))
                pipe.controlMessages = 0
                ERR_clear_error()
                writeHeld()
                return true
            }
            if SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ {
                let (failure, reason) = TLSFailure.ofQueue(SSL_get_verify_result(ssl))
                state = .closed
                refused(refusal(failure, reason))
                report(.failed(failure, reason: reason))
                end = .failed("TLS handshake: \(reason)")
            }
            return false
        }

        /// Appends the plain text of all complete records.
        ///
        /// - Parameter arrived: the number of bytes that have arrived.
        private func read(into input: inout [UInt8], arrived: Int) -> ReadEnd {
            if input.isEmpty, arrived > 0 {
                // Plain text is shorter than its record, so this is usually enough room.
                var end: ReadEnd?
                input = Array(unsafeUninitializedCapacity: arrived) { room, used in
                    end = fill(UnsafeMutableRawBufferPointer(room), &used)
                }
                if let end { return end }
            }
            return withUnsafeTemporaryAllocation(byteCount: Self.recordBytes, alignment: 16) {
                room in
                while true {
                    var used = 0
                    let end = fill(room, &used)
                    input += UnsafeRawBufferPointer(rebasing: room[..<used])
                    if let end { return end }
                }
            }
        }

        /// Reads plain text until no more is available or the room is full.
        ///
        /// - Returns: nil if the room is full.
        private func fill(_ room: UnsafeMutableRawBufferPointer, _ used: inout Int) -> ReadEnd? {
            while used < room.count {
                var count = 0
                let rest = UnsafeMutableRawBufferPointer(rebasing: room[used...])
                let result = SSL_read_ex(ssl, rest.baseAddress, rest.count, &count)
                used += count
                if result == 1 { continue }
                switch SSL_get_error(ssl, result) {
                case SSL_ERROR_WANT_READ: return .moreLater
                case SSL_ERROR_ZERO_RETURN: return .closed
                default: return .failed("TLS: \(broken())")
                }
            }
            return nil
        }

        /// Reports a refusal if the server requires a certificate from the client. In TLS 1.3, the
        /// server may refuse the client after the client has completed the handshake.
        ///
        /// - Returns: the reason for the log.
        private func broken() -> String {
            let (failure, reason) = TLSFailure.ofQueue(0)
            if case .certificateRequired = refusal(failure, reason) {
                refused(.certificateRequired)
            }
            return reason
        }

        private func writeHeld() {
            guard state == .open, !held.isEmpty else { return }
            var bytes: [UInt8] = []
            swap(&bytes, &held)
            bytes.withUnsafeBytes { write($0) }
        }

        /// Encrypts bytes. If a handshake message is incomplete, keeps them in `held` until it is
        /// complete.
        private func write(_ bytes: UnsafeRawBufferPointer) {
            if bytes.isEmpty { return }
            if pipe.outgoing.isEmpty {
                let records = bytes.count / Self.recordBytes + 1
                pipe.outgoing.reserveCapacity(bytes.count + records * 64)
            }
            var count = 0
            let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count)
            if result == 1 { return }
            // The pipe accepts any number of bytes. So there are only two possible causes: OpenSSL
            // waits for the rest of a handshake message, or the stream has failed.
            if SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ {
                held += bytes
            } else {
                state = .closed
            }
        }
    }

    extension TLSFailure {
        /// Returns the class and the text of the oldest OpenSSL error of this thread.
        ///
        /// - Parameter verified: the result of the verification of the peer's certificate.
        static func ofQueue(_ verified: Int) -> (failure: TLSFailure, reason: String) {
            let error = ERR_peek_error()
            let text = ERR_reason_error_string(error).map { String(cString: $0) } ?? "an error"
            // In other libraries of OpenSSL, the same numbers mean other reasons.
            guard ERR_GET_LIB(error) == ERR_LIB_SSL else { return (.other, text) }
            let reason = ERR_GET_REASON(error)
            if reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
                let text = X509_verify_cert_error_string(verified).map { String(cString: $0) }
                let isName =
                    verified == Int(X509_V_ERR_HOSTNAME_MISMATCH)
                    || verified == Int(X509_V_ERR_IP_ADDRESS_MISMATCH)
                return (isName ? .wrongName : .untrusted, "certificate: \(text ?? "not trusted")")
            }
            return (Self.class(of: reason), text)
        }

        private static func `class`(of reason: Int32) -> TLSFailure {
            switch reason {
            case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_UNKNOWN_PROTOCOL, SSL_R_WRONG_SSL_VERSION,
                SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH,
                SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
                .version
            case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_GROUPS, SSL_R_NO_SUITABLE_KEY_SHARE,
                SSL_R_NO_SUITABLE_GROUPS, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM,
                SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, SSL_R_NO_CIPHERS_SPECIFIED:
                .cipher
            case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: .untrusted
            case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST,
                SSL_R_UNEXPECTED_MESSAGE, SSL_R_BAD_RECORD_TYPE, SSL_R_PACKET_LENGTH_TOO_LONG,
                SSL_R_ENCRYPTED_LENGTH_TOO_LONG, SSL_R_DATA_LENGTH_TOO_LONG, SSL_R_LENGTH_MISMATCH,
                SSL_R_LENGTH_TOO_SHORT, SSL_R_RECORD_LENGTH_MISMATCH, SSL_R_RECORD_TOO_SMALL,
                SSL_R_BAD_EXTENSION, SSL_R_EXCESSIVE_MESSAGE_SIZE, SSL_R_BAD_LENGTH,
                SSL_R_UNEXPECTED_RECORD, SSL_R_BAD_PACKET:
                .notTLS
            // For an alert from the peer, the reason is the number of the alert plus 1000.
            case 1000..<1256: .alert
            default: .other
            }
        }
    }
#endif
