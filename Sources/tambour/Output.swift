import Foundation
import Glibc
import TambourClient
import TambourProtocol

/// Writes a line to standard output without buffering, because a program may read the output.
///
/// - Throws: `Failure` when the line cannot be written, for example to a full disk.
func say(_ text: String) throws {
    let reason = write(text + "\n", to: STDOUT_FILENO)
    if let reason { throw Failure("standard output: \(reason)") }
}

/// Writes a line for the user to standard error. A program that reads the standard output does not
/// see it.
func remark(_ text: String) {
    _ = write(text + "\n", to: STDERR_FILENO)
}

/// Writes a whole text.
///
/// - Returns: The reason why writing failed; nil on success.
private func write(_ text: String, to file: Int32) -> String? {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        if count > 0 {
            rest = rest.dropFirst(count)
        } else if errno == EAGAIN {
            var waiting = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
            _ = poll(&waiting, 1, -1)
        } else if errno != EINTR {
            return String(cString: strerror(errno))
        }
    }
    return nil
}

/// Asks the user a question on the terminal and returns the answer; nil at the end of the input.
func askPerson(_ question: String, isSecret: Bool = false) -> String? {
    _ = write(printable(question), to: STDERR_FILENO)
    guard isSecret, isatty(STDIN_FILENO) == 1 else { return readLine() }
    var before = termios()
    tcgetattr(STDIN_FILENO, &before)
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSANOW, &silent)
    defer {
        tcsetattr(STDIN_FILENO, TCSANOW, &before)
        remark("")
    }
    return readLine()
}

/// Reads the lines of standard input as they arrive. Does not use `readLine`, because `readLine`
/// replaces invalid UTF-8.
struct InputLines {
    /// The maximum length of a line in bytes. Of a longer line, `next` returns only the beginning
    /// and skips the rest. The returned beginning also exceeds this limit.
    private static let longest = 1 << 20

    private var held: ArraySlice<UInt8> = []
    private var isAtEnd = false
    private var isPassingOver = false

    /// Returns the next line without its line break; nil at the end of the input.
    mutating func next() -> ArraySlice<UInt8>? {
        while true {
            if let end = held.firstIndex(of: UInt8(ascii: "\n")) {
                let line = held[..<end]
                held = held[(end + 1)...]
                if isPassingOver {
                    isPassingOver = false
                    continue
                }
                return line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            }
            if isPassingOver { held = [] }
            if isAtEnd || held.count > Self.longest {
                isPassingOver = !isAtEnd
                defer { held = [] }
                return held.isEmpty ? nil : held
            }
            held += readMore()
        }
    }

    private mutating func readMore() -> [UInt8] {
        let more = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            var read = 0
            repeat {
                read = Glibc.read(STDIN_FILENO, buffer.baseAddress, buffer.count)
            } while read < 0 && errno == EINTR
            count = max(0, read)
        }
        isAtEnd = more.isEmpty
        return more
    }
}

/// Returns text from other users in a form that is safe to print within a line. The result cannot
/// control the terminal, and it contains no line break and no tab.
func printable(_ text: String) -> String {
    var shown = String.UnicodeScalarView()
    for character in text {
        if character.isNewline {
            shown.append("␤")
        } else {
            shown.append(contentsOf: character.unicodeScalars.lazy.map(visible))
        }
    }
    return String(shown)
}

/// Returns text from other users in a form that is safe to print. Keeps its line breaks. Every line
/// after the first begins with a mark, so that it cannot imitate output of the program.
func printableLines(_ text: String) -> String {
    text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        .map { printable(String($0)) }
        .joined(separator: "\n    │ ")
}

private func visible(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    if scalar == "\t" { return " " }
    return isHarmful(scalar) ? "\u{FFFD}" : scalar
}

/// Returns whether the scalar could control a terminal, could be invisible, or could reorder the
/// text after it. The joiner of emoji counts as harmless.
private func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    case .format: scalar != "\u{200D}"
    default: false
    }
}

/// Returns JSON as one line for programs. The line is also safe to print on a terminal.
func jsonLine(_ json: Data) -> String {
    var line = ""
    // Outside of strings, JSON contains only ASCII. Harmful scalars therefore occur only in
    // strings, where they can be escaped.
    for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
        if isHarmful(scalar) {
            for unit in UTF16.encode(scalar) ?? UTF16.EncodedScalar() {
                let digits = String(unit, radix: 16)
                line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        } else {
            line.unicodeScalars.append(scalar)
        }
    }
    return line
}

/// Returns a time in this device's time zone, by default as `2026-11-23 14:05`.
func clock(_ ms: Int64, _ format: String = "%Y-%m-%d %H:%M") -> String {
    var seconds = time_t(clamping: ms / 1000)
    var parts = tm()
    localtime_r(&seconds, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let count = strftime(&text, text.count, format, &parts)
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
