/// Any MessagePack value, stored as its bytes.
///
/// The server stores a client's value only if every other client can decode it: see
/// `read(from:maxBytes:)`.
package struct AnyValue: Hashable, Sendable {
    /// The MessagePack of one value. All strings in it are UTF-8.
    package let bytes: Bytes

    /// Takes the MessagePack of one value and does not check it.
    package init(unchecked bytes: Bytes) {
        self.bytes = bytes
    }

    /// Encodes a value.
    package init(_ value: some WireValue) {
        var writer = MessagePackWriter()
        value.write(to: &writer)
        bytes = Bytes(writer.finish())
    }
}

extension AnyValue: WireValue {
    /// Skips one value, checks its depth and strings, and keeps its bytes. Used for values from a
    /// server, for values that were checked before they were stored, and for values that are never
    /// forwarded.
    package static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Self {
        let (_, bytes) = try reader.readKeepingBytes {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try reader.skip()
        }
        return Self(unchecked: bytes)
    }

    /// Reads one value. Throws an error if a client exists that cannot decode the value.
    ///
    /// Keys must be strings and integers must fit `Int64`. Extensions, including timestamps, are
    /// not allowed, and at most `maxAnyDepth` lists and maps may be nested.
    package static func read(
        from reader: inout MessagePackReader,
        maxBytes: Int
    ) throws(PayloadError) -> Self {
        // Stored values are read without limits, because they were checked before they were stored.
        guard reader.limits !== Limits.unlimited else { return try read(from: &reader) }
        let levels = reader.limits.maxAnyDepth
        let (_, bytes) = try reader.readKeepingBytes {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try reader.skipDecodable(levels: levels)
        }
        guard bytes.count <= maxBytes else { throw .tooManyBytes(bytes.count, limit: maxBytes) }
        return Self(unchecked: bytes)
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeRaw(bytes)
    }
}

// MARK: - Access to the value

extension AnyValue {
    package static let null = AnyValue(unchecked: Bytes([0xC0]))

    package var isNil: Bool {
        read { (reader) throws(PayloadError) in reader.readNilIfPresent() } == true
    }

    package var bool: Bool? { read { (reader) throws(PayloadError) in try reader.readBool() } }

    package var int: Int64? { read { (reader) throws(PayloadError) in try reader.readInt() } }

    package var text: Text? { read { (reader) throws(PayloadError) in try reader.readText() } }

    /// Whether the value is nil, a boolean, a number or a text.
    package var isScalar: Bool {
        if isNil || bool != nil || text != nil || int != nil { return true }
        return read { (reader) throws(PayloadError) in try reader.readDouble() } != nil
    }

    private func read<Value>(
        _ body: (inout MessagePackReader) throws(PayloadError) -> Value
    ) -> Value? {
        try? MessagePackReader.read(bytes, limits: .standard, body)
    }
}
