/// A value stored as the MessagePack that is sent to clients. A page of history can therefore be
/// copied from the store without decoding.
package struct Packed<Value: WireValue>: Hashable, Sendable {
    /// The MessagePack of one value.
    package let bytes: Bytes

    /// Packs a value.
    package init(_ value: Value) {
        var writer = MessagePackWriter()
        value.write(to: &writer)
        bytes = Bytes(writer.finish())
    }

    /// Takes bytes that are already packed, for example bytes from the store, and does not check
    /// them.
    package init(unchecked bytes: Bytes) {
        self.bytes = bytes
    }

    /// Unpacks the value.
    /// - Throws: `PayloadError` if the bytes are not exactly one value of this type.
    package func value(limits: Limits) throws(PayloadError) -> Value {
        try MessagePackReader.read(bytes, limits: limits) {
            (reader: inout MessagePackReader) throws(PayloadError) -> Value in
            try Value.read(from: &reader)
        }
    }

    /// The unpacked value; nil if the bytes are damaged, which means that the store is damaged.
    /// Unpacking ignores the current limits, because the bytes may have been checked under wider
    /// limits.
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

    /// Copies the bytes. If the reader needs another encoding, unpacks the value and encodes it
    /// again.
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

    /// Returns the value if a reader with these capabilities needs another encoding than `bytes`;
    /// otherwise nil. `bytes` are the encoding for all capabilities and no dialect. Unpacking
    /// ignores the current limits, because the bytes may have been checked under wider limits. Also
    /// returns nil for damaged bytes, which are then sent unchanged.
    private func unpacked(unlessReadWith capabilities: Capabilities) -> Value? {
        let gates = Value.gates
        if capabilities.intersection(gates) == gates.subtracting(.dialects) { return nil }
        return try? value(limits: .unlimited)
    }
}
