import Glibc
import TambourTesting
import Testing

@testable import TambourNet
@testable import TambourQueues

/// A layer for tests. It sends a greeting, then records with a two-byte length and masked bytes. An
/// empty record ends the stream.
private final class MaskLayer: ConnectionLayer {
    static let greeting = Array("hello".utf8)
    static let longest = 20_000

    private let mask: UInt8
    private var isOpen = false
    private var pending: [UInt8] = []
    private var held: [UInt8] = []

    init(mask: UInt8) { self.mask = mask }

    var hasPartialInput: Bool { !pending.isEmpty }

    func open(into output: inout [UInt8]) { output += Self.greeting }

    func received(
        _ bytes: UnsafeRawBufferPointer,
        into input: inout [UInt8],
        answering answer: inout [UInt8]
    ) throws(LayerError) -> Bool {
        pending += bytes
        if !isOpen {
            guard pending.count >= Self.greeting.count else { return false }
            guard pending.starts(with: Self.greeting) else {
                answer += Array("bye".utf8)
                throw LayerError("no greeting")
            }
            pending.removeFirst(Self.greeting.count)
            isOpen = true
            let held = held
            if !held.isEmpty { held.withUnsafeBytes { enclose($0, into: &answer) } }
        }
        while pending.count >= 2 {
            let length = Int(pending[0]) << 8 | Int(pending[1])
            if length > Self.longest { throw LayerError("a record of \(length) bytes") }
            if length == 0 { return true }
            guard pending.count >= 2 + length else { break }
            input += pending[2..<(2 + length)].map { $0 ^ mask }
            pending.removeFirst(2 + length)
        }
        return false
    }

    func enclose(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        if !isOpen {
            held += bytes
            return
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.longest)
            output += [UInt8(part.count >> 8), UInt8(part.count & 0xFF)] + part.map { $0 ^ mask }
            rest = rest.dropFirst(part.count)
        }
    }

    func close(into output: inout [UInt8]) {
        if isOpen { output += [0, 0] }
    }
}

/// A peer that sends and receives through layers.
private final class LayeredPeer {
    let peer: Peer
    private let stack: LayerStack
    private var input: [UInt8] = []
    /// Whether the connection has ended its side by the layer's own protocol.
    private(set) var hasEnded = false

    init(_ peer: Peer, _ layers: [any ConnectionLayer]) throws {
        self.peer = peer
        stack = try #require(LayerStack(layers))
        var output: [UInt8] = []
        stack.open(into: &output)
        try peer.send(output)
    }

    /// Returns the bytes that the layers send for these bytes.
    func enclosed(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        bytes.withUnsafeBytes { stack.enclose($0, into: &output) }
        return output
    }

    /// Reads the bytes that have arrived.
    ///
    /// - Returns: false at the end of the stream.
    @discardableResult
    func take() throws -> Bool {
        let bytes = try peer.receiveSome()
        var answer: [UInt8] = []
        let ends = try bytes.withUnsafeBytes { bytes throws(LayerError) in
            try stack.received(bytes, into: &input, answering: &answer)
        }
        hasEnded = hasEnded || ends
        try peer.send(answer)
        return !bytes.isEmpty
    }

    func receive(_ count: Int) throws -> [UInt8] {
        while try input.count < count && take() {}
        defer { input.removeFirst(min(count, input.count)) }
        return Array(input.prefix(count))
    }

    func roundTrip(_ payload: [UInt8]) throws {
        try peer.send(enclosed(frame(payload)))
        try #require(try receive(payload.count + 4) == frame(payload))
    }
}

@Suite("a connection with layers")
struct LayerTests {
    private static func layers(_ count: Int) -> [any ConnectionLayer] {
        (0..<count).map { MaskLayer(mask: UInt8(0x51 + $0)) }
    }

    private func adopt(
        _ lane: Lane,
        _ script: sending Script,
        _ count: Int
    ) throws -> Peer {
        let (ours, theirs) = try Peer.pair()
        lane.adopt(
            fileDescriptor: dup(ours.descriptor),
            peer: "pair",
            layers: Self.layers(count),
            delegate: script
        )
        return theirs
    }

