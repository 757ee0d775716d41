import Dispatch
import Synchronization
import TambourQueues
import TambourTesting
import Testing

@testable import TambourNet

/// A test sends all bytes while it holds the lane. So the ready connections and their order do not
/// depend on the machine.
@Suite("a turn")
struct TurnTests {
    /// Returns a script that handles one frame per turn and logs `name` for each frame.
    ///
    /// - Parameter onTurn: Called for each handled frame, before its turn ends.
    private func slowScript(
        _ name: String,
        _ log: Log,
        isLowPriority: Bool = false,
        onTurn: @escaping @Sendable () -> Void = {}
    ) -> Script {
        let script = Script()
        script.onOpened = { $0.isLowPriority = isLowPriority }
        script.onReceived = { connection, bytes in
            var used = 0
            _ = frames(in: bytes) { payload in
                guard used == 0 else { return }
                used = payload.count + 4
                connection.charge(used)
                log.add(name)
                onTurn()
            }
            if used > 0 { connection.endTurn() }
            return used
        }
        script.onInputEnded = {
            log.add("\(name) ended")
            $0.close(.peerClosed)
        }
        return script
    }

    private func quickScript(_ name: String, _ log: Log) -> Script {
        let script = Script()
        script.onReceived = { connection, bytes in
            frames(in: bytes) {
                log.add(name)
                connection.write(frame(Array($0)))
            }
        }
        return script
    }

    /// The handled frames, in order.
    private final class Log: Sendable {
        private let names = Mutex<[String]>([])

        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
        func count(of name: String) -> Int { all.count { $0 == name } }
    }

    private func waitForOpening(of scripts: [Arrivals<UInt64>]) throws {
        for opened in scripts { _ = try opened.next() }
    }

    @Test("of one connection keeps another waiting for one frame", arguments: [false, true])
    func oneBurst(isLowPriority: Bool) throws {
        try withLane { lane in
            let log = Log()
            let busy = slowScript("busy", log, isLowPriority: isLowPriority)
            let other = quickScript("other", log)
            let opened = [busy.opened, other.opened]
            let closed = busy.closed
            let busyPeer = try lane.adoptPair(busy)
            let otherPeer = try lane.adoptPair(other)
            try waitForOpening(of: opened)
            try lane.queue.sync {
                try busyPeer.send((0..<200).flatMap { _ in frame([1]) })
                try otherPeer.send(frame([2]))
            }
            #expect(try otherPeer.receive(5) == frame([2]))
            // The busy connection gets at most one turn before the other connection: the turn in
            // the round that reads its bytes.
            let before = try #require(log.all.firstIndex(of: "other"))
            #expect(before <= 1)
            busyPeer.endOutput()
            #expect(try closed.next() == .peerClosed)
            // No frame was lost, and the end came last.
            #expect(log.count(of: "busy") == 200)
            #expect(log.all.last == "busy ended")
        }
    }

    @Test("comes between two turns of a connection with a backlog")
    func duringBacklog() throws {
        try withLane { lane in
            let log = Log()
            let other = quickScript("other", log)
            let busy = Script()
            let opened = [busy.opened, other.opened]
            let otherPeer = try lane.adoptPair(other)
            // The other peer sends while the lane works off the busy connection's backlog.
            busy.onReceived = { connection, bytes in
                var used = 0
                _ = frames(in: bytes) { payload in
                    guard used == 0 else { return }
                    used = payload.count + 4
                    log.add("busy")
                    if payload.first == 7 { try? otherPeer.send(frame([3])) }
                }
                if used > 0 { connection.endTurn() }
                return used
            }
            let busyPeer = try lane.adoptPair(busy)
            try waitForOpening(of: opened)
            try busyPeer.send((0..<300).flatMap { frame([$0 == 100 ? 7 : 1]) })
            #expect(try otherPeer.receive(5) == frame([3]))
            let position = try #require(log.all.firstIndex(of: "other"))
            // The 101st frame triggered the send; the lane serves the other connection before the
            // 103rd.
            #expect((101...102).contains(position))
        }
    }

