import CWidth
import Glibc

/// The columns that text takes on the screen, as terminals count them.
package enum Width {
    /// Returns the columns of one grapheme cluster as `Glyph` shows it; zero if it is not shown.
    package static func of(_ cluster: Character) -> Int { Glyph(cluster).width }

    /// Returns the columns of a whole text drawn in one line.
    package static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + Glyph($1).width }
    }

    /// Returns as much of the beginning of `text` as fits into `columns`, with "…" if it is
    /// shortened.
    package static func shortened(_ text: some StringProtocol, to columns: Int) -> String {
        var used = 0
        // Counts of clusters: all that fit so far, and those that leave a column for the ellipsis.
        var seen = 0
        var keptBeforeEllipsis = 0
        for cluster in text {
            let width = of(cluster)
            guard used + width <= columns else {
                return columns > 0 ? text.prefix(keptBeforeEllipsis) + "…" : ""
            }
            used += width
            seen += 1
            if used < columns { keptBeforeEllipsis = seen }
        }
        return String(text)
    }

    /// Returns libc's width of a scalar: 0, 1 or 2 columns; -1 for controls and unknown scalars.
    static func ofScalar(_ scalar: Unicode.Scalar) -> Int {
        _ = knowsUnicode
        return Int(wcwidth(wchar_t(bitPattern: scalar.value)))
    }

    /// Loads libc's width tables, which depend on the locale. Only the character type changes, so
    /// that numbers and sorting stay as they are.
    private static let knowsUnicode =
        setlocale(LC_CTYPE, "C.UTF-8") != nil || setlocale(LC_CTYPE, "en_US.UTF-8") != nil
}
