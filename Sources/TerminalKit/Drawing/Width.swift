import CWidth
import Glibc

/// The number of columns that terminals use for a text.
package enum Width {
    /// Returns the columns of one grapheme cluster drawn as a `Glyph`; zero for an invisible
    /// cluster.
    package static func of(_ cluster: Character) -> Int { Glyph(cluster).width }

    /// Returns the columns of a whole text drawn in one line.
    package static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + Glyph($1).width }
    }

    /// Returns the longest beginning of `text` that fits into `columns`. A shortened text ends with
    /// "…".
    package static func shortened(_ text: some StringProtocol, to columns: Int) -> String {
        var used = 0
        // `seen` counts the clusters that fit so far. `keptBeforeEllipsis` counts the clusters that
        // leave a column for the ellipsis.
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

    /// Returns libc's width of a scalar: 0, 1 or 2 columns; -1 for control characters and unknown
    /// scalars.
    static func ofScalar(_ scalar: Unicode.Scalar) -> Int {
        _ = knowsUnicode
        return Int(wcwidth(wchar_t(bitPattern: scalar.value)))
    }

    /// Loads libc's width tables, which depend on the locale. Only `LC_CTYPE` changes; numbers and
    /// sorting keep their locale.
    private static let knowsUnicode =
        setlocale(LC_CTYPE, "C.UTF-8") != nil || setlocale(LC_CTYPE, "en_US.UTF-8") != nil
}
