import TambourFraming
import TambourNet
import TambourProtocol

/// How a session's requests, replies and pushes travel: as packets with a header of ten bytes.
///
/// Sequence numbers and compression belong here; the rest of a session knows requests and payloads.
enum PacketCodec {
    /// The most bytes of MessagePack that one page may have.
    static func replyBudget(_ limits: Limits) -> Int { limits.maxReplyBytes }

    /// Cuts packets out of the stream.
    struct Reader {
        private let limits: Limits
        private var decoder: FrameDecoder

        /// Strangers may send less, and their payloads inflate to less.
        var isAuthenticated: Bool {
            get { decoder.authenticated }
            set { decoder.authenticated = newValue }
        }

        init(limits: Limits) {
            self.limits = limits
            decoder = FrameDecoder(limits: limits)
        }

        /// Cuts the next packet out of `bytes` and moves `offset` past it; nil if it is not complete.
        mutating func next(
            in bytes: UnsafeRawBufferPointer,
            from offset: inout Int
        ) throws(FrameError) -> Frame? {
            try decoder.next(in: bytes, from: &offset)
        }

        /// The payload of a packet, inflated.
        func payload(of frame: Frame) throws(PayloadError) -> [UInt8] {
            try frame.payload(limits: limits, authenticated: isAuthenticated)
        }
    }

    /// Frames replies and pushes.
    struct Writer {
        private let limits: Limits
        /// The number of the client's last request.
        var lastSequence: UInt16 = 0

        init(limits: Limits) {
            self.limits = limits
        }

        /// Writes a reply; one that is worth it is compressed.
        func write(
            _ payload: UnsafeRawBufferPointer,
            _ command: PacketCommand,
            _ sequence: UInt16,
            _ opcode: Opcode,
            _ compression: Compression,
            to connection: Connection
        ) {
            if payload.count < limits.compressFromBytes {
                let header = PacketHeader(
                    command: command.rawValue,
                    sequence: sequence,
                    opcode: opcode.rawValue,
                    length: payload.count
                )
                withUnsafeTemporaryAllocation(byteCount: PacketHeader.size, alignment: 8) { bytes in
                    header.write(to: bytes)
                    connection.write(UnsafeRawBufferPointer(bytes))
                }
                return connection.write(payload)
            }
            var packet: [UInt8] = []
            encodePacket(
                command: command,
                sequence: sequence,
                opcode: opcode.rawValue,
                payload: payload,
                compression: compression,
                compressFrom: limits.compressFromBytes,
                into: &packet
            )
            connection.write(packet)
        }

        /// Writes a push, whose packet was encoded without a number.
        func write(push packet: [UInt8], to connection: Connection) {
            // Half the number space away from the client's own numbers, and below 256: some clients match
            // replies by number alone, and some read the high byte as part of the command.
            let sequence = (lastSequence &+ 128) & 0xFF
            withUnsafeTemporaryAllocation(byteCount: PacketHeader.size, alignment: 8) { header in
                packet.withUnsafeBytes { packet in
                    header.copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: packet[..<PacketHeader.size])
                    )
                    header.storeBytes(of: sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
                    connection.write(UnsafeRawBufferPointer(header))
                    connection.write(UnsafeRawBufferPointer(rebasing: packet[PacketHeader.size...]))
                }
            }
        }
    }
}

extension Limits {
    /// The bytes that a reply may have beyond the limit of its page. With the standard limits a
    /// reply takes 1 MiB at most, which every known client reads.
    private static let replySlack = 124 * 1024

    /// The longest payload that is sent: a page with its surroundings, within what a frame can
    /// hold.
    var mostPayloadBytes: Int {
        min(
            maxReplyBytes.addingReportingOverflow(Self.replySlack).partialValue,
            PacketHeader.maxLength
        )
    }
}
