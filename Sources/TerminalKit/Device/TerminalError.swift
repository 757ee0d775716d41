/// The reason why an operation on a terminal failed.
package enum TerminalError: Error, Equatable, CustomStringConvertible {
    /// Neither `/dev/tty` nor standard input and output is a terminal.
    case notATerminal
    /// `TERM=dumb`: the terminal cannot move its cursor.
    case dumb
    /// The device does not control the terminal: it was not started, or another program uses the
    /// terminal.
    case notOwned
    /// A system call failed with this `errno`.
    case system(call: String, code: Int32)

    package var description: String {
        switch self {
        case .notATerminal: "not a terminal"
        case .dumb: "this terminal cannot move its cursor (TERM=dumb)"
        case .notOwned: "the terminal is not ours now"
        case .system(let call, let code): "\(call): error \(code)"
        }
    }
}
