#if TLS
    import COpenSSL

    /// The transport of an SSL object: the bytes that have arrived, and the bytes to send.
    ///
    /// OpenSSL reads and writes through a custom BIO. Unlike `BIO_s_mem`, it copies no bytes in
    /// advance and keeps no buffer between calls.
    final class TLSPipe {
        /// The bytes that OpenSSL has not read yet. They are valid only during a call of the layer.
        var incoming = UnsafeRawBufferPointer(start: nil, count: 0)
        var outgoing: [UInt8] = []
        /// The number of received handshake messages and sent alerts. These messages need processor
        /// time and may cause answers, but contain no plain text.
        var controlMessages = 0
        /// Whether the peer has requested a certificate from this side.
        private(set) var wasAskedForCertificate = false

        /// `nonisolated(unsafe)`: never changed after its initialization.
        private nonisolated(unsafe) static let method: OpaquePointer = {
            let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
            guard let method = BIO_meth_new(type, "tambour") else {
                preconditionFailure("no memory for a BIO method")
            }
            BIO_meth_set_create(method) { bio in
                BIO_set_init(bio, 1)
                return 1
            }
            BIO_meth_set_read(method) { bio, room, count in
                guard let bio, let room, let pipe = TLSPipe.of(bio) else { return -1 }
                return pipe.read(bio, UnsafeMutableRawBufferPointer(start: room, count: Int(count)))
            }
            BIO_meth_set_write(method) { bio, bytes, count in
                guard let bio, let pipe = TLSPipe.of(bio) else { return -1 }
                pipe.outgoing += UnsafeRawBufferPointer(start: bytes, count: Int(count))
                return count
            }
            // OpenSSL flushes after each group of handshake messages. All other commands are for
            // other kinds of BIO.
            BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
            return method
        }()

        /// Connects this pipe to an SSL object. The SSL object must be freed before the pipe.
        func attach(to ssl: OpaquePointer) {
            guard let bio = BIO_new(Self.method) else { preconditionFailure("no memory for a BIO") }
            BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
            // If both arguments are the same BIO, OpenSSL takes only one reference.
            SSL_set_bio(ssl, bio, bio)
            tambour_ssl_set_message_callback(
                ssl,
                { isSent, _, type, message, count, _, pipe in
                    guard let pipe, type == (isSent == 0 ? SSL3_RT_HANDSHAKE : SSL3_RT_ALERT)
                    else { return }
                    let this = Unmanaged<TLSPipe>.fromOpaque(pipe).takeUnretainedValue()
                    this.controlMessages += 1
                    guard isSent == 0, count > 0, let message else { return }
                    // The first byte is the type of the handshake message.
                    if message.load(as: UInt8.self) == UInt8(SSL3_MT_CERTIFICATE_REQUEST) {
                        this.wasAskedForCertificate = true
                    }
                },
                Unmanaged.passUnretained(self).toOpaque()
            )
        }

        private static func of(_ bio: OpaquePointer) -> TLSPipe? {
            BIO_get_data(bio).map { Unmanaged<TLSPipe>.fromOpaque($0).takeUnretainedValue() }
        }

        private func read(_ bio: OpaquePointer, _ room: UnsafeMutableRawBufferPointer) -> Int32 {
            let count = min(room.count, incoming.count)
            guard count > 0 else {
                tambour_bio_want_read(bio)
                return -1
            }
            tambour_bio_done(bio)
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: incoming[..<count]))
            incoming = UnsafeRawBufferPointer(rebasing: incoming[count...])
            return Int32(count)
        }
    }
#endif
