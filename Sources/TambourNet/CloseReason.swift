/// The reason why a connection ended.
package enum CloseReason: Hashable, Sendable {
    /// The peer closed its side. The lane had presented all bytes from the peer to the delegate.
    case peerClosed
    /// The socket failed. The value is an `errno`.
    case reset(Int32)
    /// A layer between the socket and the delegate failed. The text is for the log.
    case layer(String)
    /// This program closed the connection. The text is for the log.
    case local(String)
    /// The lane was stopped.
    case laneStopped
}
