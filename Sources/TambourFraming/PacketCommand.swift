/// The role of a packet in its exchange: byte 1 of the header.
package enum PacketCommand: UInt8, Hashable, Sendable {
    /// A request from the client, or a push from the server.
    case request = 0
    /// The reply for success.
    case ok = 1
    /// The reply "not found". The server reads it but never sends it, because a known client
    /// ignores it and waits forever.
    case notFound = 2
    /// The reply for failure. Its payload is an error map.
    case error = 3
}
