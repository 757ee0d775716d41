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
    /// No bytes at all are an empty map, as some clients send. Extension type 1 around the map is unwrapped once.
    /// - Throws: `PayloadError` naming the field that is wrong.
    package static func decode(
        _ payload: [UInt8],
        limits: Limits
    ) throws(PayloadError) -> Self {
        let bytes = Bytes(payload.isEmpty ? [0x80] : payload)
        return try MessagePackReader.read(bytes, limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) -> Self in
            try reader.unwrapExtension()
            return try Self.read(from: &reader)
        }
    }

    /// The payload as it travels, in its shortest form.
    package func encoded() -> [UInt8] {
        withEncoded { [UInt8]($0) }
    }

    /// Lends the payload as it travels to `body`; most take no allocation. Valid only during the call.
    package func withEncoded<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { room in
            var writer = MessagePackWriter(room: room)
            write(to: &writer)
            return writer.withUnsafeBytes(body)
        }
    }
}
