#if TLS
    import COpenSSL
    import Glibc
    import TambourNet
    import TambourTesting
    import Testing

    @testable import TambourTLS

    /// A blocking socket.
    final class Wire {
        let descriptor: Int32

        init(descriptor: Int32) {
            self.descriptor = descriptor
            var limit = timeval(tv_sec: 120, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        }

        deinit { Glibc.close(descriptor) }

        func send(_ bytes: [UInt8]) throws {
            var sent = 0
            while sent < bytes.count {
                let count = bytes.withUnsafeBytes {
                    let rest = UnsafeRawBufferPointer(rebasing: $0[sent...])
                    return Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
                }
                try #require(count > 0, "errno \(errno)")
                sent += count
            }
        }

        /// Waits until bytes arrive.
        ///
        /// - Returns: The bytes that have arrived; empty at the end of the stream.
        func receiveSome() throws -> [UInt8] {
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            // If a peer closes before it has read all input, the system resets the stream.
            if count < 0, errno == ECONNRESET { return [] }
            try #require(count >= 0, "errno \(errno)")
            return Array(chunk[..<count])
        }

        func receiveAll() throws -> [UInt8] {
            var all: [UInt8] = []
            while case let some = try receiveSome(), !some.isEmpty { all += some }
            return all
        }

        func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }
    }

    /// The client's side of a TLS connection, with blocking calls.
    final class TLSPeer {
        let wire: Wire
        private let layer: any ConnectionLayer
        private let outcomes = Arrivals<TLSOutcome>()
        private var input: [UInt8] = []
        /// Whether the server has sent close_notify.
        private(set) var hasEnded = false

        /// - Parameter isSlow: Whether the peer sends the handshake byte by byte.
        init(_ wire: Wire, _ client: TLSClient, host: String, isSlow: Bool = false) throws {
            self.wire = wire
            layer = try client.makeLayer(host: host) { [outcomes] in outcomes.add($0) }
            var output: [UInt8] = []
            layer.open(into: &output)
            let parts = isSlow ? output.map { [$0] } : [output]
            for part in parts { try wire.send(part) }
        }

        /// Completes the handshake.
        ///
        /// - Returns: The outcome of the handshake on the client's side.
        func handshake() throws -> TLSOutcome {
            while layer.isOpening, (try? take()) == true {}
            return try outcomes.next()
        }

        func enclosed(_ bytes: [UInt8]) -> [UInt8] {
            var output: [UInt8] = []
            bytes.withUnsafeBytes { layer.enclose($0, into: &output) }
            return output
        }

        /// Sends bytes. Before the handshake ends, the layer holds the bytes back.
        func send(_ bytes: [UInt8]) throws { try wire.send(enclosed(bytes)) }

        /// Switches the client to a new key and requests a new key from the server. Returns the
        /// bytes, encrypted with the new key.
        func enclosedWithNewKey(_ bytes: [UInt8]) throws -> [UInt8] {
            let layer = try #require(layer as? TLSLayer)
            try #require(SSL_key_update(layer.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            return enclosed(bytes)
        }

        /// Ends the stream with close_notify.
        func end() throws {
            var output: [UInt8] = []
            layer.close(into: &output)
            try wire.send(output)
        }

        /// Reads once and processes what has arrived.
        ///
        /// - Returns: false at the end of the stream.
        func take() throws -> Bool {
            let bytes = try wire.receiveSome()
            if bytes.isEmpty { return false }
            var answer: [UInt8] = []
            do {
                hasEnded = try bytes.withUnsafeBytes { bytes throws(LayerError) in
                    try layer.received(bytes, into: &input, answering: &answer)
                }
            } catch {
                // The server may already have closed the connection.
                try? wire.send(answer)
                throw error
            }
            try wire.send(answer)
            return true
        }

        /// Receives `count` bytes. Receives fewer if the stream ends earlier.
        func receive(_ count: Int) throws -> [UInt8] {
            while try input.count < count && !hasEnded && take() {}
            defer { input.removeFirst(min(count, input.count)) }
            return Array(input.prefix(count))
        }

        func roundTrip(_ bytes: [UInt8]) throws {
            // Send a long text in parts. If the peer sent it at once, its echo would block both
            // sides.
            for start in stride(from: 0, to: bytes.count, by: 32_768) {
                let part = Array(bytes[start..<min(start + 32_768, bytes.count)])
                try send(part)
                try #require(try receive(part.count) == part)
            }
        }
    }

    extension TLSOutcome {
        /// The class of the failure; nil if the handshake succeeded.
        var failure: TLSFailure? {
            if case .failed(let failure, _) = self { failure } else { nil }
        }

        var isResumed: Bool? {
            if case .completed(_, let isResumed) = self { isResumed } else { nil }
        }
    }
#endif
