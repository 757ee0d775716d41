/// The code of an invitation to a server: 80 random bits as 16 letters and digits.
///
/// The alphabet is Crockford's base 32, without the letters I, L, O and U. People copy codes by
/// hand, so case, spaces and dashes do not matter. O counts as the digit 0, and I and L count as
/// the digit 1.
package struct InvitationCode: Hashable, Sendable, CustomStringConvertible {
    /// The symbols, without dashes.
    package let symbols: String

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let length = 16
    /// The number of random bytes in a code.
    package static let byteCount = 10

    /// Makes a code of `byteCount` random bytes.
    package init(_ bytes: [UInt8]) {
        precondition(bytes.count == Self.byteCount, "a code has a fixed length")
        var symbols: [UInt8] = []
        var bits = 0
        var value = 0
        for byte in bytes {
            value = value << 8 | Int(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                symbols.append(Self.alphabet[value >> bits & 31])
            }
            value &= 1 << bits - 1
        }
        self.symbols = String(decoding: symbols, as: UTF8.self)
    }

    /// Reads a code in the form in which a person typed it. Returns nil if the text is not a code.
    package init?(_ text: String) {
        var symbols: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "-"), UInt8(ascii: " "), UInt8(ascii: "\t"): continue
            default: break
            }
            let isSmall = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            let symbol: UInt8
            switch isSmall ? byte - 32 : byte {
            case UInt8(ascii: "O"): symbol = UInt8(ascii: "0")
            case UInt8(ascii: "I"), UInt8(ascii: "L"): symbol = UInt8(ascii: "1")
            case let other: symbol = other
            }
            guard symbols.count < Self.length, Self.alphabet.contains(symbol) else { return nil }
            symbols.append(symbol)
        }
        guard symbols.count == Self.length else { return nil }
        self.symbols = String(decoding: symbols, as: UTF8.self)
    }

    /// The code in groups of four, such as `K7QF-9M2X-4TBW-8HRN`.
    package var description: String {
        var text = ""
        for (index, symbol) in symbols.enumerated() {
            if index > 0, index.isMultiple(of: 4) { text.append("-") }
            text.append(symbol)
        }
        return text
    }
}
