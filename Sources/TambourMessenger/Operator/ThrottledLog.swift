package import Logging

/// A log for one kind of line that peers can cause as often as they want. Writes at most one line
/// per interval. The line contains the number of lines that were suppressed since the last one.
package struct ThrottledLog: Sendable {
    private let logger: Logger
    private let throttle = LogThrottle()
    private let nowMs: @Sendable () -> Int64

    /// - Parameter nowMs: returns the time by the wall clock, which may be set back.
    package init(_ logger: Logger, nowMs: @escaping @Sendable () -> Int64) {
        self.logger = logger
        self.nowMs = nowMs
    }

    package func error(_ text: Logger.Message, metadata: Logger.Metadata = [:]) {
        log(.error, text, metadata)
    }

    package func warning(_ text: Logger.Message) {
        log(.warning, text, [:])
    }

    package func notice(_ text: Logger.Message, metadata: Logger.Metadata) {
        log(.notice, text, metadata)
    }

    private func log(_ level: Logger.Level, _ text: Logger.Message, _ metadata: Logger.Metadata) {
        guard let suppressed = throttle.admit(nowMs: nowMs()) else { return }
        let metadata = metadata.merging(["suppressed": "\(suppressed)"]) { $1 }
        logger.log(level: level, text, metadata: metadata)
    }
}
