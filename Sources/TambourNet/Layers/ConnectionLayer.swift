/// A layer between a connection's socket and its delegate, such as TLS or WebSocket framing.
///
/// A layer only converts bytes. It does not use a socket, a clock or a queue. The lane of the
/// connection is its only caller. A connection without layers has no extra cost.
package protocol ConnectionLayer: AnyObject {
    /// Whether an incomplete record waits inside the layer.
    var hasPartialInput: Bool { get }

    /// Whether the layer is in the middle of an expensive opening, such as a TLS handshake. The
    /// lane limits the number of opening steps in a round. If opening is cheap, the layer returns
    /// false.
    var isOpening: Bool { get }

    /// Appends the first bytes for the peer. Called once, before all other methods.
    func open(into output: inout [UInt8])

    /// Converts bytes that arrive from the socket or from the layer below.
    ///
    /// The layer keeps the bytes of an incomplete record, up to a limit.
    /// - Parameters:
    ///   - bytes: valid only during the call.
    ///   - input: receives the converted bytes for the delegate. If the layer decompresses bytes,
    ///     it must limit their number.
    ///   - answer: receives the bytes that the layer sends to the peer in response. They are sent
    ///     even when the call throws.
    /// - Returns: whether the peer has ended its side of the stream in the layer's protocol.
    func received(
        _ bytes: UnsafeRawBufferPointer,
        into input: inout [UInt8],
        answering answer: inout [UInt8]
    ) throws(LayerError) -> Bool

    /// Encloses bytes that the delegate has written. If the layer is still opening, it keeps them
    /// for later.
    func enclose(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8])

    /// Appends the bytes that end the server's side of the stream. Do not call `enclose` after this
    /// call.
    func close(into output: inout [UInt8])
}

extension ConnectionLayer {
    package var isOpening: Bool { false }
}

/// Creates the layers of one accepted connection, beginning at the socket. Listeners call it on
/// their queues.
package typealias LayerFactory = @Sendable () -> sending [any ConnectionLayer]

/// The failure of a layer. The text is for the log.
package struct LayerError: Error, Hashable {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
