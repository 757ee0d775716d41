/// Reads MessagePack into a `WireNode`.
///
/// This implementation is independent: it shares no code with `TambourProtocol`.
struct WireDecoder {
    /// The reason why bytes are not exactly one value. The wording equals the wording of the
    /// runtime's errors.
    struct Failure: Error, CustomStringConvertible {
        var description: String
        /// The position at which decoding stopped, in bytes.
        var offset: Int
    }

    /// The limits on the depth and size of a value.
    struct Bounds {
        /// The maximum nesting depth of containers.
        var depth = Int.max
        /// The maximum number of items and entries, counted over all containers.
        var elements = Int.max
    }

    private let bytes: [UInt8]
    private let bounds: Bounds
    private var position = 0
    private var depth = 0
    private var elements = 0

    private init(_ bytes: [UInt8], bounds: Bounds) {
        self.bytes = bytes
        self.bounds = bounds
    }

    /// Returns the single value in the bytes. Empty bytes, or a single nil, count as an empty map.
    ///
    /// - Parameter bounds: The limits on depth and size. Only untrusted bytes need limits.
    static func decode(
        _ bytes: [UInt8],
        bounds: Bounds = Bounds()
    ) throws(Failure) -> WireNode {
        guard !bytes.isEmpty, bytes != [0xC0] else { return .map([]) }
        var decoder = WireDecoder(bytes, bounds: bounds)
        let node = try decoder.next()
        let left = bytes.count - decoder.position
        guard left == 0 else {
            throw decoder.failure("\(Self.counted(left)) after the payload")
        }
        return node
    }

    private static func counted(_ bytes: Int) -> String {
        bytes == 1 ? "1 byte" : "\(bytes) bytes"
    }

    private func failure(_ description: String) -> Failure {
        Failure(description: description, offset: position)
    }

    private func truncated() -> Failure { failure("ends after \(Self.counted(bytes.count))") }

    private mutating func next() throws(Failure) -> WireNode {
        let first = UInt8(truncatingIfNeeded: try number(1))
        switch first {
        case 0x00...0x7F: return .int(Int64(first))
        case 0x80...0x8F: return try map(Int(first & 0x0F))
        case 0x90...0x9F: return try array(Int(first & 0x0F))
        case 0xA0...0xBF: return try string(Int(first & 0x1F))
        case 0xC0: return .null
        case 0xC2: return .bool(false)
        case 0xC3: return .bool(true)
        case 0xC4: return .bytes(try take(Int(try number(1))))
        case 0xC5: return .bytes(try take(Int(try number(2))))
        case 0xC6: return .bytes(try take(Int(try number(4))))
        case 0xC7: return try ext(Int(try number(1)))
        case 0xC8: return try ext(Int(try number(2)))
        case 0xC9: return try ext(Int(try number(4)))
        case 0xCA: return .double(Double(Float(bitPattern: UInt32(try number(4)))))
        case 0xCB: return .double(Double(bitPattern: try number(8)))
        case 0xCC: return .int(Int64(try number(1)))
        case 0xCD: return .int(Int64(try number(2)))
        case 0xCE: return .int(Int64(try number(4)))
        case 0xCF:
            let value = try number(8)
            return Int64(exactly: value).map { .int($0) } ?? .uint(value)
        case 0xD0: return .int(Int64(Int8(truncatingIfNeeded: try number(1))))
        case 0xD1: return .int(Int64(Int16(truncatingIfNeeded: try number(2))))
        case 0xD2: return .int(Int64(Int32(truncatingIfNeeded: try number(4))))
        case 0xD3: return .int(Int64(bitPattern: try number(8)))
        case 0xD4...0xD8: return try ext(1 << Int(first - 0xD4))
        case 0xD9: return try string(Int(try number(1)))
        case 0xDA: return try string(Int(try number(2)))
        case 0xDB: return try string(Int(try number(4)))
        case 0xDC: return try array(Int(try number(2)))
        case 0xDD: return try array(Int(try number(4)))
        case 0xDE: return try map(Int(try number(2)))
        case 0xDF: return try map(Int(try number(4)))
        case 0xE0...0xFF: return .int(Int64(Int8(bitPattern: first)))
        default: throw failure("the byte 0x\(Hex.text([first])) is not MessagePack")
        }
    }

    private mutating func number(_ width: Int) throws(Failure) -> UInt64 {
        try take(width).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func take(_ count: Int) throws(Failure) -> [UInt8] {
        guard count <= bytes.count - position else { throw truncated() }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    private mutating func string(_ count: Int) throws(Failure) -> WireNode {
        let content = try take(count)
        return String(validating: content, as: UTF8.self).map { .string($0) } ?? .badString(content)
    }

    private mutating func ext(_ count: Int) throws(Failure) -> WireNode {
        let type = Int8(truncatingIfNeeded: try number(1))
        return .ext(type: type, try take(count))
    }

    private mutating func array(_ count: Int) throws(Failure) -> WireNode {
        try enter(count, values: 1)
        var items: [WireNode] = []
        for _ in 0..<count { items.append(try next()) }
        depth -= 1
        return .array(items)
    }

    private mutating func map(_ count: Int) throws(Failure) -> WireNode {
        try enter(count, values: 2)
        var pairs: [WireNode.Pair] = []
        for _ in 0..<count {
            let key = try next()
            pairs.append(.init(key: key, value: try next()))
        }
        depth -= 1
        return .map(pairs)
    }

    /// Begins to read a container of `count` entries, each of which consists of `values` values.
    private mutating func enter(_ count: Int, values: Int) throws(Failure) {
        // Every value takes at least one byte.
        guard count * values <= bytes.count - position else { throw truncated() }
        depth += 1
        guard depth <= bounds.depth else { throw failure("nested deeper than \(bounds.depth)") }
        elements += count
        guard elements <= bounds.elements else {
            throw failure("more than \(bounds.elements) elements")
        }
    }
}
