import Logging
import Synchronization
import Testing

@testable import TambourMessenger

@Suite("A throttle of log lines")
struct LogThrottleTests {
    @Test("lets one line a second through and counts the others")
    func throttle() {
        let throttle = LogThrottle()
        #expect(throttle.admit(nowMs: 5_000) == 0)
        for time in Int64(5_000)..<5_100 { #expect(throttle.admit(nowMs: time) == nil) }
        #expect(throttle.admit(nowMs: 6_000) == 100)
        #expect(throttle.admit(nowMs: 6_001) == nil)
        // A clock that is set back must not silence the log.
        #expect(throttle.admit(nowMs: 1_000) == 1)
        #expect(throttle.admit(nowMs: 2_000) == 0)
    }

    @Test("of lines that peers cause writes one in a while, which says how many there were")
    func throttledLog() {
        let lines = Lines()
        let clock = ManualClock()
        let log = ThrottledLog(Logger(label: "test") { _ in lines }, nowMs: { clock.now })
        for number in 0..<50 { log.error("too long", metadata: ["number": "\(number)"]) }
        clock.advance(ms: 1_000)
        log.error("too long", metadata: ["number": "last"])
        #expect(lines.all.map { $0["number"] } == ["0", "last"])
        #expect(lines.all.map { $0["suppressed"] } == ["0", "49"])
    }

    private final class Lines: LogHandler, Sendable {
        private let lines = Mutex<[Logger.Metadata]>([])

        var all: [Logger.Metadata] { lines.withLock { $0 } }
        var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }
        var logLevel: Logger.Level {
            get { .trace }
            set {}
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }

        func log(event: Logging.LogEvent) {
            lines.withLock { $0.append(event.metadata ?? [:]) }
        }
    }
}
