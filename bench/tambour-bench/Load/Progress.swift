import Foundation
import Synchronization

/// What is going on, for whoever waits: standard error.
enum Progress {
    private struct State {
        /// What takes no longer than an interval needs no line.
        var shownAt = monotonicNow()
        var isShowing = false
    }

    private static let isTerminal = isatty(STDERR_FILENO) == 1
    /// On a terminal a line is written over; in a file each stays, so there are few.
    private static let interval: UInt64 = isTerminal ? 100_000_000 : 5_000_000_000
    private static let state = Mutex(State())

    /// How far something has come; left out when the last one is not long ago.
    static func show(_ text: @autoclosure () -> String) {
        state.withLock { state in
            let now = monotonicNow()
            guard now - state.shownAt >= interval else { return }
            state.shownAt = now
            state.isShowing = isTerminal
            write(isTerminal ? "\r\u{1B}[K\(text())" : "\(text())\n")
        }
    }

    /// A line that stays.
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
