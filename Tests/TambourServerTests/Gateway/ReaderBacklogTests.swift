import TambourProtocol
import Testing

@testable import TambourGateway

@Suite("A client that is behind with reading")
struct ReaderBacklogTests {
    private func backlog() throws -> ReaderBacklog {
        ReaderBacklog(
            limits: try Limits(
                overrides: ["maxOutboundBytesToStart": 100, "stalledReaderTimeoutMs": 1_000]
            )
        )
    }

    @Test("is so from a bound on, until it has read everything")
    func hysteresis() throws {
        var backlog = try backlog()
        backlog.update(bytes: 100, nowMs: 0)
        #expect(!backlog.isBehind && backlog.deadlineMs == nil)
        backlog.update(bytes: 101, nowMs: 0)
        #expect(backlog.isBehind)
        backlog.update(bytes: 1, nowMs: 10)
        #expect(backlog.isBehind)
        backlog.update(bytes: 0, nowMs: 20)
        #expect(!backlog.isBehind && backlog.deadlineMs == nil)
    }

    @Test("has time to take something, and again from then on")
    func deadline() throws {
        var backlog = try backlog()
        backlog.update(bytes: 500, nowMs: 5)
        #expect(backlog.deadlineMs == 1_005)
        backlog.update(bytes: 500, nowMs: 700)
        #expect(backlog.deadlineMs == 1_005)
        // Additional written bytes do not extend the deadline.
        backlog.update(bytes: 600, nowMs: 800)
        #expect(backlog.deadlineMs == 1_005)
        backlog.update(bytes: 599, nowMs: 900)
        #expect(backlog.deadlineMs == 1_900)
    }
}
