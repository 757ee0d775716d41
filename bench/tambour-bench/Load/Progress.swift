import Foundation
import Synchronization

/// Reports progress to the user on standard error.
enum Progress {
    private struct State {
        /// The time of the last line. It starts with the current time, so that work shorter than
        /// `interval` shows no line.
        var shownAt = monotonicNow()
        var isShowing = false
    }

    private static let isTerminal = isatty(STDERR_FILENO) == 1
    /// The minimum time between two lines, in nanoseconds. A terminal overwrites the previous line.
    /// A file keeps all lines, so a file gets fewer lines.
    private static let interval: UInt64 = isTerminal ? 100_000_000 : 5_000_000_000
    private static let state = Mutex(State())

    /// Shows progress; does nothing if the last line was shown recently.
    static func show(_ text: @autoclosure () -> String) {
        state.withLock { state in
            let now = monotonicNow()
            guard now - state.shownAt >= interval else { return }
            state.shownAt = now
            state.isShowing = isTerminal
            write(isTerminal ? "\r\u{1B}[K\(text())" : "\(text())\n")
        }
    }

    /// Writes a permanent line.
    static func note(_ text: String) {
        state.withLock { state in
            write(state.isShowing ? "\r\u{1B}[K\(text)\n" : "\(text)\n")
            state.isShowing = false
        }
    }

    private static func write(_ text: String) {
        FileHandle.standardError.write(Data(text.utf8))
    }
}
