/// The payload of a packet: a map.
package protocol WirePayload: WireValue {}

/// A request, with its opcode and the type of its reply.
package protocol WireRequest: WirePayload {
    associatedtype Reply: WirePayload

    /// The opcode of the request.
    static var opcode: Opcode { get }
}

extension WirePayload {
    /// Decodes a whole payload; texts and bytes in the result are ranges of `payload`.
    ///
    /// An empty payload and nil decode as an empty map, because some clients send them. One
    /// extension of type 1 around the map is unwrapped.
    /// - Throws: `PayloadError` naming the invalid field.
    package static func decode(
        _ payload: [UInt8],
        limits: Limits
    ) throws(PayloadError) -> Self {
        let isNil = payload.count == 1 && payload[0] == 0xC0
        let bytes = Bytes(payload.isEmpty || isNil ? [0x80] : payload)
        return try MessagePackReader.read(bytes, limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) -> Self in
            try reader.unwrapExtension()
            return try Self.read(from: &reader)
        }
    }

    /// Returns the payload for the wire, in its shortest form.
    ///
    /// - Parameter capabilities: the reader's capabilities.
    package func encoded(for capabilities: Capabilities = .all) -> [UInt8] {
        withEncoded(for: capabilities) { [UInt8]($0) }
    }

    /// Passes the encoded payload to `body`, in most cases without allocating. The buffer is valid
    /// only during the call.
    ///
    /// - Parameter capabilities: the reader's capabilities. A field that needs a missing capability
    ///   is omitted. An unsupported enumeration value is replaced by its fallback; without a
    ///   fallback, the object that contains the value is omitted.
    package func withEncoded<R>(
        for capabilities: Capabilities,
        _ body: (UnsafeRawBufferPointer) -> R
    ) -> R {
        withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { room in
            var writer = MessagePackWriter(room: room)
            writer.capabilities = capabilities
            write(to: &writer)
            return writer.withUnsafeBytes(body)
        }
    }
}

extension Capabilities {
    /// All capabilities, including those of later versions, and no dialect. Writers use it for
    /// their own data, and clients for their requests.
    package static let all = Capabilities(rawValue: .max).subtracting(.dialects)
}

/// A payload that the server sends without a request.
package protocol WirePush: Sendable {
    /// The opcode of the push.
    var opcode: Opcode { get }
    /// The capabilities that a client must have to receive the push.
    var needs: Capabilities { get }
    /// The capabilities that affect the push's encoding.
    var gates: Capabilities { get }

    /// Passes the encoded payload to `body`. The buffer is valid only during the call.
    func withEncoded<R>(
        for capabilities: Capabilities,
        _ body: (UnsafeRawBufferPointer) -> R
    ) -> R
}
