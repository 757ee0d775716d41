/// A packet copied out of its buffer.
package struct Packet: Hashable, Sendable {
    /// The header as received: `flags` and `length` describe the wire payload.
    package var header: PacketHeader
    /// The inflated payload.
    package var payload: [UInt8]

    package init(header: PacketHeader, payload: [UInt8]) {
        self.header = header
        self.payload = payload
    }
}
