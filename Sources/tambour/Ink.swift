import Foundation
import Glibc
import TerminalKit

/// The colours of lists and messages. They appear only on a terminal, and only if the user has not
/// refused them.
struct Ink: Sendable {
    /// A use of colour. The raw value is an ANSI code (SGR), which every scheme of a terminal
    /// defines.
    enum Tone: Int {
        case strong = 1
        case faint = 2
        case failure = 31
        case notice = 33
        case name = 36
    }

    let isColored: Bool

    /// The colours of standard output.
    static let output = Ink(
        isTerminal: isatty(STDOUT_FILENO) == 1,
        ProcessInfo.processInfo.environment
    )
    static let none = Ink(isTerminal: false, [:])

    /// - Parameter environment: The variables that turn colours off, as for the screen: `NO_COLOR`
    ///   and `TERM`.
    init(isTerminal: Bool, _ environment: [String: String]) {
        isColored = isTerminal && ColorDepth.detect(environment) != .monochrome
    }

    /// Returns a text in a tone. The text must be printable.
    func callAsFunction(_ tone: Tone, _ text: String) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(tone.rawValue)m\(text)\u{1B}[m" : text
    }
}
