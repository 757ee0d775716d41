import Logging
import TambourFraming
import TambourMessenger
import TambourNet
import TambourProtocol

/// Writes replies and pushes to a client, and applies back-pressure. No other code writes to the
/// client.
///
/// Pushes that arrive during a LOGIN wait until the reply to the LOGIN is written. The outbox
/// closes the connection if the client does not read.
struct Outbox {
    private let shared: SharedServices
    private var opened: Connection?
    private var writer: PacketCodec.Writer
    private var backlog: ReaderBacklog
    /// The limit of reply bytes that may wait for the client. The limit is lower before login.
    private var mostReplyBytes: Int
    private var heldPushes: [[UInt8]] = []
    private var heldPushBytes = 0
    private var isHolding = false
    private var queuedPushBytes = 0
    /// The number of payload bytes in all replies so far.
    private(set) var replyBytes = 0

    init(_ shared: SharedServices) {
        self.shared = shared
        writer = PacketCodec.Writer(limits: shared.limits)
        backlog = ReaderBacklog(limits: shared.limits)
        mostReplyBytes = shared.limits.maxOutboundBytesBeforeLogin
    }

    private var limits: Limits { shared.limits }

    var connection: Connection {
        guard let opened else {
            preconditionFailure("a lane tells of a connection before anything is done with it")
        }
        return opened
    }

    mutating func open(_ connection: Connection) {
        opened = connection
    }

    /// Records the sequence number of the client's last request. Pushes use numbers far from this
    /// number.
    mutating func noteSequence(_ sequence: UInt16) {
        writer.lastSequence = sequence
    }

    mutating func setStranger(_ isStranger: Bool) {
        mostReplyBytes =
            isStranger ? limits.maxOutboundBytesBeforeLogin : limits.maxOutboundBytes
    }

    // MARK: - Replies

    /// Encodes a reply for a client with these capabilities and writes it.
    ///
    /// - Returns: false if the reply is too long. In this case it is not written.
    @discardableResult
    mutating func write(
        _ payload: some WirePayload,
        _ command: PacketCommand = .ok,
        to request: (sequence: UInt16, opcode: Opcode),
        for capabilities: Capabilities
    ) -> Bool {
        // Do not encode a reply that cannot be sent.
        if connection.isClosing { return true }
        return payload.withEncoded(for: capabilities) {
            write($0, command, to: request, for: capabilities)
        }
    }

    /// Writes an encoded reply.
    ///
    /// - Returns: false if the reply is too long. In this case it is not written.
    mutating func write(
        _ payload: UnsafeRawBufferPointer,
        _ command: PacketCommand = .ok,
        to request: (sequence: UInt16, opcode: Opcode),
        for capabilities: Capabilities
    ) -> Bool {
        guard !connection.isClosing else { return true }
        if payload.count > limits.mostPayloadBytes {
            // Pages end well below this limit. A client could not read a longer reply.
            shared.metrics.repliesOverLimit.add(1)
            shared.longReplies.error(
                "a reply is too long to be sent; answered as internal",
                metadata: [
                    "connection": "\(connection.id)", "opcode": "\(request.opcode.rawValue)",
                    "bytes": "\(payload.count)", "limit": "\(limits.mostPayloadBytes)",
                ]
            )
            return false
        }
        guard mayWriteReply(payload.count) else { return true }
        writer.write(
            payload,
            command,
            request.sequence,
            request.opcode,
            Compression(for: capabilities),
            to: connection
        )
        return true
    }

    /// Writes a reply that a reader of the store has already framed.
    mutating func write(reply packet: [UInt8], payloadBytes: Int) {
        if mayWriteReply(payloadBytes) { connection.write(packet) }
    }

    /// Counts a reply before it is written. If too many bytes wait for the client, closes the
    /// connection and returns false.
    private mutating func mayWriteReply(_ payloadBytes: Int) -> Bool {
        guard !connection.isClosing else { return false }
        guard connection.pendingOutboundBytes <= mostReplyBytes else {
            closeSlowReader()
            return false
        }
        replyBytes += payloadBytes
        shared.metrics.replyBytes.add(payloadBytes)
        return true
    }

    // MARK: - Pushes

    /// Writes the push in the form for these capabilities, or holds it back during a LOGIN.
    ///
    /// If the push is too long, the outbox closes the session. Otherwise the client would miss the
    /// push without noticing.
    /// - Returns: whether there is a packet for this client.
    @discardableResult
    mutating func push<Content>(
        _ push: inout EncodedPush<Content>,
        for capabilities: Capabilities
    ) -> Bool {
        switch push.delivery(for: capabilities) {
        case .packet(let packet):
            self.push(packet)
            return true
        case .nothing:
            return false
        case .tooLong(let bytes):
            shared.metrics.pushesOverLimit.add(1)
            shared.longPushes.error(
                "a push is too long to be sent; its session is closed",
                metadata: [
                    "connection": "\(connection.id)", "opcode": "\(push.opcode.rawValue)",
                    "bytes": "\(bytes)", "limit": "\(limits.mostPayloadBytes)",
                ]
            )
            connection.close(.local("a push was too long"))
            return false
        }
    }

    private mutating func push(_ packet: [UInt8]) {
        guard !connection.isClosing else { return }
        guard isHolding else { return write(push: packet) }
        heldPushBytes += packet.count
        if heldPushBytes > limits.maxOutboundPushBytes { return closeSlowReader() }
        heldPushes.append(packet)
    }

    private mutating func write(push packet: [UInt8]) {
        let pending = connection.pendingOutboundBytes
        if pending == 0 { queuedPushBytes = 0 }
        queuedPushBytes += packet.count
        // A client that has read all earlier bytes is not a slow reader, however long the push is.
        if pending > 0, queuedPushBytes > limits.maxOutboundPushBytes,
            pending + packet.count > limits.maxOutboundPushBytes
        {
            return closeSlowReader()
        }
        shared.metrics.pushes.add(1)
        writer.write(push: packet, to: connection)
    }

    /// Holds pushes back until `release`.
    mutating func hold() {
        isHolding = true
    }

    /// Writes the held pushes, or drops them after a refused LOGIN.
    mutating func release(dropping: Bool) {
        isHolding = false
        let held = heldPushes
        heldPushes = []
        heldPushBytes = 0
        if dropping { return }
        for packet in held { write(push: packet) }
    }

    // MARK: - Back-pressure

    /// Whether the backlog has exceeded the limit and is not yet empty. While this is true, the
    /// session starts no further query or LOGIN.
    var isBehind: Bool { backlog.isBehind }

    /// The time, in milliseconds, when the session closes if the client has read nothing until
    /// then; nil for a client without a backlog.
    var stalledAtMs: Int64? { backlog.deadlineMs }

    mutating func noteBacklog(nowMs: Int64) {
        backlog.update(bytes: connection.backlogBytes, nowMs: nowMs)
    }

    /// Records that all bytes are written to the socket.
    mutating func drained() {
        queuedPushBytes = 0
    }

    func closeSlowReader() {
        shared.metrics.slowReadersClosed.add(1)
        connection.close(.local("slow reader"))
    }

    /// Drops the held pushes. The outbox writes nothing afterwards.
    mutating func close() {
        heldPushes = []
    }
}