    @Test("carries frames of every size both ways", arguments: [1, 2])
    func echo(count: Int) throws {
        try withLane { lane in
            let peer = try LayeredPeer(adopt(lane, echoScript(), count), Self.layers(count))
            for length in [0, 1, 100, 65_536, 300_000] {
                try peer.roundTrip((0..<length).map { UInt8($0 % 251) })
            }
        }
    }

    @Test("does not care where the bytes are cut", arguments: [1, 2])
    func cuts(count: Int) throws {
        let payload = [UInt8](0..<40)
        try withLane { lane in
            for cut in 0..<60 {
                let peer = try LayeredPeer(adopt(lane, echoScript(), count), Self.layers(count))
                try peer.roundTrip([])
                let bytes = peer.enclosed(frame(payload))
                try peer.peer.send(Array(bytes.prefix(cut)))
                try peer.peer.send(Array(bytes.dropFirst(cut)))
                #expect(try peer.receive(payload.count + 4) == frame(payload))
            }
        }
    }

    @Test("sends what was written before the layers were open")
    func early() throws {
        try withLane { lane in
            let script = echoScript()
            script.onOpened = { $0.write(frame([1, 2, 3])) }
            let peer = try LayeredPeer(adopt(lane, script, 1), Self.layers(1))
            #expect(try peer.receive(7) == frame([1, 2, 3]))
        }
    }

    @Test("presents what was left during a pause")
    func pause() throws {
        try withLane { lane in
            let script = echoScript()
            let (held, rounds) = (script.held, Arrivals<Bool>())
            var isFirst = true
            script.onReceived = { connection, bytes in
                guard isFirst else {
                    return frames(in: bytes) { connection.write(frame(Array($0))) }
                }
                isFirst = false
                connection.pauseReading()
                return 0
            }
            script.onRoundEnded = { rounds.add($0.hasPartialInput) }
            let peer = try LayeredPeer(adopt(lane, script, 1), Self.layers(1))
            try peer.take()
            try peer.peer.send(peer.enclosed(frame([7])))
            while try !rounds.next() {}
            lane.queue.sync { held.connection?.resumeReading() }
            #expect(try peer.receive(5) == frame([7]))
        }
    }

    @Test("ends by the layer's own end, and ends its own side so")
    func end() throws {
        try withLane { lane in
            let script = echoScript()
            let closed = script.closed
            script.onInputEnded = { $0.closeAfterFlush(.peerClosed, within: .seconds(60)) }
            let wire = try adopt(lane, script, 1)
            let peer = try LayeredPeer(wire, Self.layers(1))
            try peer.roundTrip([5])
            try wire.send(peer.enclosed(frame([6])) + [0, 0])
            #expect(try peer.receive(.max) == frame([6]))
            #expect(peer.hasEnded)
            #expect(try closed.next() == .peerClosed)
        }
    }

    @Test("that fail close it with their last words, and nothing unenclosed leaves")
    func failure() throws {
        try withLane { lane in
            let script = echoScript()
            let (closed, held, opened) = (script.closed, script.held, script.opened)
            let wire = try adopt(lane, script, 1)
            _ = try opened.next()
            try lane.queue.sync {
                try wire.send(Array("nonsense".utf8))
                // In one round, the bytes wait for the layer, and the layer fails.
                lane.round {
                    held.connection?.write(Array("secret".utf8))
                    lane.serve()
                }
            }
            #expect(try wire.receive(8) == Array("hellobye".utf8))
            wire.endOutput()
            #expect(try wire.receiveAll().isEmpty)
            #expect(try closed.next() == .layer("no greeting"))
        }
    }

    @Test("keeps the order of what the socket refuses")
    func backlog() throws {
        try withLane { lane in
            let script = echoScript()
            let held = script.held
            let peer = try LayeredPeer(adopt(lane, script, 2), Self.layers(2))
            try peer.roundTrip([1])
            let parts = (0..<200).map { [UInt8](repeating: UInt8($0), count: 1 + $0 * 97) }
            lane.queue.sync {
                for part in parts { held.connection?.write(part) }
                held.connection?.closeAfterFlush(.local("done"), within: .seconds(60))
            }
            #expect(try peer.receive(.max) == parts.flatMap(\.self))
        }
    }
}
