/// A layer between a connection's socket and its delegate, such as TLS or WebSocket framing.
///
/// A layer converts bytes and uses no socket, clock or queue. It is called only on the lane of its
/// connection. A connection without layers has no extra cost.
package protocol ConnectionLayer: AnyObject {
    /// Whether an incomplete record waits inside the layer.
    var hasPartialInput: Bool { get }

    /// Whether the layer is in the middle of an expensive opening, such as a TLS handshake. The
    /// lane limits the opening steps of a round. A layer that opens cheaply returns false.
    var isOpening: Bool { get }

    /// Appends the first bytes for the peer. Called once, before all other methods.
    func open(into output: inout [UInt8])

    /// Converts bytes that arrive from the socket or from the layer below.
    ///
    /// The layer keeps the bytes of an incomplete record, up to a limit.
    /// - Parameters:
    ///   - bytes: valid only during the call.
    ///   - input: receives the converted bytes for the delegate. A layer that inflates limits their
    ///     number.
    ///   - answer: receives the bytes to send to the peer in response, even when the call throws.
    /// - Returns: whether the peer has ended its side of the stream in the layer's protocol.
    func received(
        _ bytes: UnsafeRawBufferPointer,
        into input: inout [UInt8],
        answering answer: inout [UInt8]
    ) throws(LayerError) -> Bool

    /// Encloses bytes that the delegate has written. A layer that is still opening keeps them for
    /// later.
    func enclose(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8])

    /// Appends the bytes that end the server's side of the stream. The layer encloses no bytes
    /// afterwards.
    func close(into output: inout [UInt8])
}

extension ConnectionLayer {
    package var isOpening: Bool { false }
}

/// Creates the layers of one accepted connection, beginning at the socket. Called on the queues of
/// listeners.
package typealias LayerFactory = @Sendable () -> sending [any ConnectionLayer]

/// The failure of a layer. The text is for the log.
package struct LayerError: Error, Hashable {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
