import Dispatch
import Glibc
import Synchronization
import TambourTesting
import Testing

@testable import TambourNet
@testable import TambourQueues

@Suite("a connection")
struct ConnectionTests {
    @Test("carries frames both ways over TCP, on two lanes")
    func echo() throws {
        try withLane { first in
            try withLane { second in
                let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
                defer { listener.stop() }
                let turn = Atomic<Int>(0)
                let peers = Arrivals<String>()
                listener.start { socket, peer in
                    let lane = turn.add(1, ordering: .relaxed).newValue % 2 == 0 ? first : second
                    lane.adopt(fileDescriptor: socket, peer: peer, delegate: echoScript())
                    peers.add(peer)
                }
                for length in [0, 1, 100, 70_000, 1_000_000] {
                    let peer = try Peer(to: listener.boundAddress)
                    try peer.roundTrip([UInt8](repeating: UInt8(length % 251), count: length))
                    #expect(try peers.next().hasPrefix("127.0.0.1:"))
                }
                #expect(listener.acceptedCount == 5)
            }
        }
    }

    @Test("does not care where the bytes are cut")
    func cuts() throws {
        let stream = frame([]) + frame([1]) + frame(Array(0..<40)) + frame([9, 9, 9])
        try withLane { lane in
            for cut in 1..<stream.count {
                let (script, seen) = collector()
                let peer = try lane.adoptPair(script)
                try peer.send(Array(stream[..<cut]))
                var presented = 0
                while presented < cut { presented = try seen.rounds.next().presented }
                try peer.send(Array(stream[cut...]))
                peer.endOutput()
                for expected in [[], [1], Array(0..<40), [9, 9, 9]] as [[UInt8]] {
                    #expect(try seen.payloads.next() == expected, "cut at \(cut)")
                }
                #expect(try peer.receiveAll().isEmpty)
            }
        }
    }

    @Test("puts a frame together that comes one byte at a time")
    func oneByteAtATime() throws {
        let payload = [UInt8](0..<100)
        try withLane { lane in
            let (script, seen) = collector()
            let peer = try lane.adoptPair(script)
            for (index, byte) in frame(payload).enumerated() {
                try peer.send([byte])
                let round = try seen.rounds.next()
                #expect(round.presented == index + 1)
                #expect(round.hasPartialInput == (index < 103))
            }
            #expect(try seen.payloads.next() == payload)
        }
    }

    @Test("puts frames together that are larger than the lane's buffer", arguments: [false, true])
    func largeFrames(poisons: Bool) throws {
        let lane = Lane(index: 0, label: "large", poisonAfterCallback: poisons)
        lane.start()
        defer { lane.stop() }
        let (script, seen) = collector()
        let peer = try lane.adoptPair(script)
        for length in [30_000, 33_000, 65_532, 65_533, 300_000, 1_048_576, 5] {
            let payload = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
            let bytes = frame(payload) + frame([7])
            let cut = bytes.count - 3
            try peer.send(Array(bytes[..<cut]))
            try peer.send(Array(bytes[cut...]))
            let whole = try seen.payloads.next() == payload
            #expect(whole, "length \(length)")
            #expect(try seen.payloads.next() == [7])
        }
    }

    @Test("overwrites what it showed to its delegate")
    func poison() throws {
        try withLane { lane in
            let script = Script()
            let seen = Arrivals<[UInt8]>()
            var shown: UnsafeRawBufferPointer?
            script.onReceived = { _, bytes in
                shown = bytes
                return bytes.count
            }
            script.onRoundEnded = { _ in seen.add(shown.map { Array($0) } ?? []) }
            let peer = try lane.adoptPair(script)
            try peer.send([1, 2, 3])
            #expect(try seen.next() == [0xDB, 0xDB, 0xDB])
        }
    }

