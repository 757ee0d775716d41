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
    /// Some clients send an empty payload or nil; both decode as an empty map. If the map is inside
    /// an extension of type 1, the extension is unwrapped first.
    /// - Throws: `PayloadError`, which names the invalid field.
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
    /// - Parameter capabilities: the reader's capabilities. A field is omitted if the reader lacks
    ///   a capability that it needs. An unsupported enumeration value is replaced by its fallback.
    ///   If it has no fallback, the object that contains it is omitted.
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
    /// All capabilities, including capabilities of later versions, but no dialect. The server uses
    /// this set for data that it stores, and clients use it for their requests.
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
