package import TambourProtocol

/// A packet that is still in its read buffer.
package struct Frame {
    /// The ten bytes before the payload.
    package let header: PacketHeader
    /// The payload as received. Valid only as long as the bytes given to the decoder.
    package let wirePayload: UnsafeRawBufferPointer

    package init(header: PacketHeader, wirePayload: UnsafeRawBufferPointer) {
        self.header = header
        self.wirePayload = wirePayload
    }

    /// Returns the payload copied out of the buffer, inflated if it is compressed.
    ///
    /// Only a limit bounds the result, whatever the factor in `flags`: some senders put a constant
    /// there.
    /// - Parameter authenticated: Before login a payload may inflate to `maxFrameBytesBeforeLogin`,
    ///   the limit of uncompressed ones; after login to `maxInflatedBytes`.
    /// - Throws: `PayloadError` if it is damaged, too long, or compressed with zstd.
    package func payload(
        limits: Limits,
        authenticated: Bool = true
    ) throws(PayloadError) -> [UInt8] {
        switch header.flags {
        case 0: return [UInt8](wirePayload)
        case 255: throw PayloadError(reason: "zstd is not supported")
        default:
            do throws(LZ4.Failure) {
                let limit =
                    authenticated
                    ? limits.maxInflatedBytes
                    : min(limits.maxInflatedBytes, limits.maxFrameBytesBeforeLogin)
                return try LZ4.decompress(wirePayload, limit: limit)
            } catch {
                throw switch error {
                case .damaged: PayloadError(reason: "not an LZ4 block")
                case .tooLong(let limit):
                    PayloadError(reason: "inflates to more than \(limit) bytes")
                }
            }
        }
    }

    /// Returns the packet, copied out of the buffer.
    /// - Throws: `PayloadError`, see `payload(limits:)`.
    package func packet(limits: Limits) throws(PayloadError) -> Packet {
        Packet(header: header, payload: try payload(limits: limits))
    }
}
