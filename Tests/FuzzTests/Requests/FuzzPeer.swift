import Glibc
import TambourFraming
import TambourProtocol
import TambourTesting

@testable import tambour_spec

/// A connection that sends and receives without blocking, so that one thread can drive many
/// connections.
final class FuzzPeer {
    /// A request that has no reply yet.
    struct Sent {
        let request: FuzzRequest
        let sentAt: ContinuousClock.Instant
    }

    struct Received {
        let opcode: UInt16
        let isError: Bool
        let payload: [UInt8]
        /// The request that the packet answers; nil for a push.
        let sent: Sent?
        /// The reason why the packet could not be read; nil for a readable packet. An unreadable
        /// packet ends the connection.
        var failure: String?
    }

    /// The account that is logged in on the connection; nil if no account is.
    let account: Int?
    private(set) var isOpen = true
    private(set) var waiting: [UInt16: Sent] = [:]
    /// The sequence numbers of the waiting requests, in the order of sending.
    private(set) var order: [UInt16] = []

    fileprivate let socket: Int32
    private var decoder = FrameDecoder(limits: .standard)
    private var inbox: [UInt8] = []
    private var outbox: [UInt8] = []
    private var sentBytes = 0
    private var sequence: UInt16 = 0

    /// Connects to `HOST:PORT`. Returns nil if no server listens at this address.
    init?(address: String, account: Int?) {
        self.account = account
        decoder.authenticated = true
        let parts = address.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1]) else { return nil }
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = port.bigEndian
        inet_pton(AF_INET, String(parts[0]), &target.sin_addr)
        let connected = withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { return nil }
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(4))
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
    }

    deinit { Glibc.close(socket) }

    /// Queues a request; the next `exchange` sends it.
    ///
    /// - Parameter isCut: Whether to send only the first half of the packet, and then end the
    ///   stream.
    func send(_ request: FuzzRequest, compressed: Bool = false, isCut: Bool = false) {
        guard isOpen else { return }
        let start = outbox.count
        let block =
            compressed ? request.payload.withUnsafeBytes { LZ4.compress($0) } : nil
        appendHeader(request.opcode.number, length: (block ?? request.payload).count, block != nil)
        outbox += block ?? request.payload
        if isCut {
            outbox.removeLast((outbox.count - start) / 2)
        } else {
            waiting[sequence] = Sent(request: request, sentAt: .now)
            order.append(sequence)
        }
        sequence &+= 1
    }

    /// Appends the ten bytes of the header that `protocol-spec/prose/framing.md` defines.
    private func appendHeader(_ opcode: Int, length: Int, _ isCompressed: Bool) {
        outbox += [
            10, 0, UInt8(sequence >> 8), UInt8(sequence & 0xFF), UInt8(opcode >> 8),
            UInt8(opcode & 0xFF), isCompressed ? 254 : 0, UInt8(length >> 16 & 0xFF),
            UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF),
        ]
    }

    /// Resets the connection, even if requests are in flight.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            socket,
            SOL_SOCKET,
            SO_LINGER,
            &linger,
            socklen_t(MemoryLayout.size(ofValue: linger))
        )
        shutdown(socket, Int32(SHUT_RDWR))
        isOpen = false
        waiting = [:]
        order = []
    }

    /// The unanswered requests, oldest first.
    var unanswered: [FuzzRequest] { order.compactMap { waiting[$0]?.request } }

    var isIdle: Bool { !isOpen || (waiting.isEmpty && sentBytes == outbox.count) }

    /// Sends and receives on all `peers` until each of them is idle.
    ///
    /// - Returns: False if `deadline` passes first.
    static func exchange(
        _ peers: [FuzzPeer],
        within deadline: Duration = .seconds(60),
        _ take: (FuzzPeer, Received) throws -> Void
    ) throws -> Bool {
        let end = ContinuousClock.now + deadline
        while true {
            let busy = peers.filter { !$0.isIdle }
            if busy.isEmpty { return true }
            guard ContinuousClock.now < end else { return false }
            var descriptors = busy.map { peer in
                let events = POLLIN | (peer.sentBytes < peer.outbox.count ? POLLOUT : 0)
                return pollfd(fd: peer.socket, events: Int16(events), revents: 0)
            }
            let ready = poll(&descriptors, nfds_t(descriptors.count), 1_000)
            guard ready > 0 else { continue }
            for (peer, descriptor) in zip(busy, descriptors) where descriptor.revents != 0 {
                if Int32(descriptor.revents) & POLLOUT != 0 { peer.flush() }
                if Int32(descriptor.revents) & ~POLLOUT != 0 { try peer.receive(take) }
            }
        }
    }

    private func flush() {
        let count = outbox[sentBytes...].withUnsafeBytes {
            Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        if count > 0 { sentBytes += count }
        if count < 0, errno != EAGAIN, errno != EINTR { closed() }
        if sentBytes == outbox.count {
            outbox.removeAll(keepingCapacity: outbox.count < 1 << 16)
            sentBytes = 0
        }
    }

    private func receive(_ take: (FuzzPeer, Received) throws -> Void) throws {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(socket, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else { return closed() }
        inbox += chunk[..<count]
        var offset = 0
        var packets: [Packet] = []
        var failed: (opcode: UInt16, sequence: UInt16, reason: String)?
        inbox.withUnsafeBytes { bytes in
            do {
                while let frame = try decoder.next(in: bytes, from: &offset) {
                    do {
                        packets.append(try frame.packet(limits: .standard))
                    } catch {
                        failed = (frame.header.opcode, frame.header.sequence, "\(error)")
                        return
                    }
                }
            } catch {
                failed = (0, 0, "\(error)")
            }
        }
        inbox.removeFirst(offset)
        for packet in packets {
            let isPush = packet.header.command == PacketCommand.request.rawValue
            let sent = isPush ? nil : waiting.removeValue(forKey: packet.header.sequence)
            if !isPush { order.removeAll { $0 == packet.header.sequence } }
            try take(
                self,
                Received(
                    opcode: packet.header.opcode,
                    isError: packet.header.command == PacketCommand.error.rawValue,
                    payload: packet.payload,
                    sent: sent
                )
            )
        }
        guard let failed else { return }
        let sent = waiting[failed.sequence]
        closed()
        try take(
            self,
            Received(
                opcode: failed.opcode,
                isError: false,
                payload: [],
                sent: sent,
                failure: failed.reason
            )
        )
    }

    private func closed() {
        isOpen = false
        sentBytes = outbox.count
    }
}
