import TambourClient
import Testing

/// Read marks and drafts: only the newest counts.
@Suite("A newer task takes the place of an older one of its key")
struct TaskCoalescingTests {
    private var desk = TaskDesk()

    @Test("a queued one is replaced, in its place and before what depended on it")
    mutating func queued() throws {
        let first = try desk.add(lane: "a")
        let old = try desk.add(lane: "a", key: "read")
        let next = try desk.add(lane: "a")
        let dependent = try desk.add([old: .needs])
        let elsewhere = try desk.add(lane: "b", key: "read")
        let new = try desk.add(lane: "a", key: "read")
        #expect(desk.state(old) == nil)
        #expect(desk.scheduler.tasks(inLane: "a").map(\.id) == [first, new, next])
        #expect(desk.scheduler.needed(for: dependent) == [new])
        #expect(desk.state(elsewhere) == .ready)
        for id in [first, new] { try desk.complete(desk.start(id)) }
        #expect(desk.state(dependent) == .ready)
    }

    @Test("what only the older one needed leaves with it")
    mutating func inputs() throws {
        let done = try desk.add()
        let kept = try desk.add()
        let old = try desk.add(lane: "b", key: "draft", [done: .needs, kept: .needs])
        try desk.complete(desk.start(done))
        let new = try desk.add(lane: "b", key: "draft")
        #expect(desk.state(old) == nil && desk.state(done) == nil)
        #expect(desk.state(new) == .ready && desk.state(kept) == .ready)
    }

    @Test("what was waiting for its next attempt is replaced too, and the newcomer need not wait")
    mutating func waiting() throws {
        let old = try desk.add(lane: "a", key: "read")
        try desk.fail(desk.start(old), .later, retryAfterMs: 60_000)
        let new = try desk.add(lane: "a", key: "read")
        #expect(desk.startable() == [new])
    }

    @Test("what is running ends; if it fails it is not tried again")
    mutating func running() throws {
        let old = try desk.add(lane: "a", key: "read")
        let run = try desk.start(old)
        let new = try desk.add(lane: "a", key: "read")
        #expect(desk.startable().isEmpty)
        try desk.fail(run, .later)
        #expect(desk.scheduler.tasks.map(\.id) == [new])
        #expect(desk.startable() == [new])
    }

    @Test("what is running and needed by others is tried again, before the newer one")
    mutating func runningAndNeeded() throws {
        let old = try desk.add(lane: "a", key: "read")
        let dependent = try desk.add([old: .needs])
        let run = try desk.start(old)
        let new = try desk.add(lane: "a", key: "read")
        try desk.fail(run, .networkLost)
        #expect(desk.state(old) == .waiting)
        desk.pass(ms: 1000)
        #expect(desk.startable() == [old])
        try desk.complete(desk.start(old))
        #expect(desk.startable() == [dependent, new])
    }

    @Test("what failed is dropped, lest a retry brings back the older value")
    mutating func failed() throws {
        let old = try desk.add(lane: "a", key: "read")
        try desk.fail(desk.start(old), .never)
        let new = try desk.add(lane: "a", key: "read")
        #expect(desk.scheduler.tasks.map(\.id) == [new])
    }

    @Test("a key without a lane, twice in one call, or behind what it needs is refused")
    mutating func refusals() throws {
        #expect(throws: TaskError.coalescingWithoutLane(TaskID(1))) { try desk.add(key: "read") }
        let twins = [TaskID(90), TaskID(91)].map { id in
            NewTask(
                id: id,
                kind: "k",
                codecVersion: 1,
                payload: [],
                opKey: "\(id)",
                lane: "a",
                coalescingKey: "read"
            )
        }
        #expect(throws: TaskError.duplicateCoalescingKey(TaskID(91))) {
            try desk.scheduler.insert(twins, nowMs: 0)
        }
        try desk.add(lane: "a", key: "read")
        let behind = try desk.add(lane: "a")
        let before = desk.scheduler
        #expect(throws: TaskError.self) { try desk.add(lane: "a", key: "read", [behind: .needs]) }
        #expect(desk.scheduler == before)
    }
}
