import Synchronization
import TambourProtocol

/// Admits one log line per interval, so that peers cannot flood the log. Each kind of line has its
/// own throttle.
package final class LogThrottle: Sendable {
    private struct State {
        var lastMs: Int64?
        var suppressed = 0
    }

    private let intervalMs: Int64
    private let state = Mutex(State())

    package init(intervalMs: Int64 = 1000) {
        self.intervalMs = intervalMs
    }

    /// Decides whether a line may be written now.
    ///
    /// - Parameter nowMs: the time by the wall clock, which may be set back.
    /// - Returns: nil if the line is suppressed. Otherwise the number of lines that were suppressed
    ///   since the last admitted line.
    package func admit(nowMs: Int64) -> Int? {
        state.withLock { state in
            if let last = state.lastMs, nowMs >= last, nowMs - last < intervalMs {
                state.suppressed += 1
                return nil
            }
            state.lastMs = nowMs
            defer { state.suppressed = 0 }
            return state.suppressed
        }
    }
}
