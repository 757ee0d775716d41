import TambourProtocol

/// The ten bytes before every payload, numbers big-endian.
///
///      0     1     2           4           6       7                   10
///     ┌─────┬─────┬───────────┬───────────┬───────┬───────────────────┬─────────────┐
///     │ ver │ cmd │ seq       │ opcode    │ flags │ length            │ payload …   │
///     │ u8  │ u8  │ u16       │ u16       │ u8    │ u24               │ length bytes│
///     └─────┴─────┴───────────┴───────────┴───────┴───────────────────┴─────────────┘
///
/// `flags`: 0 plain, 1…254 an LZ4 block with `length × flags > raw length`, 255 zstd. `length`
/// counts the payload as sent. Specification: protocol-spec, framing.
package struct PacketHeader: Hashable, Sendable {
    /// The length of a header in bytes.
    package static let size = 10
    /// The largest value of `length`, in bytes.
    package static let maxLength = 0xFF_FFFF

    /// The protocol version: 10 in packets that the server sends, 10 or 11 in packets that it
    /// accepts.
    package var version: UInt8
    /// A `PacketCommand`, or an unknown number.
    package var command: UInt8
    /// The sequence number. The side that starts the exchange chooses it, and the reply repeats it.
    package var sequence: UInt16
    /// The opcode, which defines the payload. A reply repeats it.
    package var opcode: UInt16
    /// The compression of the payload.
    package var flags: UInt8
    /// The number of payload bytes that follow.
    package var length: Int

    package init(
        version: UInt8 = Self.writtenVersion,
        command: UInt8,
        sequence: UInt16,
        opcode: UInt16,
        flags: UInt8 = 0,
        length: Int
    ) {
        self.version = version
        self.command = command
        self.sequence = sequence
        self.opcode = opcode
        self.flags = flags
        self.length = length
    }

    /// Parses the first ten bytes, which must be present.
    package init(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count >= Self.size)
        version = bytes[0]
        command = bytes[1]
        sequence = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        opcode = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self))
        let word = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 6, as: UInt32.self))
        flags = UInt8(word >> 24)
        length = Int(word & 0xFF_FFFF)
    }

    /// Writes ten bytes. `bytes` must have room for them, and `length` must fit 24 bits.
    package func write(to bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count >= Self.size && length >= 0 && length <= Self.maxLength)
        bytes[0] = version
        bytes[1] = command
        bytes.storeBytes(of: sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
        bytes.storeBytes(of: opcode.bigEndian, toByteOffset: 4, as: UInt16.self)
        let word = UInt32(flags) << 24 | UInt32(length)
        bytes.storeBytes(of: word.bigEndian, toByteOffset: 6, as: UInt32.self)
    }
}
