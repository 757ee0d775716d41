import Yams

/// An untyped MessagePack value. An example can also prescribe the encoding of the value.
indirect enum WireNode: Equatable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// An integer that exceeds the range of `int`.
    case uint(UInt64)
    case double(Double)
    case string(String)
    /// A `str` that is not UTF-8.
    case badString([UInt8])
    case bytes([UInt8])
    case array([WireNode])
    case map([Pair])
    case ext(type: Int8, [UInt8])
    /// A value that must be written in the named encoding, such as `u64` or `str32`.
    case forced(String, WireNode)
    /// Bytes that are written unchanged.
    case raw([UInt8])

    struct Pair: Equatable, Sendable {
        var key: WireNode
        var value: WireNode
    }

    struct YAMLError: Error, CustomStringConvertible {
        var description: String
    }

    private static let encodings: Set<String> = [
        "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "str8", "str16",
        "str32",
        "array16", "array32", "map16", "map32",
    ]

    /// Reads a YAML node.
    ///
    /// Tags select encodings: `!u64 1`, `!str32 "x"`, `!bin "0A0B"`, `!raw "C1"`, `!repeat "a*12"`.
    init(yaml node: Node) throws(YAMLError) {
        let tag = node.tag.description
        let name = tag.hasPrefix("!") ? String(tag.dropFirst()) : ""
        let scalar = node.scalar?.string ?? ""
        switch name {
        case "bin", "raw", "badstr":
            guard let bytes = Hex.bytes(scalar) else {
                throw YAMLError(description: "!\(name) needs hex digits")
            }
            self = name == "bin" ? .bytes(bytes) : name == "raw" ? .raw(bytes) : .badString(bytes)
        case "repeat":
            let parts = scalar.split(separator: "*")
            guard parts.count == 2, let count = Int(parts[1]) else {
                throw YAMLError(description: "!repeat needs \"text*count\"")
            }
            self = .string(String(repeating: String(parts[0]), count: count))
        case let name where Self.encodings.contains(name):
            let inner: WireNode =
                if let scalar = node.scalar {
                    name.hasPrefix("str") ? .string(scalar.string) : Self.plain(scalar.string)
                } else {
                    try Self.container(node)
                }
            self = .forced(name, inner)
        default:
            guard let scalar = node.scalar else {
                self = try Self.container(node)
                return
            }
            self =
                scalar.style == .plain || scalar.style == .any
                ? Self.plain(scalar.string) : .string(scalar.string)
        }
    }

    private static func container(_ node: Node) throws(YAMLError) -> WireNode {
        if let sequence = node.sequence {
            var items: [WireNode] = []
            for item in sequence { items.append(try WireNode(yaml: item)) }
            return .array(items)
        }
        guard let mapping = node.mapping else {
            throw YAMLError(description: "aliases are not used here")
        }
        var pairs: [Pair] = []
        for (key, value) in mapping {
            pairs.append(Pair(key: try WireNode(yaml: key), value: try WireNode(yaml: value)))
        }
        return .map(pairs)
    }

    private static func plain(_ text: String) -> WireNode {
        switch text {
        case "", "~", "null": return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        default: break
        }
        if let int = Int64(text) { return .int(int) }
        if let uint = UInt64(text) { return .uint(uint) }
        if text.first.map({ $0.isNumber || $0 == "-" }) == true, let double = Double(text) {
            return .double(double)
        }
        return .string(text)
    }

    subscript(key: String) -> WireNode? {
        guard case .map(let pairs) = self else { return nil }
        return pairs.first { $0.key == .string(key) }?.value
    }

    /// The value without the prescribed encodings.
    var plain: WireNode {
        switch self {
        case .forced(_, let inner): inner.plain
        case .array(let items): .array(items.map(\.plain))
        case .map(let pairs): .map(pairs.map { Pair(key: $0.key.plain, value: $0.value.plain) })
        default: self
        }
    }

    /// The name of the kind for messages, such as "an integer" or "a string".
    var kind: String {
        switch self {
        case .null: "nil"
        case .bool: "a boolean"
        case .int, .uint: "an integer"
        case .double: "a float"
        case .string, .badString: "a string"
        case .bytes: "bytes"
        case .array: "an array"
        case .map: "a map"
        case .ext: "an extension"
        case .forced(_, let inner): inner.kind
        case .raw: "raw bytes"
        }
    }
}

/// Converts bytes to and from hexadecimal digits.
enum Hex {
    /// Parses hex digits, in upper or lower case, and ignores white space. Returns nil if a
    /// character is not a digit, or if the number of digits is odd.
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.filter { !$0.isWhitespace }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        var rest = digits[...]
        while !rest.isEmpty {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    static func text(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }
}