    @Test("a thousand of them are served side by side")
    func thousand() throws {
        try withLane { lane in
            let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
            defer { listener.stop() }
            listener.start { socket, peer in
                lane.adopt(fileDescriptor: socket, peer: peer, delegate: echoScript())
            }
            let peers = try (0..<1000).map { _ in try Peer(to: listener.boundAddress) }
            for round in 0..<3 {
                let payloads = peers.indices.map { Array("\(round) \($0)".utf8) }
                for (peer, payload) in zip(peers, payloads) { try peer.send(frame(payload)) }
                for (peer, payload) in zip(peers, payloads) {
                    #expect(try peer.receive(payload.count + 4) == frame(payload))
                }
            }
            #expect(lane.queue.sync { lane.connectionCount } == 1000)
        }
    }

    @Test("owns no buffer while idle and is small")
    func idle() throws {
        try withLane { lane in
            let script = echoScript()
            let (held, opened) = (script.held, script.opened)
            let peer = try lane.adoptPair(script)
            _ = try opened.next()
            try peer.roundTrip(Array(repeating: 1, count: 200_000))
            try lane.queue.sync {
                let connection = try #require(held.connection)
                #expect(connection.input == nil && connection.backlog == nil)
                #expect(connection.pendingOutboundBytes == 0)
                // glibc's headers do not expose malloc_usable_size to Swift.
                typealias Measure = @convention(c) (UnsafeMutableRawPointer) -> Int
                let symbol = try #require(dlsym(nil, "malloc_usable_size"))
                let measure = unsafeBitCast(symbol, to: Measure.self)
                #expect(measure(Unmanaged.passUnretained(connection).toOpaque()) <= 160)
            }
        }
    }

    @Test("of a slow reader is bounded, and the others are served meanwhile")
    func slowReader() throws {
        try withLane { lane in
            let limit = 300_000
            let slow = Script()
            let (closed, held, opened) = (slow.closed, slow.held, slow.opened)
            let slowPeer = try lane.adoptPair(slow)
            let other = try lane.adoptPair(echoScript())
            _ = try opened.next()
            var rounds = 0
            while closed.waiting.isEmpty {
                rounds += 1
                try #require(rounds < 1000)
                lane.queue.sync {
                    guard let connection = held.connection else { return }
                    connection.write([UInt8](repeating: 5, count: 10_000))
                    let pending = connection.pendingOutboundBytes
                    #expect(pending <= limit + 10_000)
                    if pending > limit { connection.close(.local("slow reader")) }
                }
                try other.roundTrip([1, 2, 3])
            }
            #expect(rounds > 20)
            #expect(closed.waiting == [.local("slow reader")])
            _ = try slowPeer.receiveAll()
        }
    }

