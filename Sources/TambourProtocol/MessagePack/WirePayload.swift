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
    /// An empty payload and nil count as an empty map, because some clients send them. Extension
    /// type 1 around the map is unwrapped once.
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

    /// Passes the encoded payload to `body`, in most cases without allocating. Valid only during
    /// the call.
    ///
    /// - Parameter capabilities: the reader's capabilities. Fields that need another one are
    ///   omitted, enumeration values are replaced by their fallbacks, and anything that contains a
    ///   value without a fallback is omitted.
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
    /// All capabilities, including those of later versions, and no dialect: used by writers for
    /// their own data, and by clients for their requests.
    package static let all = Capabilities(rawValue: .max).subtracting(.dialects)
}

/// A payload that the server sends unasked.
package protocol WirePush: Sendable {
    /// The opcode of the push.
    var opcode: Opcode { get }
    /// The capabilities that a client must have to receive it.
    var needs: Capabilities { get }
    /// The capabilities that affect its encoding.
    var gates: Capabilities { get }

    /// Passes the encoded payload to `body`. Valid only during the call.
    func withEncoded<R>(
        for capabilities: Capabilities,
        _ body: (UnsafeRawBufferPointer) -> R
    ) -> R
}
