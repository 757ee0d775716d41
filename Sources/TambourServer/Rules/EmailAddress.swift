/// What may be handed to a mail program, on one line and without blanks.
enum EmailAddress {
    /// RFC 5321, 4.5.3.1.3.
    private static let maxBytes = 254

    /// Whether mail could go there: whether it does, a code shows.
    static func isPlausible(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, text.utf8.count <= maxBytes,
            parts[1].contains("."), !parts[1].hasPrefix("."), !parts[1].hasSuffix("."),
            // A program that is given it may take it for an option.
            !text.hasPrefix("-")
        else { return false }
        return text.unicodeScalars.allSatisfy { scalar in
            scalar.value > 0x20 && scalar.value != 0x7F && !scalar.properties.isWhitespace
                && scalar.properties.generalCategory != .control
                && !"\"<>()[]\\,;:`$|&".unicodeScalars.contains(scalar)
        }
    }

    /// The first and the last character of the name, and the rest of the address.
    static func masked(_ address: String) -> String {
        let parts = address.split(separator: "@", maxSplits: 1)
        guard parts.count == 2, let first = parts[0].first, let last = parts[0].last else {
            return "***"
        }
        let end = parts[0].count > 2 ? String(last) : ""
        return "\(first)***\(end)@\(parts[1])"
    }
}
