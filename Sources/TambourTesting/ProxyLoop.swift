import Foundation

/// A pipe with which one thread ends the wait of another thread in `poll`.
struct WakeUp: Sendable {
    let reader: Int32
    private let writer: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw WireClient.Failure.unexpected("no pipe") }
        for end in ends { ProxyLoop.makePrivate(end) }
        (reader, writer) = (ends[0], ends[1])
    }

    func wake() {
        _ = write(writer, [1], 1)
    }

    func rest() {
        var buffer = [UInt8](repeating: 0, count: 64)
        while read(reader, &buffer, buffer.count) > 0 {}
    }

    func close() {
        for end in [reader, writer] { Foundation.close(end) }
    }
}

/// Serves the sockets of a `CuttingProxy`, one turn at a time.
///
/// `@unchecked Sendable`: one thread creates the object, and afterwards only one other thread uses
/// it.
final class ProxyLoop: @unchecked Sendable {
    let addresses: [String]
    let wakeUp: WakeUp
    var isCutting = false
    private(set) var connections = 0

    private let listeners: [Int32]
    private var accepted: [Int]
    private let target: sockaddr_in
    private let plan: CutPlan
    private var pairs: [Pair] = []
    private var chunk = [UInt8](repeating: 0, count: 65_536)

    /// The socket of a client, the socket to the server, and the bytes that are not yet forwarded.
    private final class Pair {
        let client: Int32
        let server: Int32
        let cut: CuttingProxy.Cut
        var limits: CutPlan.Limits
        var up: [UInt8] = []
        var down: [UInt8] = []
        var isOver = false
        var isCut = false

        init(client: Int32, server: Int32, cut: CuttingProxy.Cut, limits: CutPlan.Limits) {
            self.client = client
            self.server = server
            self.cut = cut
            self.limits = limits
        }

        func close(withReset isReset: Bool) {
            for socket in [client, server] {
                var linger = Glibc.linger(l_onoff: isReset ? 1 : 0, l_linger: 0)
                let size = socklen_t(MemoryLayout.size(ofValue: linger))
                setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, size)
                Foundation.close(socket)
            }
        }
    }

    init(to server: String, doors: Int, plan: CutPlan) throws {
        guard let port = server.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw WireClient.Failure.unexpected("no address: \(server)")
        }
        target = Loopback.address(port: port)
        self.plan = plan
        wakeUp = try WakeUp()
        let made = try (0..<doors).map { _ in
            let made = try Loopback.listen(backlog: 64)
            Self.makePrivate(made.socket)
            return made
        }
        listeners = made.map(\.socket)
        addresses = made.map { "127.0.0.1:\($0.port)" }
        accepted = [Int](repeating: 0, count: doors)
    }

    func close() {
        for pair in pairs { pair.close(withReset: true) }
        for listener in listeners { Foundation.close(listener) }
        wakeUp.close()
    }

    /// Waits until at least one socket is ready, and serves the ready sockets.
    ///
    /// - Returns: the connections that were cut in this turn.
    func turn() -> [CuttingProxy.Cut] {
        var polled = [pollfd(fd: wakeUp.reader, events: Int16(POLLIN), revents: 0)]
        polled += listeners.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        for pair in pairs {
            // Read from a socket only after the previous bytes have been forwarded. A slow reader
            // therefore slows its writer.
            let client = (pair.up.isEmpty ? POLLIN : 0) | (pair.down.isEmpty ? 0 : POLLOUT)
            let server = (pair.down.isEmpty ? POLLIN : 0) | (pair.up.isEmpty ? 0 : POLLOUT)
            polled.append(pollfd(fd: pair.client, events: Int16(client), revents: 0))
            polled.append(pollfd(fd: pair.server, events: Int16(server), revents: 0))
        }
        guard poll(&polled, nfds_t(polled.count), -1) > 0 else { return [] }
        wakeUp.rest()
        for (index, pair) in pairs.enumerated() {
            let client = polled[1 + listeners.count + 2 * index].revents
            let server = polled[2 + listeners.count + 2 * index].revents
            if client != 0 { serve(pair, up: true, Int32(client)) }
            if server != 0, !pair.isOver { serve(pair, up: false, Int32(server)) }
        }
        for pair in pairs where pair.isOver {
            pair.close(withReset: pair.isCut && pair.limits.isReset)
        }
        let cuts = pairs.filter(\.isCut).map(\.cut)
        pairs.removeAll(where: \.isOver)
        for (door, listener) in listeners.enumerated() where polled[1 + door].revents != 0 {
            accept(listener, door)
        }
        return cuts
    }

    /// Reads from, or writes to, one of the two sockets of a pair.
    private func serve(_ pair: Pair, up: Bool, _ events: Int32) {
        let socket = up ? pair.client : pair.server
        if events & POLLOUT != 0 {
            if up { send(&pair.down, to: socket, pair) } else { send(&pair.up, to: socket, pair) }
        }
        guard !pair.isOver, events & (POLLIN | POLLHUP | POLLERR) != 0 else { return }
        guard up ? pair.up.isEmpty : pair.down.isEmpty else { return }
        let count = recv(socket, &chunk, chunk.count, 0)
        guard count > 0 else {
            if count == 0 || (errno != EAGAIN && errno != EINTR) { pair.isOver = true }
            return
        }
        if up {
            pair.up = Array(take(count, &pair.limits.up, pair))
            send(&pair.up, to: pair.server, pair)
        } else {
            pair.down = Array(take(count, &pair.limits.down, pair))
            send(&pair.down, to: pair.client, pair)
        }
    }

    /// Returns those of the read bytes that are before the cut, and counts them towards the cut.
    private func take(_ count: Int, _ limit: inout Int, _ pair: Pair) -> ArraySlice<UInt8> {
        guard isCutting else { return chunk[..<count] }
        if count >= limit { (pair.isOver, pair.isCut) = (true, true) }
        let passed = min(count, limit)
        limit -= passed
        return chunk[..<passed]
    }

    private func send(_ bytes: inout [UInt8], to socket: Int32, _ pair: Pair) {
        guard !bytes.isEmpty else { return }
        let count = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        if count > 0 { bytes.removeFirst(count) }
        if count < 0, errno != EAGAIN, errno != EINTR, errno != ENOTCONN { pair.isOver = true }
    }

    private func accept(_ listener: Int32, _ door: Int) {
        let client = Glibc.accept(listener, nil, nil)
        guard client >= 0 else { return }
        Self.makePrivate(client)
        let number = accepted[door]
        accepted[door] += 1
        connections += 1
        let limits = plan.limits(door: door, connection: number)
        let server = Self.newSocket()
        var target = target
        _ = withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        for socket in [client, server] {
            var on: Int32 = 1
            setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(4))
        }
        let cut = CuttingProxy.Cut(door: door, connection: number, draw: limits.draw)
        pairs.append(Pair(client: client, server: server, cut: cut, limits: limits))
    }

    // MARK: - Sockets

    /// Makes a descriptor non-blocking and prevents child processes from inheriting it.
    static func makePrivate(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    private static func newSocket() -> Int32 {
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        makePrivate(made)
        return made
    }
}