    @Test("keeps the order of what the socket refused and what came later")
    func backlogOrder() throws {
        try withLane { lane in
            let script = Script()
            let (held, opened, drained) = (script.held, script.opened, script.drained)
            let peer = try lane.adoptPair(script)
            _ = try opened.next()
            var expected: [UInt8] = []
            for step in 0..<300 {
                let length = [1, 777, 70_000, 5000][step % 4]
                let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ step &* 7) }
                expected += bytes
                lane.queue.sync { held.connection?.write(bytes) }
            }
            let received = try peer.receive(expected.count)
            let same = received == expected
            #expect(same)
            #expect(try drained.next() == 0)
            lane.queue.sync {
                #expect(held.connection?.backlog == nil)
                held.connection?.write([8])
            }
            #expect(try peer.receive(1) == [8])
        }
    }

    @Test("sends what writers wrote in turns, each its own")
    func interleaved() throws {
        try withLane { lane in
            var peers: [(Peer, Held)] = []
            for _ in 0..<5 {
                let script = Script()
                let (held, opened) = (script.held, script.opened)
                peers.append((try lane.adoptPair(script), held))
                _ = try opened.next()
            }
            let held = peers.map(\.1)
            lane.queue.sync {
                lane.round {
                    for step in 0..<3000 {
                        let writer = step % held.count
                        let text = [UInt8](repeating: UInt8(step % 256), count: 100 + writer)
                        held[writer].connection?.write(text)
                    }
                }
            }
            for (writer, peer) in peers.map(\.0).enumerated() {
                let expected = stride(from: writer, to: 3000, by: 5).flatMap {
                    [UInt8](repeating: UInt8($0 % 256), count: 100 + writer)
                }
                let same = try peer.receive(expected.count) == expected
                #expect(same)
            }
        }
    }

    @Test("presents nothing while paused, then what was left, then what came")
    func pauseAndResume() throws {
        try withLane { lane in
            let script = Script()
            let payloads = Arrivals<[UInt8]>()
            script.onReceived = { connection, bytes in
                var used = 0
                // Consume one frame, then pause, so the remaining frames stay unconsumed.
                _ = frames(in: bytes) { payload in
                    if used > 0 { return }
                    used = payload.count + 4
                    payloads.add(Array(payload))
                    connection.pauseReading()
                }
                return used
            }
            let held = script.held
            let peer = try lane.adoptPair(script)
            let other = try lane.adoptPair(echoScript())
            try peer.send((0..<10).flatMap { frame([$0]) })
            #expect(try payloads.next() == [0])
            try peer.send((10..<20).flatMap { frame([$0]) })
            for expected in UInt8(1)..<20 {
                try other.roundTrip([0])
                #expect(payloads.waiting.isEmpty)
                lane.queue.sync { held.connection?.resumeReading() }
                #expect(try payloads.next() == [expected])
            }
        }
    }

    @Test("that resumes in a mailbox's round is presented after what was posted meanwhile")
    func resumeInsideDrain() throws {
        try withLane { lane in
            let seen = Arrivals<String>()
            let script = Script()
            let held = script.held
            let box = Mutex<Mailbox<Int>?>(nil)
            let mailbox = Mailbox<Int>(queue: lane.queue) { batch in
                lane.round {
                    for item in batch { seen.add("posted \(item)") }
                    guard batch == [1] else { return }
                    held.connection?.resumeReading()
                    box.withLock { $0 }?.post(2)
                }
            }
            box.withLock { $0 = mailbox }
            var isFirst = true
            script.onReceived = { connection, bytes in
                if isFirst {
                    isFirst = false
                    connection.pauseReading()
                    seen.add("paused")
                    return 0
                }
                mailbox.drainNow()
                seen.add("presented")
                return bytes.count
            }
            let peer = try lane.adoptPair(script)
            try peer.send([7])
            #expect(try seen.next() == "paused")
            mailbox.post(1)
            for expected in ["posted 1", "posted 2", "presented"] {
                #expect(try seen.next() == expected)
            }
        }
    }

    @Test("that is paused still hears of a reset")
    func resetWhilePaused() throws {
        try withLane { lane in
            let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
            defer { listener.stop() }
            let closed = Arrivals<CloseReason>()
            let opened = Arrivals<Bool>()
            listener.start { socket, peer in
                let script = Script(closed: closed)
                script.onOpened = {
                    $0.pauseReading()
                    opened.add(true)
                }
                lane.adopt(fileDescriptor: socket, peer: peer, delegate: script)
            }
            var peer: Peer? = try Peer(to: listener.boundAddress)
            _ = try opened.next()
            peer?.willReset()
            peer = nil
            #expect(try closed.next() == .reset(ECONNRESET))
        }
    }

    @Test("closed after a flush delivers everything, whatever the peer still sends")
    func closeAfterFlush() throws {
        try withLane { lane in
            let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
            defer { listener.stop() }
            let closed = Arrivals<CloseReason>()
            let length = 8 << 20
            listener.start { socket, peer in
                let script = Script(closed: closed)
                script.onReceived = { connection, bytes in
                    connection.write([UInt8](repeating: 3, count: length - 10))
                    connection.write([UInt8](repeating: 4, count: 10))
                    connection.closeAfterFlush(.local("done"), within: .seconds(20))
                    connection.write([9, 9, 9])
                    return 0
                }
                lane.adopt(fileDescriptor: socket, peer: peer, delegate: script)
            }
            let peer = try Peer(to: listener.boundAddress)
            try peer.send([1])
            let first = try peer.receive(1000)
            try peer.send([UInt8](repeating: 2, count: 100_000))
            let rest = try peer.receiveAll()
            #expect(first.count + rest.count == length)
            #expect(Array(rest.suffix(11)) == [3] + [UInt8](repeating: 4, count: 10))
            #expect(closed.waiting.isEmpty)
            peer.endOutput()
            #expect(try closed.next() == .local("done"))
        }
    }

    @Test("closed after a flush delivers everything, also when the peer has ended its side")
    func closeAfterFlushOfEndedInput() throws {
        try withLane { lane in
            let script = Script()
            let closed = script.closed
            let length = 8 << 20
            script.onReceived = { connection, bytes in
                connection.write([UInt8](repeating: 3, count: length))
                connection.closeAfterFlush(.local("done"), within: .seconds(20))
                return bytes.count
            }
            let peer = try lane.adoptPair(script)
            try peer.send([1])
            let first = try peer.receive(1000)
            peer.endOutput()
            #expect(try first.count + peer.receiveAll().count == length)
            #expect(try closed.next() == .local("done"))
        }
    }

    @Test("may be answered after the peer has ended its side, which is told once")
    func answeredAfterItsEnd() throws {
        try withLane { lane in
            let script = Script()
            let (held, closed) = (script.held, script.closed)
            let ended = Arrivals<Int>()
            script.onInputEnded = { _ in ended.add(1) }
            let peer = try lane.adoptPair(script)
            peer.endOutput()
            _ = try ended.next()
            for step: UInt8 in 0..<3 {
                lane.queue.sync { lane.round { held.connection?.write([step]) } }
                #expect(try peer.receive(1) == [step])
            }
            #expect(ended.waiting.isEmpty && closed.waiting.isEmpty)
            lane.queue.sync {
                held.connection?.closeAfterFlush(.local("answered"), within: .seconds(20))
            }
            #expect(try peer.receiveAll().isEmpty)
            #expect(try closed.next() == .local("answered"))
        }
    }

    @Test("that waits after the end of its input hears when the peer is gone for good")
    func goneAfterItsEnd() throws {
        try withLane { lane in
            let script = Script()
            let closed = script.closed
            let ended = Arrivals<Int>()
            script.onInputEnded = { _ in ended.add(1) }
            var peer: Peer? = try lane.adoptPair(script)
            peer?.endOutput()
            _ = try ended.next()
            peer = nil
            #expect(try closed.next() == .peerClosed)
            #expect(peer == nil)
        }
    }

    @Test("closed after a flush delivers what the socket refuses at the end of the round")
    func closeAfterFlushOfBacklog() throws {
        try withLane { lane in
            let script = Script()
            script.onOpened = { connection in
                var size: Int32 = 4096
                let length = socklen_t(MemoryLayout<Int32>.size)
                setsockopt(connection.descriptor, SOL_SOCKET, SO_SNDBUF, &size, length)
                for step in 0..<60 {
                    connection.write([UInt8](repeating: UInt8(step), count: 1000))
                }
                connection.closeAfterFlush(.local("done"), within: .seconds(20))
            }
            let peer = try lane.adoptPair(script)
            let expected = (0..<60).flatMap { [UInt8](repeating: UInt8($0), count: 1000) }
            let same = try peer.receiveAll() == expected
            #expect(same)
        }
    }

    @Test("survives writing to a peer that is gone")
    func brokenPipe() throws {
        try withLane { lane in
            let script = Script()
            let (held, opened, closed) = (script.held, script.opened, script.closed)
            var peer: Peer? = try lane.adoptPair(script)
            _ = try opened.next()
            lane.queue.sync {
                peer = nil
                // The block runs on this thread, which would also receive the signal.
                var (blocked, previous, pending) = (sigset_t(), sigset_t(), sigset_t())
                sigaddset(&blocked, SIGPIPE)
                pthread_sigmask(SIG_BLOCK, &blocked, &previous)
                lane.round { held.connection?.write([1]) }
                sigpending(&pending)
                #expect(sigismember(&pending, SIGPIPE) == 0)
                pthread_sigmask(SIG_SETMASK, &previous, nil)
            }
            #expect(peer == nil)
            #expect(try closed.next() == .reset(EPIPE))
        }
    }

    @Test("closed after a flush does not wait for a peer that never reads")
    func closeAfterFlushGivesUp() throws {
        try withLane { lane in
            let script = Script()
            script.onOpened = { connection in
                connection.write([UInt8](repeating: 3, count: 8 << 20))
                connection.closeAfterFlush(.local("done"), within: .milliseconds(20))
            }
            let closed = script.closed
            let peer = try lane.adoptPair(script)
            #expect(try closed.next() == .local("done"))
            #expect(try peer.receiveAll().count < 8 << 20)
        }
    }

    @Test("closed after a flush waits for a peer for as long as it reads some")
    func closeAfterFlushOfSlowReader() throws {
        try withLane { lane in
            // This time is longer than any pause of a busy machine. Otherwise the machine's pause
            // would look like a pause of the peer.
            let patience = Duration.seconds(2)
            let script = Script()
            script.onOpened = { connection in
                var size: Int32 = 4096
                let length = socklen_t(MemoryLayout<Int32>.size)
                setsockopt(connection.descriptor, SOL_SOCKET, SO_SNDBUF, &size, length)
                connection.write([UInt8](repeating: 3, count: 120_000))
                connection.closeAfterFlush(
                    .local("done"),
                    within: .seconds(60),
                    patience: patience
                )
            }
            let (opened, closed) = (script.opened, script.closed)
            let peer = try lane.adoptPair(script)
            _ = try opened.next()
            let began = ContinuousClock.now
            var count = 0
            while let part = try? peer.receive(1000), !part.isEmpty {
                count += part.count
                // 120 reads with pauses of 20 ms take longer than the patience.
                let tick = Arrivals<Void>()
                lane.queue.sync { _ = lane.schedule(after: .milliseconds(20)) { tick.add(()) } }
                try tick.next()
            }
            #expect(count == 120_000)
            #expect(ContinuousClock.now - began > patience)
            #expect(try closed.next() == .local("done"))
        }
    }

    @Test("hears of the end of the input behind what a pause left over")
    func endBehindLeftover() throws {
        try withLane { lane in
            let script = Script()
            let (held, opened, seen) = (script.held, script.opened, Arrivals<String>())
            let inputEnded = script.onInputEnded
            script.onInputEnded = { connection in
                seen.add("end")
                inputEnded(connection)
            }
            var isFirst = true
            script.onReceived = { connection, bytes in
                seen.add("\(bytes.count) bytes")
                guard isFirst else { return bytes.count }
                isFirst = false
                connection.pauseReading()
                return 1
            }
            let peer = try lane.adoptPair(script)
            _ = try opened.next()
            try peer.send([1, 2, 3])
            #expect(try seen.next() == "3 bytes")
            lane.queue.sync {
                lane.round {
                    held.connection?.resumeReading()
                    peer.endOutput()
                    // The lane serves epoll's events before it presents the leftover bytes again.
                    lane.serve()
                }
            }
            #expect(try seen.next() == "2 bytes")
            #expect(try seen.next() == "end")
        }
    }

    @Test("does not hear of an event that came before it was closed")
    func staleEvents() throws {
        try withLane { lane in
            for _ in 0..<20 {
                let (spare, other) = try Peer.pair()
                try other.send([1, 2, 3])
                let received = Arrivals<Int>()
                let reused = Arrivals<Int32>()
                let closed = Arrivals<CloseReason>()
                let all = (0..<50).map { _ in Held() }
                var peers: [Peer] = []
                var openings: [Arrivals<UInt64>] = []
                for (index, held) in all.enumerated() {
                    let script = Script(closed: closed)
                    script.onOpened = { held.connection = $0 }
                    script.onReceived = { _, bytes in
                        received.add(index)
                        // The connection that is served first closes all connections, even
                        // connections of the same batch. The kernel then reuses the numbers of the
                        // closed descriptors.
                        for other in all { other.connection?.close(.local("first")) }
                        for _ in all { reused.add(dup(spare.descriptor)) }
                        return bytes.count
                    }
                    script.onClosed = { _ in held.connection = nil }
                    openings.append(script.opened)
                    peers.append(try lane.adoptPair(script))
                }
                // The lane adopts the sockets in several rounds.
                for opened in openings { _ = try opened.next() }
                // Keep the lane busy until every peer has sent, so that one batch serves them all.
                lane.queue.sync {
                    for peer in peers { #expect(throws: Never.self) { try peer.send([1]) } }
                }
                for _ in all { #expect(try closed.next() == .local("first")) }
                #expect(received.waiting.count == 1)
                other.endOutput()
                #expect(try spare.receiveAll() == [1, 2, 3])
                for descriptor in reused.waiting { close(descriptor) }
                #expect(lane.queue.sync { lane.connectionCount } == 0)
            }
        }
    }

    @Test("is told of its end once, and never inside a call of its owner")
    func closedOnce() throws {
        try withLane { lane in
            let script = Script()
            var isInside = false
            let wasInside = Arrivals<Bool>()
            script.onReceived = { connection, bytes in
                isInside = true
                connection.write([1])
                connection.close(.local("one"))
                connection.close(.local("two"))
                connection.closeAfterFlush(.local("three"), within: .seconds(1))
                connection.write([2])
                connection.resumeReading()
                isInside = false
                return bytes.count
            }
            script.onRoundEnded = { _ in Issue.record("a closed connection had a round") }
            script.onClosed = { _ in wasInside.add(isInside) }
            let closed = script.closed
            let peer = try lane.adoptPair(script)
            try peer.send([1])
            #expect(try closed.next() == .local("one"))
            #expect(wasInside.waiting == [false])
            #expect(try peer.receiveAll().isEmpty)
            lane.queue.sync {}
            #expect(closed.waiting.isEmpty)
        }
    }

    @Test("survives a peer that resets, also while writing to it")
    func reset() throws {
        try withLane { lane in
            let listener = try Listener(address: ListenAddress("127.0.0.1:0"))
            defer { listener.stop() }
            let closed = Arrivals<CloseReason>()
            let opened = Arrivals<Held>()
            listener.start { socket, peer in
                let script = Script(closed: closed)
                let held = script.held
                lane.adopt(fileDescriptor: socket, peer: peer, delegate: script)
                opened.add(held)
            }
            for _ in 0..<20 {
                var peer: Peer? = try Peer(to: listener.boundAddress)
                let held = try opened.next()
                peer?.willReset()
                lane.queue.sync {
                    peer = nil
                    for _ in 0..<3 {
                        lane.round { held.connection?.write([UInt8](repeating: 1, count: 50_000)) }
                    }
                }
                guard case .reset = try closed.next() else {
                    Issue.record("expected a reset")
                    return
                }
            }
            #expect(closed.waiting.isEmpty)
        }
    }

    @Test("hears that the peer closed after everything it sent")
    func peerClosed() throws {
        try withLane { lane in
            let (script, seen) = collector()
            let closed = script.closed
            let peer = try lane.adoptPair(script)
            try peer.send(frame([1, 2]) + [0])
            peer.endOutput()
            #expect(try closed.next() == .peerClosed)
            #expect(try seen.payloads.next() == [1, 2])
        }
    }
}

/// The observations of a `collector`.
private struct Seen: Sendable {
    struct Round {
        let presented: Int
        let hasPartialInput: Bool
    }

    let payloads = Arrivals<[UInt8]>()
    let rounds = Arrivals<Round>()
}

/// Returns a script that collects the payloads of whole frames and, for each round, the number of
/// bytes received so far.
private func collector() -> (Script, Seen) {
    let script = Script()
    let seen = Seen()
    var consumed = 0
    var presented = 0
    script.onReceived = { _, bytes in
        presented = consumed + bytes.count
        let used = frames(in: bytes) { seen.payloads.add(Array($0)) }
        consumed += used
        return used
    }
    script.onRoundEnded = {
        seen.rounds.add(.init(presented: presented, hasPartialInput: $0.hasPartialInput))
    }
    return (script, seen)
}
