/// A packet that has left its buffer.
package struct Packet: Hashable, Sendable {
    /// The header as it came: `flags` and `length` are those of the wire.
    package var header: PacketHeader
    /// The payload, inflated.
    package var payload: [UInt8]

    package init(header: PacketHeader, payload: [UInt8]) {
        self.header = header
        self.payload = payload
    }
}
