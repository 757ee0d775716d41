import CWidth
import Glibc

/// The columns that text takes on the screen, as terminals count them.
enum Width {
    /// Columns of one grapheme cluster as `Glyph` shows it; zero for what is not shown.
    static func of(_ cluster: Character) -> Int { Glyph(cluster).width }

    /// Columns of a whole text drawn in one line.
    static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + Glyph($1).width }
    }

    /// As much of the beginning of `text` as `columns` hold, ending with "…" if something is
    /// missing.
    static func shortened(_ text: some StringProtocol, to columns: Int) -> String {
        var used = 0
        // Clusters: all that were looked at, and those that leave a column for the ellipsis.
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

    /// libc's opinion on one scalar: 0, 1 or 2 columns; -1 for controls and what it does not know.
    static func ofScalar(_ scalar: Unicode.Scalar) -> Int {
        _ = knowsUnicode
        return Int(wcwidth(wchar_t(bitPattern: scalar.value)))
    }

    /// libc's tables hold for the locale; only its character type is switched, so that numbers and
    /// sorting stay as they are.
    private static let knowsUnicode =
        setlocale(LC_CTYPE, "C.UTF-8") != nil || setlocale(LC_CTYPE, "en_US.UTF-8") != nil
}
