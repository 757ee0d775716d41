/// A value stored as its wire MessagePack, so that reading a page of history is a scan and a copy.
package struct Packed<Value: WireValue>: Hashable, Sendable {
    /// The MessagePack of one value.
    package let bytes: Bytes

    /// Packs a value.
    package init(_ value: Value) {
        var writer = MessagePackWriter()
        value.write(to: &writer)
        bytes = Bytes(writer.finish())
    }

    /// Takes bytes that are already packed, such as those from the store; does not check them.
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

    /// The unpacked value; nil if the bytes, and thus the store, are damaged. Ignores the limits,
    /// because the bytes were checked under limits that may have been wider.
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

    /// Copies the bytes; unpacks and encodes the value only for a reader that needs another
    /// encoding.
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

    /// Returns the value if a reader with these capabilities needs another encoding than `bytes`,
    /// which are packed for all capabilities and no dialect; otherwise nil. Unpacking ignores the
    /// limits, which may have been narrowed since the bytes were checked. Unreadable bytes, from a
    /// damaged store, are sent unchanged.
    private func unpacked(unlessReadWith capabilities: Capabilities) -> Value? {
        let gates = Value.gates
        if capabilities.intersection(gates) == gates.subtracting(.dialects) { return nil }
        return try? value(limits: .unlimited)
    }
}
