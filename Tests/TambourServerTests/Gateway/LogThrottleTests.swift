import Testing

@testable import TambourServer

@Suite("A throttle of log lines")
struct LogThrottleTests {
    @Test("lets one line a second through and counts the others")
    func throttle() {
        let throttle = LogThrottle()
        #expect(throttle.admit(nowMs: 5_000) == 0)
        for time in Int64(5_000)..<5_100 { #expect(throttle.admit(nowMs: time) == nil) }
        #expect(throttle.admit(nowMs: 6_000) == 100)
        #expect(throttle.admit(nowMs: 6_001) == nil)
        // A clock that was set back does not silence the log.
        #expect(throttle.admit(nowMs: 1_000) == 1)
        #expect(throttle.admit(nowMs: 2_000) == 0)
    }
}
