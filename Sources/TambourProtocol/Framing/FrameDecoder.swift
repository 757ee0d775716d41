/// Cuts a stream of bytes into frames, however the network cut it before.
///
/// It keeps no bytes: the caller presents everything that was not consumed, followed by what came since, again.
package struct FrameDecoder: Sendable {
    /// Whether the peer has logged in: strangers may send `maxFrameBytesBeforeLogin`, users `maxFrameBytes`.
    package var authenticated = false

    private let limits: Limits

    package init(limits: Limits) {
        self.limits = limits
    }

    /// Cuts the next frame out of `bytes` and moves `offset` behind it; nil, and no move, if it is not all there.
    ///
    /// A bad byte is refused when it arrives, not when the rest of the header does.
    /// - Throws: `FrameError`; where the next frame begins is not known any more.
    package func next(
        in bytes: UnsafeRawBufferPointer,
        from offset: inout Int
    ) throws(FrameError) -> Frame? {
        let left = bytes.count - offset
        guard left > 0 else { return nil }
        guard PacketHeader.reads(version: bytes[offset]) else { throw .version(bytes[offset]) }
        if left > 1, bytes[offset + 1] > 3 { throw .command(bytes[offset + 1]) }
        guard left >= PacketHeader.size else { return nil }

        let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
        let header = PacketHeader(rest)
        let limit = authenticated ? limits.maxFrameBytes : limits.maxFrameBytesBeforeLogin
        guard header.length <= limit else { throw .tooLong(length: header.length, limit: limit) }
        let size = PacketHeader.size + header.length
        guard left >= size else { return nil }
        offset += size
        return Frame(
            header: header,
            wirePayload: UnsafeRawBufferPointer(rebasing: rest[PacketHeader.size..<size])
        )
    }
}
