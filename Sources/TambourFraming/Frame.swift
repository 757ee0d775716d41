package import TambourProtocol

/// A packet that is still in its read buffer.
package struct Frame {
    /// The ten bytes before the payload.
    package let header: PacketHeader
    /// The payload as received. It is valid only as long as the bytes that the decoder received are
    /// valid.
    package let wirePayload: UnsafeRawBufferPointer

    package init(header: PacketHeader, wirePayload: UnsafeRawBufferPointer) {
        self.header = header
        self.wirePayload = wirePayload
    }

    /// Returns a copy of the payload, inflated if it is compressed.
    ///
    /// The size of the result is limited. The factor in `flags` is ignored, because some senders
    /// put a constant there.
    /// - Parameter authenticated: whether the peer has logged in. Before login, the inflated
    ///   payload has at most `maxFrameBytesBeforeLogin` bytes, which is also the limit for
    ///   uncompressed payloads. After login, it has at most `maxInflatedBytes` bytes.
    /// - Throws: `PayloadError` if the payload is damaged, too long, or compressed with zstd.
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

    /// Returns a copy of the packet.
    /// - Throws: `PayloadError`, see `payload(limits:)`.
    package func packet(limits: Limits) throws(PayloadError) -> Packet {
        Packet(header: header, payload: try payload(limits: limits))
    }
}
