/// Appends a packet to `output`; the payload is compressed if that makes it smaller and the receiver can read it.
///
/// - Parameters:
///   - payload: At most `PacketHeader.maxLength` bytes, more cannot be framed.
///   - compressFrom: The shortest payload that is worth the try, bytes: below 350 it never pays.
/// - Returns: false when the payload is too long for a frame; nothing is appended then.
@discardableResult
package func encodePacket(
    version: UInt8 = PacketHeader.writtenVersion,
    command: PacketCommand,
    sequence: UInt16,
    opcode: UInt16,
    payload: UnsafeRawBufferPointer,
    compression: Compression = .none,
    compressFrom: Int = 512,
    into output: inout [UInt8]
) -> Bool {
    guard payload.count <= PacketHeader.maxLength else { return false }
    var header = PacketHeader(
        version: version,
        command: command.rawValue,
        sequence: sequence,
        opcode: opcode,
        length: payload.count
    )
    let first = output.count
    let isWorthTrying =
        payload.count >= max(compressFrom, 1) && payload.count <= compression.maxRawBytes

    // Room for the plain payload: a block that does not fit in less is of no use.
    output.append(contentsOf: repeatElement(0, count: PacketHeader.size + payload.count))
    output.withUnsafeMutableBytes { output in
        let packet = UnsafeMutableRawBufferPointer(rebasing: output[first...])
        let room = UnsafeMutableRawBufferPointer(rebasing: packet[PacketHeader.size...])
        if isWorthTrying {
            let smaller = UnsafeMutableRawBufferPointer(rebasing: room[..<(payload.count - 1)])
            let size = LZ4.compress(payload, into: smaller)
            let factor = size > 0 ? payload.count / size + 1 : .max
            if factor <= compression.maxFactor {
                header.flags = UInt8(factor)
                header.length = size
            }
        }
        if header.flags == 0 { room.copyMemory(from: payload) }
        header.write(to: packet)
    }
    output.removeLast(payload.count - header.length)
    return true
}

/// Appends a packet to `output`, see `encodePacket(version:command:sequence:opcode:payload:compression:compressFrom:into:)`.
@discardableResult
package func encodePacket(
    version: UInt8 = PacketHeader.writtenVersion,
    command: PacketCommand,
    sequence: UInt16,
    opcode: UInt16,
    payload: [UInt8],
    compression: Compression = .none,
    compressFrom: Int = 512,
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
