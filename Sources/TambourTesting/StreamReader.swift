package import TambourFraming
import TambourProtocol

/// The reading side of a connection. It keeps the bytes that are not consumed yet for the next
/// read.
package struct StreamReader {
    package var decoder = FrameDecoder(limits: .standard)
    package var unread: [UInt8] = []
    package var packets: [Packet] = []

    package init() {}

    package mutating func receive(_ bytes: [UInt8]) throws {
        unread += bytes
        var offset = 0
        let (decoder, presented) = (decoder, unread)
        defer { unread.removeFirst(offset) }
        try presented.withUnsafeBytes { presented in
            while let frame = try decoder.next(in: presented, from: &offset) {
                packets.append(try frame.packet(limits: .standard))
            }
        }
    }
}
