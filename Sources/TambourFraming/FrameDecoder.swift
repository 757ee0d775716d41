package import TambourProtocol

/// Splits a stream of bytes into frames, however the network fragmented it.
///
/// It stores no bytes. The caller presents all unconsumed bytes again, followed by the new bytes.
package struct FrameDecoder: Sendable {
    /// Whether the peer has logged in. The limit of a frame is `maxFrameBytesBeforeLogin` before
    /// login, and `maxFrameBytes` after it.
    package var authenticated = false

    private let limits: Limits

    package init(limits: Limits) {
        self.limits = limits
    }

    /// Returns the next frame of `bytes` and advances `offset` past it. If the frame is incomplete,
    /// returns nil and keeps `offset`.
    ///
    /// A bad version or command is rejected as soon as its byte arrives, even if the header is
    /// incomplete.
    /// - Throws: `FrameError`. After an error, the start of the next frame is unknown.
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
