import TambourProtocol

/// Appends a packet to `output`. Compresses the payload if the receiver supports it and the result
/// is smaller.
///
/// - Parameters:
///   - payload: At most `PacketHeader.maxLength` bytes, the limit of a frame.
///   - compressFrom: The smallest payload, in bytes, that this function tries to compress. Below
///     350 bytes, compression never saves bytes.
/// - Returns: false when the payload is too long for a frame. In this case `output` stays
///   unchanged.
@discardableResult
package func encodePacket(
    version: UInt8 = PacketHeader.writtenVersion,
    command: PacketCommand,
    sequence: UInt16,
    opcode: UInt16,
    payload: UnsafeRawBufferPointer,
    compression: Compression = .none,
    compressFrom: Int = Limits.standard.compressFromBytes,
    into output: inout [UInt8]
) -> Bool {
    guard payload.count <= PacketHeader.maxLength else { return false }
    // The buffer has the size of the uncompressed packet, because a larger compressed block is
    // useless. It is not filled with zeros first, because a reply may have a million bytes.
    let packet = [UInt8](unsafeUninitializedCapacity: PacketHeader.size + payload.count) {
        room,
        count in
        let packet = UnsafeMutableRawBufferPointer(room)
        let body = UnsafeMutableRawBufferPointer(rebasing: packet[PacketHeader.size...])
        var header = PacketHeader(
            version: version,
            command: command.rawValue,
            sequence: sequence,
            opcode: opcode,
            length: payload.count
        )
        if payload.count >= max(compressFrom, 1), payload.count <= compression.maxRawBytes {
            let smaller = UnsafeMutableRawBufferPointer(rebasing: body[..<(payload.count - 1)])
            let size = LZ4.compress(payload, into: smaller)
            let factor = size > 0 ? payload.count / size + 1 : .max
            if factor <= compression.maxFactor {
                header.flags = UInt8(factor)
                header.length = size
            }
        }
        if header.flags == 0 { body.copyMemory(from: payload) }
        header.write(to: packet)
        count = PacketHeader.size + header.length
    }
    if output.isEmpty { output = packet } else { output += packet }
    return true
}

/// Appends a packet to `output`, see
/// `encodePacket(version:command:sequence:opcode:payload:compression:compressFrom:into:)`.
@discardableResult
package func encodePacket(
    version: UInt8 = PacketHeader.writtenVersion,
    command: PacketCommand,
    sequence: UInt16,
    opcode: UInt16,
    payload: [UInt8],
    compression: Compression = .none,
    compressFrom: Int = Limits.standard.compressFromBytes,
    into output: inout [UInt8]
) -> Bool {
    payload.withUnsafeBytes {
        encodePacket(
            version: version,
            command: command,
            sequence: sequence,
            opcode: opcode,
            payload: $0,
            compression: compression,
            compressFrom: compressFrom,
            into: &output
        )
    }
}
