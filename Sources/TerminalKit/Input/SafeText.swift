/// Text from other users or programs, without characters that a terminal or an editor could
/// interpret as a command.
package enum SafeText {
    /// Returns the text with `\n` for every kind of line break, and without control characters
    /// except tabs.
    static func multiline(_ text: String) -> String {
        var safe = String.UnicodeScalarView()
        var endedWithReturn = false
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\r": safe.append("\n")
            case "\n": if !endedWithReturn { safe.append("\n") }
            case "\u{85}", "\u{2028}", "\u{2029}", "\u{B}", "\u{C}": safe.append("\n")
            case "\t": safe.append("\t")
            default: if scalar.properties.generalCategory != .control { safe.append(scalar) }
            }
            endedWithReturn = scalar == "\r"
        }
        return String(safe)
    }

    /// Returns the text as one line that is safe to print, for titles and notifications.
    package static func line(_ text: String) -> String {
        let spaced = text.map { $0.isNewline || $0 == "\t" ? " " : $0 }
        return String(spaced.map { Glyph($0) }.filter { $0.width > 0 }.map(\.text))
    }
}
