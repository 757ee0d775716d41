import TambourFraming
import TambourProtocol

/// Numbers the requests of a Tambour connection, and separates received replies from pushes.
struct TambourPackets {
    static let limits = Limits.standard

    enum Incoming {
        case pushed(Frame)
        /// Replies arrive in the order of the requests.
        case answered(Frame)
    }

    private let decoder: FrameDecoder
    private var sequence: UInt16 = 0

    init() {
        var decoder = FrameDecoder(limits: Self.limits)
        decoder.authenticated = true
        self.decoder = decoder
    }

    mutating func append(_ opcode: Opcode, _ payload: some WirePayload, to output: inout [UInt8]) {
        encodePacket(
            command: .request,
            sequence: sequence,
            opcode: opcode.rawValue,
            payload: payload.encoded(),
            into: &output
        )
        sequence &+= 1
    }

    /// Returns the next packet of `bytes` and moves `offset` past it. Returns nil if the packet is
    /// incomplete.
    ///
    /// - Throws: if the bytes are invalid, or if the server rejects a request.
    func next(in bytes: UnsafeRawBufferPointer, from offset: inout Int) throws -> Incoming? {
        guard let frame = try decoder.next(in: bytes, from: &offset) else { return nil }
        switch frame.header.command {
        case PacketCommand.request.rawValue: return .pushed(frame)
        case PacketCommand.ok.rawValue: return .answered(frame)
        default:
            let error = try frame.decode(ErrorReply.self)
            throw BenchError("opcode \(frame.header.opcode): \(error.error) \(error.message)")
        }
    }
}

extension Frame {
    /// Returns the frame's payload, inflated and decoded within the limits.
    func decode<Payload: WirePayload>(_ type: Payload.Type) throws -> Payload {
        try Payload.decode(payload(limits: TambourPackets.limits), limits: TambourPackets.limits)
    }
}
