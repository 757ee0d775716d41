/// The value of one field of an entity: any value that MessagePack can express.
///
/// If a field itself is `null`, the field is absent. An update with `null` removes the field, and
/// stored entities contain no such field. Inside lists and maps, `null` is an ordinary value.
public enum FieldValue: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case bytes([UInt8])
    case list([FieldValue])
    case map([String: FieldValue])
}

/// Values are equal if their bytes are equal. A NaN is therefore equal to itself. Otherwise a field
/// with a NaN would always look changed. The two encodings of "é" are different values. Otherwise
/// an edit from one to the other would have no effect.
extension FieldValue: Hashable {
    public static func == (lhs: FieldValue, rhs: FieldValue) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.int(let left), .int(let right)): left == right
        case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.bytes(let left), .bytes(let right)): left == right
        case (.list(let left), .list(let right)): left == right
        case (.map(let left), .map(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .int(let value): hasher.combine(value)
        case .double(let value): hasher.combine(value.bitPattern)
        case .string(let value): for byte in value.utf8 { hasher.combine(byte) }
        case .bytes(let value): hasher.combine(value)
        case .list(let values): hasher.combine(values)
        case .map(let values): hasher.combine(values)
        }
    }
}

extension FieldValue {
    /// Whether the value is so small that every client can decode it, even in a reply with two
    /// hundred other entities. It may have at most 8 levels of lists and maps, 256 values, and
    /// names of 512 bytes.
    package var isModest: Bool {
        var left = 256
        return isModest(depth: 8, &left)
    }

    private func isModest(depth: Int, _ left: inout Int) -> Bool {
        left -= 1
        guard left >= 0 else { return false }
        switch self {
        case .null, .bool, .int, .double, .string, .bytes: return true
        case .list(let values):
            guard depth > 0 else { return false }
            return values.allSatisfy { $0.isModest(depth: depth - 1, &left) }
        case .map(let fields):
            guard depth > 0 else { return false }
            return fields.allSatisfy {
                $0.key.utf8.count <= 512 && $0.value.isModest(depth: depth - 1, &left)
            }
        }
    }

    /// The size of the value in its shortest MessagePack form, in bytes.
    package var encodedSize: Int {
        switch self {
        case .null, .bool: 1
        case .int(let value): Self.size(of: value)
        case .double: 9
        case .string(let text): Self.size(ofString: text)
        case .bytes(let bytes):
            bytes.count + (bytes.count < 1 << 8 ? 2 : bytes.count < 1 << 16 ? 3 : 5)
        case .list(let values):
            values.reduce(Self.headerSize(count: values.count)) { $0 + $1.encodedSize }
        case .map(let values): Self.encodedSize(of: values)
        }
    }

    /// Returns the size of a map of fields in MessagePack.
    package static func encodedSize(of fields: [String: FieldValue]) -> Int {
        fields.reduce(headerSize(count: fields.count)) { sum, field in
            sum + size(ofString: field.key) + field.value.encodedSize
        }
    }

    private static func headerSize(count: Int) -> Int {
        count < 16 ? 1 : count < 1 << 16 ? 3 : 5
    }

    private static func size(ofString text: String) -> Int {
        let count = text.utf8.count
        return count + (count < 32 ? 1 : count < 1 << 8 ? 2 : count < 1 << 16 ? 3 : 5)
    }

    private static func size(of value: Int64) -> Int {
        switch value {
        case -32...127: 1
        case -128...255: 2
        case -32_768...65_535: 3
        case -2_147_483_648...4_294_967_295: 5
        default: 9
        }
    }
}

extension [String: FieldValue] {
    /// Returns these fields after `patch` is applied. The values of `patch` replace old values, and
    /// a `null` removes its field.
    package func patched(with patch: [String: FieldValue]) -> Self {
        var fields = self
        for (name, value) in patch { fields[name] = value == .null ? nil : value }
        return fields
    }

    /// Returns the patch that turns these fields into exactly `fields`.
    package func patch(to fields: [String: FieldValue]) -> Self {
        var patch = fields
        for name in keys where fields[name] == nil { patch[name] = .null }
        return patch
    }
}
