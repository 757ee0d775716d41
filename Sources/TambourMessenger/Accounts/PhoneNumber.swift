import TambourProtocol

/// Phone numbers as people and clients write them.
package enum PhoneNumber {
    /// Returns the digits of an international number; nil for a malformed number.
    ///
    /// Drops the plus, spaces, dashes, dots and brackets. The rest must be 5 to 15 digits (E.164).
    package static func parse(_ text: String) -> Int64? {
        var digits: Int64 = 0
        var count = 0
        for (index, scalar) in text.unicodeScalars.enumerated() {
            switch scalar {
            case "0"..."9":
                count += 1
                guard count <= 15 else { return nil }
                digits = digits * 10 + Int64(scalar.value - 48)
            case "+" where index == 0: continue
            case " ", "-", "(", ")", ".", "\u{A0}": continue
            default: return nil
            }
        }
        return count >= 5 && digits > 0 ? digits : nil
    }

    /// Returns the number with a leading plus.
    package static func format(_ phone: Int64) -> String { "+\(phone)" }
}
