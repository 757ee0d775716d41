import Dispatch
import Glibc
import Synchronization
import TambourTesting
import Testing

@testable import TambourNet
@testable import TambourQueues

/// The longest time that `withLane` waits until the lane has stopped.
let patience = DispatchTimeInterval.seconds(120)

/// Holds a connection for the blocks that a test runs on the connection's lane.
///
/// `@unchecked Sendable`: only blocks of the lane access the connection.
final class Held: @unchecked Sendable {
    var connection: Connection?
}

/// A delegate made of closures, which also records its calls.
final class Script: ConnectionDelegate {
    let held = Held()
    let opened = Arrivals<UInt64>()
    let closed: Arrivals<CloseReason>
    let drained = Arrivals<Int>()

    var onOpened: (Connection) -> Void = { _ in }
    var onReceived: (Connection, UnsafeRawBufferPointer) -> Int = { $1.count }
    var onRoundEnded: (Connection) -> Void = { _ in }
    var onInputEnded: (Connection) -> Void = { $0.close(.peerClosed) }
    var onClosed: (Connection) -> Void = { _ in }

    init(closed: Arrivals<CloseReason> = Arrivals()) { self.closed = closed }

    func connectionOpened(_ connection: Connection) {
        held.connection = connection
        onOpened(connection)
        opened.add(connection.id)
    }

    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int {
        onReceived(connection, bytes)
    }

    func connectionRoundEnded(_ connection: Connection) { onRoundEnded(connection) }

    func connectionInputEnded(_ connection: Connection) { onInputEnded(connection) }

    func connectionDrained(_ connection: Connection) {
        drained.add(connection.pendingOutboundBytes)
    }

    func connectionClosed(_ connection: Connection, reason: CloseReason) {
        onClosed(connection)
        held.connection = nil
        closed.add(reason)
    }
}

/// Calls `body` for each complete frame (a length in four bytes, then as many bytes) and returns
/// the number of bytes used.
func frames(in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
    var used = 0
    while bytes.count - used >= 4 {
        let length = Int(
            UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: used, as: UInt32.self))
        )
        guard bytes.count - used - 4 >= length else { break }
        body(UnsafeRawBufferPointer(rebasing: bytes[(used + 4)..<(used + 4 + length)]))
        used += 4 + length
    }
    return used
}

func frame(_ payload: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(payload.count).bigEndian) { Array($0) } + payload
}

/// Returns a script that sends each frame back.
func echoScript() -> Script {
    let script = Script()
    script.onReceived = { connection, bytes in
        frames(in: bytes) { connection.write(frame(Array($0))) }
    }
    return script
}

/// The other end of a connection, with blocking calls that fail after 20 seconds.
final class Peer: Sendable {
    let descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    /// Connects to `address`, in the format of `Listener.boundAddress`.
    convenience init(to address: String) throws {
        let parsed = try ListenAddress(address)
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        try #require(getaddrinfo(parsed.host, String(parsed.port), &hints, &found) == 0)
        defer { freeaddrinfo(found) }
        let entry = try #require(found).pointee
        let descriptor = socket(entry.ai_family, entry.ai_socktype, entry.ai_protocol)
        guard connect(descriptor, entry.ai_addr, entry.ai_addrlen) == 0 else {
            let error = errno
            Glibc.close(descriptor)
            throw SystemError(number: error)
        }
        self.init(descriptor: descriptor)
    }

    deinit { Glibc.close(descriptor) }

    /// Returns the two ends of a new pair of local stream sockets.
    static func pair() throws -> (Peer, Peer) {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        return (Peer(descriptor: ends[0]), Peer(descriptor: ends[1]))
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor,
                    $0.baseAddress! + sent,
                    $0.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if count < 0 { throw SystemError(number: errno) }
            sent += count
        }
    }

    /// Receives `count` bytes, or fewer if the other side has closed.
    func receive(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let wanted = count - bytes.count
            var got = 0
            let part = [UInt8](unsafeUninitializedCapacity: min(wanted, 1 << 20)) { buffer, used in
                got = read(descriptor, buffer.baseAddress, buffer.count)
                used = max(0, got)
            }
            if got < 0 { throw SystemError(number: errno) }
            if got == 0 { break }
            bytes += part
        }
        return bytes
    }

    /// Waits for bytes and returns all that have arrived; empty at the end of the stream.
    func receiveSome() throws -> [UInt8] {
        var got = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, used in
            got = read(descriptor, buffer.baseAddress, buffer.count)
            used = max(0, got)
        }
        if got < 0 { throw SystemError(number: errno) }
        return bytes
    }

    /// Receives everything up to the end of the stream.
    func receiveAll() throws -> [UInt8] { try receive(.max) }

    /// Sends a frame and waits for its echo.
    func roundTrip(_ payload: [UInt8]) throws {
        try send(frame(payload))
        try #require(try receive(payload.count + 4) == frame(payload))
    }

    func endOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Makes the release of the peer reset the connection.
    func willReset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor,
            SOL_SOCKET,
            SO_LINGER,
            &option,
            socklen_t(MemoryLayout<linger>.size)
        )
    }
}

struct SystemError: Error, Equatable {
    let number: Int32
}

/// Runs `body` with a started lane and stops the lane afterwards.
func withLane<R>(_ body: (Lane) throws -> R) throws -> R {
    let lane = Lane(
        index: 0,
        label: "test lane",
        timerTick: .milliseconds(1),
        poisonAfterCallback: true
    )
    lane.start()
    let stopped = DispatchSemaphore(value: 0)
    defer {
        lane.stop { stopped.signal() }
        #expect(stopped.wait(timeout: .now() + patience) == .success)
    }
    return try body(lane)
}

extension Lane {
    /// Lets the lane adopt one end of a new pair of local stream sockets, and returns the other
    /// end.
    func adoptPair(_ script: sending Script) throws -> Peer {
        let (ours, theirs) = try Peer.pair()
        adopt(fileDescriptor: dup(ours.descriptor), peer: "pair", delegate: script)
        return theirs
    }
}

extension SerialQueue {
    /// Runs `body` after all work queued earlier, and waits for it.
    func sync<Result>(_ body: () throws -> Result) rethrows -> Result {
        try dispatch.sync(execute: body)
    }
}
