/// Reads bytes that are written as hexadecimal digits, on one or more lines. Accepts the common
/// forms: `0a00`, `0a:00`, `0x0a, 0x00`. The reader accepts the text in any number of pieces, and
/// buffers at most one digit.
struct HexText {
    struct Failure: Error, Equatable, CustomStringConvertible {
        var description: String
    }

    private var high: UInt8?
    private var zeroBegins = false
    private var isWordBegin = true
    private var line = 1
    private var column = 0

    /// Appends the bytes of the next piece of the text.
    /// - Throws: `Failure` with the position of the first invalid character. The bytes before this
    ///   character are appended. The caller must not read further pieces.
    mutating func read(
        _ piece: some Sequence<UInt8>,
        into bytes: inout [UInt8]
    ) throws(Failure) {
        for character in piece {
            column += 1
            if let digit = Self.digit(character) {
                zeroBegins = isWordBegin && digit == 0
                isWordBegin = false
                if let first = high {
                    bytes.append(first << 4 | digit)
                    high = nil
                } else {
                    high = digit
                }
            } else if Self.isSeparator(character) {
                guard high == nil else { throw oddDigit(column) }
                isWordBegin = true
                zeroBegins = false
                if character == UInt8(ascii: "\n") {
                    line += 1
                    column = 0
                }
            } else {
                // The letter x is valid only in `0x` at the start of a word.
                guard zeroBegins, character | 0x20 == UInt8(ascii: "x") else {
                    throw noDigit(character)
                }
                high = nil
                zeroBegins = false
            }
        }
    }

    /// Ends the text.
    /// - Throws: `Failure` if the text ends inside a byte.
    func end() throws(Failure) {
        guard high == nil else { throw oddDigit(column + 1) }
    }

    // Compares numbers instead of characters for speed. An input may have tens of millions of
    // characters.
    private static func digit(_ character: UInt8) -> UInt8? {
        if character >= 0x30, character <= 0x39 { return character - 0x30 }
        let small = character | 0x20
        return small >= 0x61 && small <= 0x66 ? small - 0x57 : nil
    }

    private static func isSeparator(_ character: UInt8) -> Bool {
        character == UInt8(ascii: " ") || character == UInt8(ascii: "\n")
            || character == UInt8(ascii: ":") || character == UInt8(ascii: ",")
            || character == UInt8(ascii: "\t") || character == UInt8(ascii: "\r")
    }

    private func oddDigit(_ column: Int) -> Failure {
        Failure(description: "line \(line), column \(column): a byte has two digits")
    }

    private func noDigit(_ character: UInt8) -> Failure {
        let shown =
            (0x21...0x7E).contains(character)
            ? "\"\(Character(UnicodeScalar(character)))\"" : "the byte 0x\(Hex.text([character]))"
        return Failure(
            description: "line \(line), column \(column): \(shown) is no hexadecimal digit"
        )
    }
}
