import Dispatch
import Glibc
import TambourQueues
import TambourTesting
import Testing

@testable import TambourNet

@Suite("a lane")
struct LaneTests {
    @Test("runs timers in the order they fall due, and none that was cancelled")
    func timers() throws {
        try withLane { lane in
            let fired = Arrivals<String>()
            lane.queue.sync {
                _ = lane.schedule(after: .milliseconds(12)) { fired.add("third") }
                let cancelled = lane.schedule(after: .milliseconds(4)) { fired.add("cancelled") }
                _ = lane.schedule(after: .milliseconds(8)) { fired.add("second") }
                _ = lane.schedule(after: .zero) {
                    fired.add("first")
                    lane.cancel(cancelled)
                }
            }
            let order = try [fired.next(), fired.next(), fired.next()]
            #expect(order == ["first", "second", "third"])
        }
    }

    @Test("never runs a timer early, by its own clock")
    func timersAreNotEarly() throws {
        let lane = Lane(index: 0, label: "ticks", timerTick: .milliseconds(7))
        lane.start()
        defer { lane.stop() }
        let late = Arrivals<Int64>()
        lane.queue.sync {
            for delay in Int64(0)..<20 {
                let start = lane.now
                _ = lane.schedule(after: .milliseconds(delay)) {
                    late.add(lane.now - start - delay)
                }
            }
        }
        for _ in 0..<20 {
            let margin = try late.next()
            #expect(margin >= 0)
        }
    }

    @Test("runs a timer scheduled by a timer in another round")
    func timerFromTimer() throws {
        try withLane { lane in
            let times = Arrivals<Int64>()
            lane.queue.sync {
                _ = lane.schedule(after: .zero) {
                    times.add(lane.now)
                    _ = lane.schedule(after: .zero) { times.add(lane.now) }
                }
            }
            let (first, second) = try (times.next(), times.next())
            #expect(first < second)
        }
    }

    @Test("sends what was written outside of a round")
    func writesOutsideRounds() throws {
        try withLane { lane in
            let script = Script()
            let (held, opened) = (script.held, script.opened)
            let peer = try lane.adoptPair(script)
            _ = try opened.next()
            lane.queue.sync {
                held.connection?.write([1, 2])
                #expect(held.connection?.pendingOutboundBytes == 2)
                held.connection?.write([3])
            }
            #expect(try peer.receive(3) == [1, 2, 3])
        }
    }

    @Test("has one time for a whole round")
    func time() throws {
        try withLane { lane in
            lane.queue.sync {
                lane.round {
                    let before = lane.now
                    while lane.queue.nowMs == before {}
                    #expect(lane.now == before)
                }
                #expect(lane.now >= lane.queue.nowMs - 1)
            }
        }
    }

    @Test("tells every connection when it stops, and takes no others")
    func stop() throws {
        let lane = Lane(index: 3, label: "stopping")
        lane.start()
        let closed = Arrivals<CloseReason>()
        var peers = try (0..<10).map { _ in try lane.adoptPair(Script(closed: closed)) }
        let stopped = Arrivals<Int>()
        lane.stop { [index = lane.index] in stopped.add(index) }
        #expect(try stopped.next() == 3)
        #expect(closed.waiting == Array(repeating: .laneStopped, count: 10))
        peers.append(try lane.adoptPair(Script(closed: closed)))
        for peer in peers { #expect(try peer.receiveAll().isEmpty) }
        // The eleventh connection never opened, so its delegate is not told of an end.
        lane.queue.sync {}
        #expect(closed.waiting == Array(repeating: .laneStopped, count: 10))
    }

    @Test("closes a descriptor that cannot be watched, and its delegate hears nothing")
    func unwatchable() throws {
        // A lock lasts until every descriptor of the same open file description is closed.
        var template = Array("/tmp/tambour-lane-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        try #require(file >= 0)
        defer { unlink(template) }
        // A child process of another test must not inherit the lock.
        try #require(fcntl(file, F_SETFD, FD_CLOEXEC) == 0)
        try #require(flock(file, LOCK_EX | LOCK_NB) == 0)
        try withLane { lane in
            let script = Script()
            let (opened, closed) = (script.opened, script.closed)
            lane.adopt(fileDescriptor: file, peer: "file", delegate: script)
            // The first block lets the socket arrive; the second runs after the round that adopts
            // it.
            lane.queue.sync {}
            lane.queue.sync { #expect(lane.connectionCount == 0) }
            #expect(opened.waiting.isEmpty)
            #expect(closed.waiting.isEmpty)
            let again = open(template, O_RDONLY | O_CLOEXEC)
            defer { Glibc.close(again) }
            #expect(flock(again, LOCK_EX | LOCK_NB) == 0)
        }
    }

    @Test("is released once it has stopped")
    func release() throws {
        weak var lane: Lane?
        let stopped = Arrivals<Bool>()
        do {
            let strong = Lane(index: 0, label: "released")
            strong.start()
            lane = strong
            strong.queue.sync { _ = strong.schedule(after: .seconds(1000)) { _ = strong.index } }
            strong.stop { stopped.add(true) }
        }
        _ = try stopped.next()
        // The cancel handlers still have to run on the queue.
        for _ in 0..<10_000 {
            guard let queue = lane?.queue else { break }
            queue.sync {}
            sched_yield()
        }
        #expect(lane == nil)
    }
}
