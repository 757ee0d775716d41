/// Bytes written as hexadecimal digits, as people and tools write them: `0a00`, `0a:00`, `0x0a, 0x00`, over several
/// lines.
enum HexText {
    struct Failure: Error, Equatable, CustomStringConvertible {
        var description: String
    }

    /// The bytes of `text`.
    /// - Throws: `Failure` with the place of the first character that cannot be read.
    static func bytes(_ text: some Sequence<UInt8>) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var high: UInt8?
        var zeroBegins = false
        var isWordBegin = true
        var line = 1
        var column = 0

        for character in text {
            column += 1
            switch character {
            case _ where isSeparator(character):
                guard high == nil else {
                    throw Failure(
                        description: "line \(line), column \(column): a byte has two digits"
                    )
                }
                isWordBegin = true
                zeroBegins = false
                if character == UInt8(ascii: "\n") {
                    line += 1
                    column = 0
                }
            case UInt8(ascii: "x"), UInt8(ascii: "X"):
                // Only in `0x`, and only where a word begins.
                guard zeroBegins else { throw noDigit(character, line, column) }
                high = nil
                zeroBegins = false
            default:
                guard let digit = Character(UnicodeScalar(character)).hexDigitValue else {
                    throw noDigit(character, line, column)
                }
                zeroBegins = isWordBegin && digit == 0
                isWordBegin = false
                if let first = high {
                    bytes.append(first << 4 | UInt8(digit))
                    high = nil
                } else {
                    high = UInt8(digit)
                }
            }
        }
        guard high == nil else {
            throw Failure(
                description: "line \(line), column \(column + 1): a byte has two digits"
            )
        }
        return bytes
    }

    private static func isSeparator(_ character: UInt8) -> Bool {
        [" ", "\t", "\r", "\n", ":", ","].contains(Character(UnicodeScalar(character)))
    }

    private static func noDigit(_ character: UInt8, _ line: Int, _ column: Int) -> Failure {
        let shown =
            (0x21...0x7E).contains(character)
            ? "\"\(Character(UnicodeScalar(character)))\"" : "the byte 0x\(Hex.text([character]))"
        return Failure(
            description: "line \(line), column \(column): \(shown) is no hexadecimal digit"
        )
    }
}
