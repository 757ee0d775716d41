/// Writes a `WireNode` as MessagePack. A `forced` node determines the encoding of its value.
///
/// This implementation is independent: it shares no code with `TambourProtocol`.
struct WireEncoder {
    private(set) var bytes: [UInt8] = []

    static func encode(_ node: WireNode) -> [UInt8] {
        var encoder = WireEncoder()
        encoder.write(node, as: nil)
        return encoder.bytes
    }

    private mutating func write(_ node: WireNode, as encoding: String?) {
        switch node {
        case .null: bytes.append(0xC0)
        case .bool(let bool): bytes.append(bool ? 0xC3 : 0xC2)
        case .int(let int): write(int, as: encoding)
        case .uint(let uint): head(0xCF, uint, 8)
        case .double(let double):
            if encoding == "f32" {
                head(0xCA, UInt64(Float(double).bitPattern), 4)
            } else {
                head(0xCB, double.bitPattern, 8)
            }
        case .string(let string): writeString(Array(string.utf8), as: encoding)
        case .badString(let bytes): writeString(bytes, as: encoding)
        case .bytes(let content):
            let count = UInt64(content.count)
            if count <= 0xFF {
                head(0xC4, count, 1)
            } else if count <= 0xFFFF {
                head(0xC5, count, 2)
            } else {
                head(0xC6, count, 4)
            }
            bytes += content
        case .array(let items):
            container(items.count, fix: 0x90, wide: 0xDC, as: encoding)
            for item in items { write(item, as: nil) }
        case .map(let pairs):
            container(pairs.count, fix: 0x80, wide: 0xDE, as: encoding)
            for pair in pairs {
                write(pair.key, as: nil)
                write(pair.value, as: nil)
            }
        case .ext(let type, let content):
            head(0xC7, UInt64(content.count), 1)
            bytes.append(UInt8(bitPattern: type))
            bytes += content
        case .forced(let encoding, let inner): write(inner, as: encoding)
        case .raw(let content): bytes += content
        }
    }

    private mutating func write(_ int: Int64, as encoding: String?) {
        let bits = UInt64(bitPattern: int)
        switch encoding {
        case "u8": head(0xCC, bits, 1)
        case "u16": head(0xCD, bits, 2)
        case "u32": head(0xCE, bits, 4)
        case "u64": head(0xCF, bits, 8)
        case "i8": head(0xD0, bits, 1)
        case "i16": head(0xD1, bits, 2)
        case "i32": head(0xD2, bits, 4)
        case "i64": head(0xD3, bits, 8)
        case "f32": head(0xCA, UInt64(Float(int).bitPattern), 4)
        case "f64": head(0xCB, Double(int).bitPattern, 8)
        default:
            switch int {
            case 0...0x7F, -32 ... -1: bytes.append(UInt8(truncatingIfNeeded: int))
            case 0...0xFF: head(0xCC, bits, 1)
            case 0...0xFFFF: head(0xCD, bits, 2)
            case 0...0xFFFF_FFFF: head(0xCE, bits, 4)
            case 0...: head(0xCF, bits, 8)
            case Int64(Int8.min)...: head(0xD0, bits, 1)
            case Int64(Int16.min)...: head(0xD1, bits, 2)
            case Int64(Int32.min)...: head(0xD2, bits, 4)
            default: head(0xD3, bits, 8)
            }
        }
    }

    private mutating func writeString(_ content: [UInt8], as encoding: String?) {
        let count = UInt64(content.count)
        switch (encoding, count) {
        case ("str8", _): head(0xD9, count, 1)
        case ("str16", _): head(0xDA, count, 2)
        case ("str32", _): head(0xDB, count, 4)
        case (_, 0...31): bytes.append(0xA0 | UInt8(count))
        case (_, 0...0xFF): head(0xD9, count, 1)
        case (_, 0...0xFFFF): head(0xDA, count, 2)
        default: head(0xDB, count, 4)
        }
        bytes += content
    }

    private mutating func container(_ count: Int, fix: UInt8, wide: UInt8, as encoding: String?) {
        if encoding?.hasSuffix("32") == true || count > 0xFFFF {
            head(wide + 1, UInt64(count), 4)
        } else if encoding?.hasSuffix("16") == true || count > 15 {
            head(wide, UInt64(count), 2)
        } else {
            bytes.append(fix | UInt8(count))
        }
    }

    private mutating func head(_ first: UInt8, _ value: UInt64, _ width: Int) {
        bytes.append(first)
        for index in (0..<width).reversed() {
            bytes.append(UInt8(truncatingIfNeeded: value >> (UInt64(index) * 8)))
        }
    }
}