    @Test("of many connections of low priority keeps another waiting for the work of one round")
    func manyLowPriority() throws {
        let lane = Lane(
            index: 0,
            label: "test lane",
            lowPriority: .init(readBytes: 1024, workPerRound: 50),
            poisonAfterCallback: true
        )
        lane.start()
        defer { lane.stop() }
        let log = Log()
        let other = quickScript("other", log)
        var opened = [other.opened]
        let otherPeer = try lane.adoptPair(other)
        var closed: [Arrivals<CloseReason>] = []
        var crowdPeers: [Peer] = []
        for _ in 0..<40 {
            let script = slowScript("crowd", log, isLowPriority: true) {
                // The other frame arrives while the whole crowd waits for its turn.
                guard log.count(of: "crowd") == 60 else { return }
                do { try otherPeer.send(frame([2])) } catch { Issue.record(error) }
            }
            opened.append(script.opened)
            closed.append(script.closed)
            crowdPeers.append(try lane.adoptPair(script))
        }
        try waitForOpening(of: opened)
        try lane.queue.sync {
            for peer in crowdPeers {
                try peer.send((0..<50).flatMap { _ in frame([1]) })
            }
        }
        #expect(try otherPeer.receive(5) == frame([2]))
        // A round handles ten frames of five bytes.
        let position = try #require(log.all.firstIndex(of: "other"))
        #expect((60...70).contains(position))
        for peer in crowdPeers { peer.endOutput() }
        for arrivals in closed { #expect(try arrivals.next() == .peerClosed) }
        #expect(log.count(of: "crowd") == 40 * 50)
    }

    @Test("of low priority reads no more than its bound")
    func readBound() throws {
        let lane = Lane(
            index: 0,
            label: "test lane",
            lowPriority: .init(readBytes: 100, workPerRound: 1),
            poisonAfterCallback: true
        )
        lane.start()
        defer { lane.stop() }
        let shown = Arrivals<Int>()
        let script = Script()
        script.onOpened = { $0.isLowPriority = true }
        script.onReceived = { _, bytes in
            shown.add(bytes.count)
            return bytes.count
        }
        let opened = script.opened
        let peer = try lane.adoptPair(script)
        _ = try opened.next()
        try lane.queue.sync { try peer.send(Array(repeating: 0, count: 250)) }
        #expect(try [shown.next(), shown.next(), shown.next()] == [100, 100, 50])
    }

    @Test("that never ends its work keeps neither timers nor posted blocks waiting")
    func timers() throws {
        try withLane { lane in
            let log = Log()
            let busy = Script()
            var turns = 0
            busy.onReceived = { connection, bytes in
                turns += 1
                if turns == 10 {
                    lane.queue.async { log.add("posted") }
                    _ = lane.schedule(after: .zero) { log.add("timer") }
                }
                // Consume nothing, turn after turn, until both connections have had a turn.
                if log.all.count == 2 { return bytes.count }
                connection.endTurn()
                return 0
            }
            let closed = busy.closed
            let peer = try lane.adoptPair(busy)
            try peer.send([1])
            peer.endOutput()
            #expect(try closed.next() == .peerClosed)
            #expect(log.all == ["posted", "timer"])
        }
    }

    @Test("comes between timers that fall due together")
    func manyTimers() throws {
        try withLane { lane in
            let log = Log()
            let fired = Arrivals<Void>()
            lane.queue.sync {
                for number in 0..<500 {
                    _ = lane.schedule(after: .zero) {
                        if number == 0 { lane.queue.async { log.add("posted") } }
                        log.add("timer")
                        if number == 499 { fired.add(()) }
                    }
                }
            }
            try fired.next()
            lane.queue.sync {}
            #expect(log.count(of: "timer") == 500)
            let position = try #require(log.all.firstIndex(of: "posted"))
            #expect(position <= 64)
        }
    }

    @Test("of many connections of low priority that resume together is bounded like any other")
    func manyResumed() throws {
        let lane = Lane(
            index: 0,
            label: "test lane",
            lowPriority: .init(readBytes: 1024, workPerRound: 50),
            poisonAfterCallback: true
        )
        lane.start()
        defer { lane.stop() }
        let log = Log()
        let other = quickScript("other", log)
        let otherOpened = other.opened
        let otherPeer = try lane.adoptPair(other)
        _ = try otherOpened.next()
        var held: [Held] = []
        var closed: [Arrivals<CloseReason>] = []
        var peers: [Peer] = []
        for _ in 0..<40 {
            let script = Script()
            let paused = Arrivals<Void>()
            var isPaused = true
            script.onOpened = { $0.isLowPriority = true }
            script.onReceived = { connection, bytes in
                if isPaused {
                    isPaused = false
                    connection.pauseReading()
                    paused.add(())
                    return 0
                }
                connection.charge(bytes.count)
                log.add("crowd")
                return bytes.count
            }
            held.append(script.held)
            closed.append(script.closed)
            peers.append(try lane.adoptPair(script))
            try peers.last?.send(frame([1]))
            try paused.next()
        }
        let connections = held
        try lane.queue.sync {
            for each in connections { each.connection?.resumeReading() }
            try otherPeer.send(frame([2]))
        }
        #expect(try otherPeer.receive(5) == frame([2]))
        // A round handles ten frames of five bytes.
        let position = try #require(log.all.firstIndex(of: "other"))
        #expect(position <= 10)
        for peer in peers { peer.endOutput() }
        for arrivals in closed { #expect(try arrivals.next() == .peerClosed) }
        #expect(log.count(of: "crowd") == 40)
    }

    @Test("waits for the end of a pause")
    func pause() throws {
        try withLane { lane in
            let log = Log()
            let script = Script()
            script.onReceived = { connection, bytes in
                var used = 0
                _ = frames(in: bytes) { payload in
                    guard used == 0 else { return }
                    used = payload.count + 4
                    log.add("\(payload[0])")
                }
                connection.endTurn()
                if log.all == ["0"] { connection.pauseReading() }
                return used
            }
            let (held, opened, closed) = (script.held, script.opened, script.closed)
            let other = try lane.adoptPair(echoScript())
            let peer = try lane.adoptPair(script)
            _ = try opened.next()
            try lane.queue.sync { try peer.send((0..<5).flatMap { frame([$0]) }) }
            peer.endOutput()
            try other.roundTrip([0])
            try other.roundTrip([0])
            #expect(log.all == ["0"])
            lane.queue.sync { held.connection?.resumeReading() }
            #expect(try closed.next() == .peerClosed)
            #expect(log.all == ["0", "1", "2", "3", "4"])
        }
    }
}
