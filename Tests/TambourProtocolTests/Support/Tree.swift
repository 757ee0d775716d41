import TambourProtocol
import TambourTesting

/// Any MessagePack value as a tree. It is slow and simple, and the tests compare fast paths with
/// it.
indirect enum Tree: Hashable {
    case null
    case bool(Bool)
    case int(Int64)
    /// The bits of a float, so that NaN equals itself.
    case float(UInt64)
    case text(Text)
    case bytes(Bytes)
    case array([Tree])
    case map([Entry])
    case `extension`(AnyValue)

    struct Entry: Hashable {
        var key: Tree
        var value: Tree
    }
}

extension Tree: WireValue {
    static func read(from reader: inout MessagePackReader) throws(PayloadError) -> Tree {
        switch reader.kind {
        case .null:
            _ = reader.readNilIfPresent()
            return .null
        case .boolean: return .bool(try reader.readBool())
        case .integer: return .int(try reader.readInt())
        case .float: return .float(try reader.readDouble().bitPattern)
        case .string: return .text(try reader.readText())
        case .binary: return .bytes(try reader.readBytes())
        case .array: return .array(try [Tree].read(from: &reader))
        case .map:
            var entries: [Entry] = []
            for _ in 0..<(try reader.readMapHeader()) {
                let key = try Tree.read(from: &reader)
                entries.append(Entry(key: key, value: try Tree.read(from: &reader)))
            }
            reader.endContainer()
            return .map(entries)
        case .extension: return .extension(try AnyValue.read(from: &reader))
        case .unused, nil:
            try reader.skip()
            return .null
        }
    }

    func write(to writer: inout MessagePackWriter) {
        switch self {
        case .null: writer.writeNil()
        case .bool(let value): writer.writeBool(value)
        case .int(let value): writer.writeInt(value)
        case .float(let bits): writer.writeDouble(Double(bitPattern: bits))
        case .text(let text): writer.writeText(text)
        case .bytes(let bytes): writer.writeBytes(bytes)
        case .array(let items): items.write(to: &writer)
        case .map(let entries):
            writer.writeMapHeader(entries.count)
            for entry in entries {
                entry.key.write(to: &writer)
                entry.value.write(to: &writer)
            }
        case .extension(let value): value.write(to: &writer)
        }
    }
}

extension Tree {
    /// Returns a random tree no deeper than `depth`. Its lengths are often close to those at which
    /// the encoding changes.
    static func random(depth: Int, using random: inout SeededGenerator) -> Tree {
        switch random.below(depth > 0 ? 10 : 7) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2, 3: return .int(randomInt(using: &random))
        case 4: return .float(random.next())
        case 5: return .text(Text(randomString(using: &random)))
        case 6:
            if random.below(4) == 0 { return .extension(randomExtension(using: &random)) }
            return .bytes(Bytes(random.bytes(randomLength(using: &random))))
        case 7, 8:
            let count = random.below(8) == 0 ? 15 + random.below(3) : random.below(5)
            return .array((0..<count).map { _ in .random(depth: depth - 1, using: &random) })
        default:
            let count = random.below(8) == 0 ? 15 + random.below(3) : random.below(5)
            return .map(
                (0..<count).map { _ in
                    Entry(
                        key: .random(depth: 0, using: &random),
                        value: .random(depth: depth - 1, using: &random)
                    )
                }
            )
        }
    }

    static func randomInt(using random: inout SeededGenerator) -> Int64 {
        let edge = Int64(truncatingIfNeeded: UInt64(1) << UInt64(random.below(64)))
        switch random.below(3) {
        case 0: return edge &+ Int64(random.below(3) - 1)
        case 1: return 0 &- (edge &+ Int64(random.below(3) - 1))
        default: return Int64(truncatingIfNeeded: random.next() >> UInt64(random.below(64)))
        }
    }

    private static func randomLength(using random: inout SeededGenerator) -> Int {
        switch random.below(12) {
        case 0: 31 + random.below(2)
        case 1: 255 + random.below(2)
        default: random.below(12)
        }
    }

    static func randomString(using random: inout SeededGenerator) -> String {
        let ranges: [ClosedRange<UInt32>] = [
            0x20...0x7E, 0x20...0x7E, 0x400...0x44F, 0x800...0xD7FF, 0xE000...0xFFFF,
            0x1_F300...0x1_F64F, 0x10_FFF0...0x10_FFFF,
        ]
        var string = ""
        var range = ranges[0]
        for _ in 0..<randomLength(using: &random) {
            // Stay in one script for a while, as real texts do.
            if random.below(4) == 0 { range = ranges[random.below(ranges.count)] }
            guard let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) else {
                continue
            }
            string.unicodeScalars.append(scalar)
        }
        return string
    }

    private static func randomExtension(using random: inout SeededGenerator) -> AnyValue {
        let type = UInt8(random.below(256))
        let size = random.below(5)
        if Bool.random(using: &random) {
            return AnyValue(
                unchecked: Bytes([0xD4 + UInt8(size), type] + random.bytes(1 << size))
            )
        }
        return AnyValue(unchecked: Bytes([0xC7, UInt8(size), type] + random.bytes(size)))
    }
}
