import Foundation
import Glibc
import TerminalKit

/// The colours of lists and messages. They appear only on a terminal, and only if the user has not
/// turned them off.
struct Ink: Sendable {
    /// What a colour or weight is used for. The raw value is an ANSI SGR code, so the terminal's
    /// own colour scheme determines the look.
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

    /// - Parameter environment: The environment. Its variables `NO_COLOR` and `TERM` can turn
    ///   colours off, here and on the screen.
    init(isTerminal: Bool, _ environment: [String: String]) {
        isColored = isTerminal && ColorDepth.detect(environment) != .monochrome
    }

    /// Returns a text with the escape codes for a tone. The text must contain no control
    /// characters.
    func callAsFunction(_ tone: Tone, _ text: String) -> String {
        isColored && !text.isEmpty ? "\u{1B}[\(tone.rawValue)m\(text)\u{1B}[m" : text
    }
}
