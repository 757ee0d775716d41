/// Checks that e-mail addresses are safe to hand to a mail program: one line, without blanks.
enum EmailAddress {
    /// The limit of RFC 5321, section 4.5.3.1.3.
    private static let maxBytes = 254

    /// Returns whether the text looks like a deliverable address. The proof that mail arrives comes
    /// later, when the user enters a code from the mail.
    static func isPlausible(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, text.utf8.count <= maxBytes,
            parts[1].contains("."), !parts[1].hasPrefix("."), !parts[1].hasSuffix("."),
            // A mail program might mistake a leading dash for an option.
            !text.hasPrefix("-")
        else { return false }
        return text.unicodeScalars.allSatisfy { scalar in
            scalar.value > 0x20 && scalar.value != 0x7F && !scalar.properties.isWhitespace
                && scalar.properties.generalCategory != .control
                && !"\"<>()[]\\,;:`$|&".unicodeScalars.contains(scalar)
        }
    }

    /// Returns the address with a masked name. The first character of the name remains. The last
    /// character also remains if the name is longer than two characters.
    static func masked(_ address: String) -> String {
        let parts = address.split(separator: "@", maxSplits: 1)
        guard parts.count == 2, let first = parts[0].first, let last = parts[0].last else {
            return "***"
        }
        let end = parts[0].count > 2 ? String(last) : ""
        return "\(first)***\(end)@\(parts[1])"
    }
}
