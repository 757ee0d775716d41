/// Converts field values to and from MessagePack. Writes maps in the order of their keys, so that
/// equal values have equal bytes.
extension FieldValue: WireValue {
    package static func read(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> FieldValue {
        switch reader.kind {
        case .boolean: return .bool(try reader.readBool())
        case .integer: return .int(try reader.readInt())
        case .float: return .double(try reader.readDouble())
        case .string: return .string(try reader.readString())
        case .binary: return .bytes(try reader.readBytes().array)
        case .array: return .list(try [FieldValue].read(from: &reader))
        case .map: return .map(try readFields(from: &reader))
        default:
            guard reader.readNilIfPresent() else {
                throw PayloadError(reason: "no field holds an extension")
            }
            return .null
        }
    }

    package func write(to writer: inout MessagePackWriter) {
        switch self {
        case .null: writer.writeNil()
        case .bool(let value): writer.writeBool(value)
        case .int(let value): writer.writeInt(value)
        case .double(let value): writer.writeDouble(value)
        case .string(let text): writer.writeString(text)
        case .bytes(let bytes): writer.writeBytes(Bytes(bytes))
        case .list(let values): values.write(to: &writer)
        case .map(let fields): Self.write(fields, to: &writer)
        }
    }

    /// Returns the MessagePack of a map of fields.
    package static func encoded(_ fields: [String: FieldValue]) -> Bytes {
        var writer = MessagePackWriter()
        write(fields, to: &writer)
        return Bytes(writer.finish())
    }

    /// Decodes the output of `encoded`.
    package static func decoded(_ bytes: Bytes) throws(PayloadError) -> [String: FieldValue] {
        try MessagePackReader.readStored(bytes) { (reader) throws(PayloadError) in
            try readFields(from: &reader)
        }
    }

    private static func readFields(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> [String: FieldValue] {
        let count = try reader.readMapHeader()
        var fields: [String: FieldValue] = [:]
        for _ in 0..<count {
            let name = try reader.readString(maxBytes: reader.limits.maxShortStringBytes)
            let value = try read(from: &reader)
            guard fields.updateValue(value, forKey: name) == nil else {
                throw PayloadError.duplicateKey()
            }
        }
        reader.endContainer()
        return fields
    }

    private static func write(
        _ fields: [String: FieldValue],
        to writer: inout MessagePackWriter
    ) {
        writer.writeMapHeader(fields.count)
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            writer.writeString(name)
            value.write(to: &writer)
        }
    }
}

extension WireMap<Text, AnyValue> {
    /// Creates the wire form of the fields.
    package init(_ fields: [String: FieldValue]) {
        self.init(fields.sorted { $0.key < $1.key }.map { (Text($0.key), AnyValue($0.value)) })
    }

    /// Returns the fields of a map from the wire. If a name occurs twice, the last value counts.
    ///
    /// - Throws: `PayloadError` with the path of a value that no field can hold.
    package func fields(_ limits: Limits) throws(PayloadError) -> [String: FieldValue] {
        var fields: [String: FieldValue] = [:]
        for (name, value) in pairs {
            do throws(PayloadError) {
                fields[name.description] = try MessagePackReader.read(value.bytes, limits: limits) {
                    (reader) throws(PayloadError) in try FieldValue.read(from: &reader)
                }
            } catch {
                throw PayloadError(path: "/\(name)\(error.path)", reason: error.reason)
            }
        }
        return fields
    }
}
