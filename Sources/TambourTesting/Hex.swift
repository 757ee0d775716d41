/// Parses hex digits. Ignores spaces, dashes and line breaks.
package func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { $0 != " " && $0 != "-" && $0 != "\n" }.map { character in
        guard let digit = character.hexDigitValue else { fatalError("not hex: \(text)") }
        return UInt8(digit)
    }
    precondition(digits.count % 2 == 0, "half a byte: \(text)")
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// Returns bytes as hex digits. Failing tests should show bytes in this format.
package func hexText(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }.joined()
}

extension Array where Element == UInt8 {
    /// Creates an array with `times` copies of `bytes`.
    package init(repeating bytes: [UInt8], times: Int) {
        self = []
        for _ in 0..<times { append(contentsOf: bytes) }
    }
}
