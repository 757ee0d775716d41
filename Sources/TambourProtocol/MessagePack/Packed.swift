/// A value kept as the MessagePack it travels as: a page of history is a scan and a copy.
package struct Packed<Value: WireValue>: Hashable, Sendable {
    /// The MessagePack of one value.
    package let bytes: Bytes

    /// Packs a value.
    package init(_ value: Value) {
        var writer = MessagePackWriter()
        value.write(to: &writer)
        bytes = Bytes(writer.finish())
    }

    /// Bytes that somebody has already packed, as they come from the store.
    package init(unchecked bytes: Bytes) {
        self.bytes = bytes
    }

    /// Unpacks the value.
    /// - Throws: `PayloadError` if the bytes are not exactly one such value.
    package func value(limits: Limits) throws(PayloadError) -> Value {
        try MessagePackReader.read(bytes, limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) -> Value in
            try Value.read(from: &reader)
        }
    }

    /// The value of bytes that were checked when they were stored, under limits that may be narrower
    /// now; nil when the store went bad.
    package var stored: Value? { try? value(limits: .unlimited) }
}

extension Packed: WireValue {
    /// Reads the value to check it, and keeps its bytes.
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self {
        let (_, bytes) = try reader.readKeepingBytes {
            (reader: inout MessagePackReader) throws(PayloadError) -> Value in
            try Value.read(from: &reader)
        }
        return Self(unchecked: bytes)
    }

    /// Copies the bytes; unpacks them only for a reader who gets something else than was packed.
    package func write(to writer: inout MessagePackWriter) {
        guard let value = unpacked(unlessReadWith: writer.capabilities) else {
            return writer.writeRaw(bytes)
        }
        value.write(to: &writer)
    }

    package static var gates: Capabilities { Value.gates }

    package func canBeRead(with capabilities: Capabilities) -> Bool {
        unpacked(unlessReadWith: capabilities)?.canBeRead(with: capabilities) ?? true
    }

    /// Nil when there is nothing to change: bytes are packed for all capabilities and in no dialect. Limits may have been narrowed since the bytes were
    /// checked; bytes that cannot be read at all, of a store that went bad, go out as they are.
    private func unpacked(unlessReadWith capabilities: Capabilities) -> Value? {
        let gates = Value.gates
        if capabilities.intersection(gates) == gates.subtracting(.dialects) { return nil }
        return try? value(limits: .unlimited)
    }
}
