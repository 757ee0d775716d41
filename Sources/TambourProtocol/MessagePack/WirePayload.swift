/// What travels as the payload of a packet: a map.
package protocol WirePayload: WireValue {}

/// A request: it names the opcode that it travels under, and what answers it.
package protocol WireRequest: WirePayload {
    associatedtype Reply: WirePayload

    /// The opcode it travels under.
    static var opcode: Opcode { get }
}

extension WirePayload {
    /// Decodes a whole payload; texts and bytes in the result are ranges of `payload`.
    ///
    /// No bytes at all, and nil, are an empty map, as some clients send. Extension type 1 around the map is unwrapped once.
    /// - Throws: `PayloadError` naming the field that is wrong.
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

    /// The payload as it travels, in its shortest form.
    ///
    /// - Parameter capabilities: what the reader can read.
    package func encoded(for capabilities: Capabilities = .all) -> [UInt8] {
        withEncoded(for: capabilities) { [UInt8]($0) }
    }

    /// Lends the payload as it travels to `body`; most take no allocation. Valid only during the call.
    ///
    /// - Parameter capabilities: what the reader can read: fields that need another one are left out,
    ///   values of enumerations go out as their fallbacks, and what holds one without is left out.
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
    /// All capabilities, also those of later versions, and no dialect: what a writer uses for its own data,
    /// and a client for its requests.
    package static let all = Capabilities(rawValue: .max).subtracting(.dialects)
}

/// What goes out by itself: a push.
package protocol WirePush: Sendable {
    /// The opcode it travels under.
    var opcode: Opcode { get }
    /// The capabilities without which a client is not sent it.
    var needs: Capabilities { get }
    /// The capabilities that decide what is written of it.
    var gates: Capabilities { get }

    /// Lends the payload as it travels to `body`. Valid only during the call.
    func withEncoded<R>(
        for capabilities: Capabilities,
        _ body: (UnsafeRawBufferPointer) -> R
    ) -> R
}
