/// The terminal modes that a full-screen program sets at its start and resets at its end.
package struct TerminalModes: Sendable {
    package var hasMouse = false

    /// The modes in the order of setting. They are reset in reverse order.
    private var pairs: [(set: String, reset: String)] {
        var pairs = [
            // Saves the title on the terminal's title stack.
            ("\u{1B}[22;0t", "\u{1B}[23;0t"),
            ("\u{1B}[?1049h", "\u{1B}[?1049l"),
            // Turns wrapping off, because a terminal may draw a glyph wider than expected.
            ("\u{1B}[?7l", "\u{1B}[?7h"),
            // Turns off bidirectional mode (BDSM): this program writes lines in visual order, and
            // the terminal must not reorder them.
            ("\u{1B}[8l", "\u{1B}[8h"),
            ("\u{1B}[?2004h", "\u{1B}[?2004l"),
            ("\u{1B}[?1004h", "\u{1B}[?1004l"),
        ]
        if hasMouse {
            pairs.append(("\u{1B}[?1002h\u{1B}[?1006h", "\u{1B}[?1006l\u{1B}[?1002l"))
        }
        return pairs
    }

    package var enter: [UInt8] { Array(pairs.map(\.set).joined().utf8) }

    /// The sequence that resets the modes. Before that, it ends a synchronised frame, a style and a
    /// hyperlink that may still be open, and shows the cursor.
    package var leave: [UInt8] {
        let open = "\u{1B}[?2026l\u{1B}[m\u{1B}]8;;\u{1B}\\\u{1B}[?25h"
        return Array((open + pairs.reversed().map(\.reset).joined()).utf8)
    }
}
