import TambourFraming
import TambourNet
import TambourProtocol

/// Decodes the packets of a session's requests, and encodes replies and pushes as packets. A packet
/// has a header of ten bytes.
///
/// Only this codec, `EncodedPush` and `Reply` write sequence numbers into packets. Whether a packet
/// is compressed is decided in `TambourFraming/FrameEncoder.swift`.
enum PacketCodec {
    /// Returns the largest size of a page, in bytes of MessagePack.
    static func replyBudget(_ limits: Limits) -> Int { limits.maxReplyBytes }

    /// Splits the byte stream into packets.
    struct Reader {
        private let limits: Limits
        private var decoder: FrameDecoder

        /// Whether the client has logged in. Strangers have lower limits for frames and for
        /// inflated payloads.
        var isAuthenticated: Bool {
            get { decoder.authenticated }
            set { decoder.authenticated = newValue }
        }

        init(limits: Limits) {
            self.limits = limits
            decoder = FrameDecoder(limits: limits)
        }

        /// Returns the next packet in `bytes` and advances `offset` past it; nil if the packet is
        /// incomplete.
        mutating func next(
            in bytes: UnsafeRawBufferPointer,
            from offset: inout Int
        ) throws(FrameError) -> Frame? {
            try decoder.next(in: bytes, from: &offset)
        }

        /// Returns the inflated payload of a packet.
        func payload(of frame: Frame) throws(PayloadError) -> [UInt8] {
            try frame.payload(limits: limits, authenticated: isAuthenticated)
        }
    }

    /// Frames replies and pushes.
    struct Writer {
        private let limits: Limits
        /// The sequence number of the client's last request.
        var lastSequence: UInt16 = 0

        init(limits: Limits) {
            self.limits = limits
        }

        /// Writes a reply. Compresses payloads of at least `compressFromBytes`.
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

        /// Writes a push whose packet was encoded without a sequence number.
        func write(push packet: [UInt8], to connection: Connection) {
            // The sequence number is 128 ahead of the client's last one, modulo 256. It is far from
            // the client's own numbers, because some clients match replies to requests by the
            // number alone. It is below 256, because some clients read the high byte as part of the
            // command.
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
    /// The number of bytes by which a reply may be longer than a page. With the standard limits, a
    /// reply has at most 1 MiB, which every known client reads.
    private static let replySlack = 124 * 1024

    /// The largest size of a payload, in bytes: a page plus `replySlack`, but not more than a
    /// header can express.
    var mostPayloadBytes: Int {
        min(
            maxReplyBytes.addingReportingOverflow(Self.replySlack).partialValue,
            PacketHeader.maxLength
        )
    }
}
