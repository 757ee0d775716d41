/// The layers of one connection, beginning at the socket.
final class LayerStack {
    private let layers: [any ConnectionLayer]
    /// Whether the peer's first bytes have reached the layers.
    var hasBegun = false

    /// - Returns: nil if `layers` is empty.
    init?(_ layers: [any ConnectionLayer]) {
        if layers.isEmpty { return nil }
        self.layers = layers
    }

    var hasPartialInput: Bool { layers.contains(where: \.hasPartialInput) }

    var isOpening: Bool { layers.contains(where: \.isOpening) }

    func open(into output: inout [UInt8]) {
        for index in layers.indices {
            var opening: [UInt8] = []
            layers[index].open(into: &opening)
            enclose(opening, below: index, into: &output)
        }
    }

    /// Passes bytes from the socket through all layers; see `ConnectionLayer.received`.
    func received(
        _ bytes: UnsafeRawBufferPointer,
        into input: inout [UInt8],
        answering output: inout [UInt8]
    ) throws(LayerError) -> Bool {
        if layers.count == 1 {
            return try layers[0].received(bytes, into: &input, answering: &output)
        }
        var bytes = [UInt8](bytes)
        var hasEnded = false
        for (index, layer) in layers.enumerated() {
            var (opened, answer): ([UInt8], [UInt8]) = ([], [])
            var failure: LayerError?
            bytes.withUnsafeBytes { bytes in
                do throws(LayerError) {
                    let ended = try layer.received(bytes, into: &opened, answering: &answer)
                    hasEnded = ended || hasEnded
                } catch {
                    failure = error
                }
            }
            enclose(answer, below: index, into: &output)
            if let failure { throw failure }
            bytes = opened
        }
        input += bytes
        return hasEnded
    }

    /// Encloses the delegate's bytes in all layers.
    func enclose(_ bytes: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        if layers.count == 1 { return layers[0].enclose(bytes, into: &output) }
        enclose([UInt8](bytes), below: layers.count, into: &output)
    }

    func close(into output: inout [UInt8]) {
        for index in layers.indices.reversed() {
            var ending: [UInt8] = []
            layers[index].close(into: &ending)
            enclose(ending, below: index, into: &output)
        }
    }

    /// Encloses bytes from the layer at `index` in all layers below this layer.
    private func enclose(_ bytes: [UInt8], below index: Int, into output: inout [UInt8]) {
        if bytes.isEmpty { return }
        var bytes = bytes
        for layer in layers[..<index].reversed() {
            var enclosed: [UInt8] = []
            bytes.withUnsafeBytes { layer.enclose($0, into: &enclosed) }
            bytes = enclosed
        }
        output += bytes
    }
}
