/// Something between a connection's socket and its delegate, such as TLS or WebSocket framing.
///
/// A layer turns bytes into bytes and knows no socket, clock or queue. Its connection calls it on its
/// lane only. A connection without layers costs nothing more than before.
package protocol ConnectionLayer: AnyObject {
    /// Whether an incomplete record waits inside the layer.
    var hasPartialInput: Bool { get }

    /// Appends what the peer has to be sent first; called once, before everything else.
    func open(into output: inout [UInt8])

    /// Takes bytes from below.
    ///
    /// The layer keeps the bytes of an incomplete record, and bounds how many these are.
    /// - Parameters:
    ///   - bytes: valid only during the call.
    ///   - input: gets what the delegate is to see; a layer that inflates bounds it.
    ///   - answer: gets what the peer has to be sent for it, also when the call throws.
    /// - Returns: whether the peer has ended its side of the stream in the layer's own way.
    func received(
        _ bytes: UnsafeRawBufferPointer,
        into input: inout [UInt8],
        answering answer: inout [UInt8]
    ) throws(LayerError) -> Bool

    /// Encloses bytes that the delegate has written; a layer that is still opening keeps them.
    func enclose(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8])

    /// Appends what ends our side of the stream; nothing is enclosed afterwards.
    func close(into output: inout [UInt8])
}

/// A layer cannot go on; the text is for the log.
package struct LayerError: Error, Hashable {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
