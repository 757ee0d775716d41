/// Control sequences that do not change the contents of the screen: notifications, clipboard texts
/// and window titles.
package enum TerminalMessage {
    /// The way to notify a user who is looking elsewhere.
    package enum Notification: Sendable {
        case none
        case bell
        /// iTerm2, Windows Terminal, WezTerm, kitty.
        case osc9
        /// urxvt, VTE, foot, Ghostty.
        case osc777
    }

    /// The maximum length of a copied text in bytes. Terminals accept about 100,000 bytes of
    /// base64.
    static let maxClipboardBytes = 74_994

    /// Returns the sequence that copies text to the clipboard (OSC 52); nil if the text is too
    /// long.
    package static func copy(_ text: String) -> [UInt8]? {
        let bytes = Array(text.utf8)
        guard bytes.count <= maxClipboardBytes else { return nil }
        return Array("\u{1B}]52;c;".utf8) + base64(bytes) + Array("\u{1B}\\".utf8)
    }

    package static func notify(_ kind: Notification, title: String, body: String) -> [UInt8] {
        // A semicolon ends a field. After OSC 9, some terminals parse a digit and a semicolon as a
        // command.
        let title = String(SafeText.line(title).map { $0 == ";" ? "," : $0 })
        let body = SafeText.line(body)
        return switch kind {
        case .none: []
        case .bell: [0x07]
        case .osc9: Array("\u{1B}]9;\(title): \(body)\u{1B}\\".utf8)
        case .osc777: Array("\u{1B}]777;notify;\(title);\(body)\u{1B}\\".utf8)
        }
    }

    static func setTitle(_ title: String) -> [UInt8] {
        Array("\u{1B}]2;\(SafeText.line(title))\u{1B}\\".utf8)
    }

    /// Encodes bytes in base64 (RFC 4648).
    static func base64(_ bytes: [UInt8]) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
            for position in 0..<4 {
                let index = Int(bits >> (18 - 6 * UInt32(position)) & 63)
                encoded.append(position <= group.count ? alphabet[index] : UInt8(ascii: "="))
            }
        }
        return encoded
    }

    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
}
