/// Why a connection ended.
package enum CloseReason: Hashable, Sendable {
    /// The peer closed its side; everything it had sent was presented to the delegate.
    case peerClosed
    /// The socket failed; the value is an `errno`.
    case reset(Int32)
    /// A layer between socket and delegate failed; the text is for the log.
    case layer(String)
    /// We closed it; the text is for the log.
    case local(String)
    /// The lane was stopped.
    case laneStopped
}
