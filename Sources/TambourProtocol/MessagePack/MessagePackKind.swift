/// The type of a value, determined by its first byte.
package enum MessagePackKind: Hashable, Sendable {
    case null
    case boolean
    case integer
    case float
    case string
    case binary
    case array
    case map
    case `extension`
    /// The byte 0xc1, which MessagePack never uses.
    case unused

    init(firstByte: UInt8) {
        self =
            switch firstByte {
            case 0x00...0x7F, 0xCC...0xD3, 0xE0...0xFF: .integer
            case 0x80...0x8F, 0xDE, 0xDF: .map
            case 0x90...0x9F, 0xDC, 0xDD: .array
            case 0xA0...0xBF, 0xD9...0xDB: .string
            case 0xC0: .null
            case 0xC2, 0xC3: .boolean
            case 0xC4...0xC6: .binary
            case 0xC7...0xC9, 0xD4...0xD8: .extension
            case 0xCA, 0xCB: .float
            default: .unused
            }
    }

    /// The type's name in error messages such as "found a string".
    var description: String {
        switch self {
        case .null: "nil"
        case .boolean: "a boolean"
        case .integer: "an integer"
        case .float: "a float"
        case .string: "a string"
        case .binary: "bytes"
        case .array: "an array"
        case .map: "a map"
        case .extension: "an extension"
        case .unused: "the byte 0xc1"
        }
    }
}
