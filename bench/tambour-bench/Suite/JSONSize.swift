/// Computes the size of MessagePack as JSON without white space.
enum JSONSize {
    static func of(_ payload: [UInt8]) throws -> Int {
        var offset = 0
        return try size(payload, &offset)
    }

    private static func number(_ bytes: [UInt8], _ offset: inout Int, _ width: Int) throws -> UInt64
    {
        guard offset + width <= bytes.count else { throw BenchError("not MessagePack") }
        defer { offset += width }
        return bytes[offset..<(offset + width)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func text(_ bytes: [UInt8], _ offset: inout Int, _ count: Int) throws -> Int {
        guard offset + count <= bytes.count else { throw BenchError("not MessagePack") }
        defer { offset += count }
        // Counts the quotes, and a backslash before each byte that JSON escapes.
        return bytes[offset..<(offset + count)].reduce(2) { sum, byte in
            sum + (byte == 0x22 || byte == 0x5C || byte == 0x0A ? 2 : byte < 0x20 ? 6 : 1)
        }
    }

    private static func items(_ bytes: [UInt8], _ offset: inout Int, _ count: Int) throws -> Int {
        var sum = 2 + max(0, count - 1)
        for _ in 0..<count { sum += try size(bytes, &offset) }
        return sum
    }

    private static func entries(_ bytes: [UInt8], _ offset: inout Int, _ count: Int) throws -> Int {
        var sum = 2 + max(0, count - 1)
        for _ in 0..<count {
            sum += try size(bytes, &offset) + 1
            sum += try size(bytes, &offset)
        }
        return sum
    }

    private static func size(_ bytes: [UInt8], _ offset: inout Int) throws -> Int {
        let head = UInt8(try number(bytes, &offset, 1))
        switch head {
        case 0x00...0x7F: return "\(head)".count
        case 0x80...0x8F: return try entries(bytes, &offset, Int(head & 0xF))
        case 0x90...0x9F: return try items(bytes, &offset, Int(head & 0xF))
        case 0xA0...0xBF: return try text(bytes, &offset, Int(head & 0x1F))
        case 0xC0: return 4
        case 0xC2: return 5
        case 0xC3: return 4
        case 0xC4...0xC6, 0xD9...0xDB:
            let width = 1 << Int((head - (head < 0xC7 ? 0xC4 : 0xD9)))
            let count = Int(try number(bytes, &offset, width))
            return try text(bytes, &offset, count)
        case 0xCA, 0xCB:
            let bits = try number(bytes, &offset, head == 0xCA ? 4 : 8)
            let value =
                head == 0xCB
                ? Double(bitPattern: bits) : Double(Float(bitPattern: UInt32(bits)))
            return "\(value)".count
        case 0xCC...0xCF: return "\(try number(bytes, &offset, 1 << Int(head - 0xCC)))".count
        case 0xD0...0xD3:
            let width = 1 << Int(head - 0xD0)
            let raw = try number(bytes, &offset, width)
            let shift = UInt64(64 - 8 * width)
            return "\(Int64(bitPattern: raw << shift) >> Int64(shift))".count
        case 0xDC, 0xDD:
            let count = Int(try number(bytes, &offset, head == 0xDC ? 2 : 4))
            return try items(bytes, &offset, count)
        case 0xDE, 0xDF:
            let count = Int(try number(bytes, &offset, head == 0xDE ? 2 : 4))
            return try entries(bytes, &offset, count)
        case 0xE0...0xFF: return "\(Int8(bitPattern: head))".count
        default: throw BenchError("no JSON for MessagePack \(head)")
        }
    }
}
