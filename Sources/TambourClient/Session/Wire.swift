import TambourFraming
import TambourProtocol

/// The bytes of the connection: arriving packets, packets that leave with the next commit, and
/// requests in flight.
struct Wire {
    private var decoder = Wire.newDecoder()
    private var received: [UInt8] = []
    private var outgoing: [UInt8] = []
    private var table = RequestTable()
    private var sentAtMs: [UInt16: Int64] = [:]
    /// Bytes sent and received since the core was created.
    private(set) var bytesSent = 0
    private(set) var bytesReceived = 0

    private static func newDecoder() -> FrameDecoder {
        var decoder = FrameDecoder(limits: .standard)
        // The limits for unauthenticated peers protect a server. They do not apply to packets that
        // a server sends.
        decoder.authenticated = true
        return decoder
    }

    // MARK: - Receiving

    /// Whether the buffer of received bytes is empty.
    var isSilent: Bool { received.isEmpty }

    /// Prepares for the bytes of a new connection.
    mutating func connected() {
        received = []
        decoder = Self.newDecoder()
    }

    /// Discards the bytes of the connection. The requests in flight stay until `takeAll`.
    mutating func disconnected() {
        received = []
        outgoing = []
    }

    /// Consumes received bytes.
    ///
    /// - Returns: the complete packets.
    mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> [Packet] {
        bytesReceived += bytes.count
        received += bytes
        var packets: [Packet] = []
        var offset = 0
        try received.withUnsafeBytes { bytes in
            while let frame = try decoder.next(in: bytes, from: &offset) {
                packets.append(try frame.packet(limits: .standard))
            }
        }
        received.removeFirst(offset)
        return packets
    }

    // MARK: - Sending

    /// Adds a request to the bytes that leave with the next commit.
    ///
    /// - Returns: the sequence number of the request, and the size of its packet in bytes.
    mutating func send(
        _ entry: RequestTable.Entry,
        _ payload: [UInt8],
        nowMs: Int64
    ) -> (sequence: UInt16, bytes: Int) {
        let sequence = table.add(entry)
        let before = outgoing.count
        encodePacket(
            command: .request,
            sequence: sequence,
            opcode: entry.opcode.rawValue,
            payload: payload,
            compression: Compression(for: .all),
            into: &outgoing
        )
        sentAtMs[sequence] = nowMs
        return (sequence, outgoing.count - before)
    }

    /// Returns the bytes to send after the commit.
    mutating func takeOutgoing() -> [UInt8] {
        defer { outgoing = [] }
        bytesSent += outgoing.count
        return outgoing
    }

    // MARK: - Requests

    /// The requests in flight.
    var requests: RequestTable { table }

    /// Ends a failed transaction: its requests were never sent, and earlier requests are still in
    /// flight.
    mutating func rollBack(to requests: RequestTable) {
        outgoing = []
        table = requests
    }

    /// Returns the time since a request was sent; nil after its first reply.
    func waitMs(of sequence: UInt16, nowMs: Int64) -> Int64? {
        sentAtMs[sequence].map { nowMs - $0 }
    }

    /// Removes and returns the request that a reply answers; nil for a stray reply.
    mutating func take(_ sequence: UInt16, _ opcode: Opcode) -> RequestTable.Entry? {
        sentAtMs[sequence] = nil
        return table.take(sequence, opcode)
    }

    /// Removes and returns the overdue requests, oldest first.
    mutating func takeOverdue(nowMs: Int64) -> [RequestTable.Entry] {
        table.takeOverdue(nowMs: nowMs)
    }

    /// Removes and returns all requests. Late replies are ignored.
    mutating func takeAll() -> [RequestTable.Entry] {
        sentAtMs = [:]
        return table.takeAll()
    }
}
