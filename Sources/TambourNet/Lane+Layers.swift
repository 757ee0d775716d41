/// Serves connections with layers. Input from the socket and output from the delegate pass through
/// the layers.
extension Lane {
    /// The time limit for sending the last bytes of a connection after one of its layers has
    /// failed.
    private static let failureDrain = Duration.seconds(1)

    func openLayers(of connection: Connection) {
        guard let layers = connection.layers else { return }
        connection.isOpening = layers.isOpening
        var output: [UInt8] = []
        layers.open(into: &output)
        emit(output, to: connection)
    }

    /// Reads once, passes the bytes through the layers, and presents the result to the delegate.
    func readOnce(_ connection: Connection, through layers: LayerStack) {
        let limit = connection.isServedLast ? lowPriority.readBytes : Self.readCapacity
        let count = read(
            connection,
            into: .init(rebasing: readBuffer[..<min(limit, Self.readCapacity)])
        )
        if count == 0 { return }
        if connection.isOpening, !mayOpen(connection, layers) { return }
        var (input, answer): ([UInt8], [UInt8]) = ([], [])
        var hasEnded = false
        do throws(LayerError) {
            let bytes = UnsafeRawBufferPointer(rebasing: readBuffer[..<count])
            hasEnded = try layers.received(bytes, into: &input, answering: &answer)
        } catch {
            connection.layers = nil
            dropCollected(of: connection)
            emit(answer, to: connection)
            return bidFarewell(
                connection,
                .layer(error.reason),
                within: Self.failureDrain,
                patience: Self.failureDrain
            )
        }
        // Charge the answers that the layers themselves make, because no delegate charges them.
        charge(answer.count)
        emit(answer, to: connection)
        guard connection.phase == .open else { return }
        if connection.isOpening, !layers.isOpening {
            connection.isOpening = false
            connection.delegate?.connectionLayersOpened(connection)
            guard connection.phase == .open else { return }
        }
        if !input.isEmpty { presentOpened(input, to: connection) }
        guard connection.phase == .open else { return }
        connection.delegate?.connectionRoundEnded(connection)
        if hasEnded, connection.phase == .open { endInput(connection) }
    }

    /// Charges one opening step to the round.
    ///
    /// - Returns: false when the delegate has refused the connection.
    private func mayOpen(_ connection: Connection, _ layers: LayerStack) -> Bool {
        charge(lowPriority.workPerOpening)
        if layers.hasBegun { return true }
        layers.hasBegun = true
        return connection.delegate?.connectionMayOpenLayers(connection) == true
            && connection.phase == .open
    }

    /// Drops collected output after a layer has failed. The layers have not yet enclosed this
    /// output, so it must not be sent.
    private func dropCollected(of connection: Connection) {
        connection.firstSegment = -1
        connection.lastSegment = -1
        connection.collectedBytes = 0
    }

    private func presentOpened(_ input: [UInt8], to connection: Connection) {
        input.withUnsafeBytes { input in
            guard let kept = connection.input else {
                let kept = ByteStore(input, arrivalUs: arrivalUs)
                connection.input = kept
                return presentKept(kept, to: connection)
            }
            kept.append(input)
            kept.arrivalUs = arrivalUs
            presentKept(kept, to: connection)
        }
    }

    /// Encloses bytes of the delegate in the layers and sends them.
    func send(
        _ bytes: UnsafeRawBufferPointer,
        through layers: LayerStack,
        to connection: Connection
    ) {
        var output: [UInt8] = []
        layers.enclose(bytes, into: &output)
        emit(output, to: connection)
    }

    /// Encloses the collected output, beginning at `segment`, and sends it with one call.
    func flush(from segment: Int32, through layers: LayerStack, to connection: Connection) {
        var (segment, output) = (segment, [UInt8]())
        while segment >= 0 {
            let piece = segments[Int(segment)]
            layers.enclose(
                UnsafeRawBufferPointer(start: outputBuffer + piece.start, count: piece.count),
                into: &output
            )
            segment = piece.next
        }
        emit(output, to: connection)
    }

    /// Sends the collected output, then the bytes with which the layers end the server's side of
    /// the stream.
    func closeLayers(of connection: Connection) {
        guard let layers = connection.layers else { return }
        flush(connection)
        var output: [UInt8] = []
        layers.close(into: &output)
        emit(output, to: connection)
        connection.layers = nil
    }

    /// Sends bytes that have passed the layers.
    private func emit(_ bytes: [UInt8], to connection: Connection) {
        if bytes.isEmpty || connection.phase == .closed { return }
        bytes.withUnsafeBytes { bytes in
            if connection.backlog == nil {
                sendDirectly(bytes, to: connection)
            } else {
                keep(bytes, for: connection)
            }
        }
    }
}
