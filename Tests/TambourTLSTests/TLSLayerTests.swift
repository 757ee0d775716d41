#if TLS
    import Glibc
    import TambourNet
    import TambourTLS
    import TambourTesting
    import Testing

    @Suite("TLS on a lane")
    struct TLSLayerTests {
        @Test("carries bytes of every size both ways", arguments: [false, true])
        func echo(isOld: Bool) throws {
            try World.with { world in
                let peer = try world.peer(world.client(isOld: isOld))
                let version = isOld ? "TLSv1.2" : "TLSv1.3"
                #expect(try peer.handshake() == .completed(version: version, isResumed: false))
                #expect(
                    try world.outcomes.next() == .completed(version: version, isResumed: false)
                )
                for length in [1, 74, 16_383, 16_384, 16_385, 65_536, 300_000] {
                    try peer.roundTrip((0..<length).map { UInt8($0 % 251) })
                }
            }
        }

        @Test("does not care where the bytes are cut", arguments: [false, true])
        func cuts(isOld: Bool) throws {
            try World.with { world in
                let client = try world.client(isOld: isOld)
                let peer = try TLSPeer(
                    world.connect(),
                    client,
                    host: "chat.example.org",
                    isSlow: true
                )
                #expect(try peer.handshake().failure == nil)
                let text = Array("some text".utf8)
                let bytes = peer.enclosed(text)
                for byte in bytes { try peer.wire.send([byte]) }
                #expect(try peer.receive(text.count) == text)
                try peer.wire.send(Array(bytes.prefix(0)))
                for cut in 1..<20 {
                    let bytes = peer.enclosed(text)
                    try peer.wire.send(Array(bytes.prefix(cut)))
                    try peer.wire.send(Array(bytes.dropFirst(cut)))
                    #expect(try peer.receive(text.count) == text)
                }
            }
        }

        @Test("changes keys when the peer does, and ends with a peer that does it without end")
        func keyUpdates() throws {
            try World.with { world in
                let delegate = Echo()
                let events = delegate.events
                let peer = try world.peer(world.client(), to: delegate)
                #expect(try peer.handshake().failure == nil)
                #expect(try events.next() == .opened)
                for _ in 0..<8 {
                    try peer.wire.send(peer.enclosedWithNewKey([1]))
                    #expect(try peer.receive(1) == [1])
                }
                #expect(events.waiting.isEmpty)
                var flood: [UInt8] = []
                for _ in 0..<100 { flood += try peer.enclosedWithNewKey([1]) }
                try peer.wire.send(flood)
                #expect(
                    try events.next() == .closed(.layer("TLS: too many handshake messages"))
                )
            }
        }

        @Test("sends what either side has written before the handshake")
        func early() throws {
            try World.with { world in
                let delegate = Echo()
                delegate.greeting = Array("welcome".utf8)
                let peer = try world.peer(world.client(), to: delegate)
                try peer.send(Array("hello".utf8))
                _ = try peer.handshake()
                try peer.send([])
                #expect(try peer.receive(7) == Array("welcome".utf8))
            }
        }

        @Test("keeps the order of what the socket refuses", arguments: [false, true])
        func backPressure(isOld: Bool) throws {
            try World.with { world in
                let delegate = Echo()
                let events = delegate.events
                delegate.answerBytes = 8_000_000
                let peer = try world.peer(world.client(isOld: isOld), to: delegate)
                _ = try peer.handshake()
                #expect(try events.next() == .opened)
                try peer.send([1])
                let answer = try peer.receive(8_000_000)
                #expect(answer == (0..<8_000_000).map { UInt8($0 % 251) })
                #expect(try peer.receive(1).isEmpty)
                #expect(peer.hasEnded)
            }
        }

        @Test("ends with close_notify on both sides", arguments: [false, true])
        func end(isOld: Bool) throws {
            try World.with { world in
                let delegate = Echo()
                let events = delegate.events
                let peer = try world.peer(world.client(isOld: isOld), to: delegate)
                _ = try peer.handshake()
                #expect(try events.next() == .opened)
                try peer.roundTrip([1])
                try peer.end()
                #expect(try events.next() == .inputEnded)
                #expect(try peer.receive(1).isEmpty)
                #expect(peer.hasEnded)
                peer.wire.endOutput()
                #expect(try events.next() == .closed(.peerClosed))
            }
        }

        @Test("presents what came before a truncation, and drops the incomplete record")
        func truncated() throws {
            try World.with { world in
                let delegate = Echo()
                let events = delegate.events
                let peer = try world.peer(world.client(), to: delegate)
                _ = try peer.handshake()
                #expect(try events.next() == .opened)
                let (first, second) = (peer.enclosed([1, 2]), peer.enclosed([3, 4]))
                try peer.wire.send(first + second.dropLast())
                peer.wire.endOutput()
                #expect(try events.next() == .inputEnded)
                #expect(try peer.receive(3) == [1, 2])
            }
        }

        @Test("closes the connection of a changed record")
        func forged() throws {
            try World.with { world in
                let delegate = Echo()
                let events = delegate.events
                let peer = try world.peer(world.client(), to: delegate)
                _ = try peer.handshake()
                #expect(try events.next() == .opened)
                var bytes = peer.enclosed([1, 2, 3])
                bytes[bytes.count - 1] ^= 1
                try peer.wire.send(bytes)
                peer.wire.endOutput()
                guard case .closed(.layer(let reason)) = try events.next() else {
                    Issue.record("not closed by the layer")
                    return
                }
                #expect(reason.contains("bad record mac"))
            }
        }

        @Test("counts an incomplete record as partial input")
        func partial() throws {
            try World.with { world in
                let client = try world.client()
                let layer = world.tls.makeLayer()
                let other = try client.makeLayer(host: "chat.example.org") { _ in }
                var (toServer, toClient): ([UInt8], [UInt8]) = ([], [])
                other.open(into: &toServer)
                func pass(_ bytes: [UInt8], to layer: any ConnectionLayer) throws -> [UInt8] {
                    var (input, answer): ([UInt8], [UInt8]) = ([], [])
                    _ = try bytes.withUnsafeBytes { bytes throws(LayerError) in
                        try layer.received(bytes, into: &input, answering: &answer)
                    }
                    return answer
                }
                while layer.isOpening || other.isOpening {
                    toClient = try pass(toServer, to: layer)
                    toServer = try pass(toClient, to: other)
                }
                #expect(!layer.hasPartialInput)
                var record: [UInt8] = []
                [UInt8](repeating: 7, count: 100).withUnsafeBytes {
                    other.enclose($0, into: &record)
                }
                for (index, byte) in record.enumerated() {
                    _ = try pass([byte], to: layer)
                    #expect(layer.hasPartialInput == (index < record.count - 1), "byte \(index)")
                }
            }
        }

        @Test("opens a bounded number of connections in a round, after the others")
        func storm() throws {
            try World.with(openingsPerRound: 3) { world in
                let client = try world.client()
                let friend = try world.peer(client)
                #expect(try friend.handshake().failure == nil)
                #expect(try world.outcomes.next().failure == nil)
                try friend.roundTrip([1])
                let begun = Echo.Begun()
                let wires = try (0..<20).map { _ in try world.connect(to: Echo(begun: begun)) }
                // Wait until the lane has adopted all connections.
                while world.lane.queue.sync({ world.lane.connectionCount }) < 21 {}
                let peers = try world.lane.queue.sync {
                    let peers = try wires.map {
                        try TLSPeer($0, client, host: "chat.example.org")
                    }
                    try friend.send([2])
                    for round in 1...4 {
                        world.lane.serve()
                        #expect(begun.count == 3 * round)
                        // In its first round, the lane also serves the connection that is already
                        // open.
                        if round == 1 { #expect(try friend.receive(1) == [2]) }
                    }
                    return peers
                }
                for peer in peers { #expect(try peer.handshake().failure == nil) }
            }
        }
    }
#endif
