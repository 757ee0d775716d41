import Glibc
import TambourProtocol

/// Formats values for admin commands.
package enum AdminText {
    /// Formats Unix milliseconds as `2026-11-22T11:30:05Z`, and 0 as `never`.
    package static func time(_ ms: Int64) -> String {
        guard ms > 0 else { return "never" }
        var seconds = time_t(clamping: ms / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
            + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
    }

    /// Formats a number of days since 1970 as `2026-11-22`.
    static func day(_ day: Int64) -> String { String(time(max(day * 86_400_000, 1)).prefix(10)) }

    private static func two(_ number: Int32) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }

    /// Formats a size, for example as `1.2 MB`. A kilobyte is 1,000 bytes.
    package static func bytes(_ count: Int64) -> String {
        var value = Double(count)
        for unit in ["bytes", "kB", "MB", "GB"] {
            if abs(value) < 1000 {
                return unit == "bytes" ? "\(count) bytes" : "\(rounded(value)) \(unit)"
            }
            value /= 1000
        }
        return "\(rounded(value)) TB"
    }

    private static func rounded(_ value: Double) -> String {
        "\((value * 10).rounded() / 10)"
    }

    /// Returns a user's text in quotes. Shortens the text if it does not fit a line.
    static func quoted(_ text: some CustomStringConvertible) -> String {
        let text = text.description
        let cut = text.prefix(maxShown)
        return "\"\(cut)\(cut.endIndex < text.endIndex ? "…" : "")\""
    }

    /// Escapes a text, so that it is one word of an admin request, without tabs and line breaks.
    static func escaped(_ text: String) -> String {
        var word = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": word += "\\\\"
            case "\t": word += "\\t"
            case "\n": word += "\\n"
            default: word.unicodeScalars.append(scalar)
            }
        }
        return word
    }

    /// Returns the text from which `escaped` has made a word.
    static func unescaped(_ word: String) -> String {
        var text = ""
        var isEscaped = false
        for scalar in word.unicodeScalars {
            switch (isEscaped, scalar) {
            case (false, "\\"):
                isEscaped = true
                continue
            case (true, "t"): text += "\t"
            case (true, "n"): text += "\n"
            default: text.unicodeScalars.append(scalar)
            }
            isEscaped = false
        }
        return text
    }

    private static let maxShown = 200
}
