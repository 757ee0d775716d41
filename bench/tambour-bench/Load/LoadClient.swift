import TambourNet

/// Receives the events of a load run's clients, always on the run's lane.
protocol LoadSink: AnyObject {
    /// The client is logged in and may send.
    func ready(_ client: LoadClient)
    /// The server acknowledged the client's oldest unacknowledged message.
    func acknowledged(_ client: LoadClient)
    /// Message `number` reached the client.
    func delivered(_ number: UInt32, to client: LoadClient)
    /// The client cannot continue.
    func failed(_ client: LoadClient, _ reason: String)
}

/// One connection of a load run; each protocol has a subclass.
///
/// The run's lane owns it.
class LoadClient: ConnectionDelegate {
    final let index: Int
    final unowned let sink: any LoadSink
    final private(set) var connection: Connection?
    /// The time at which the client started to connect, from `monotonicNow()`.
    final var dialedAt: UInt64 = 0
    final private(set) var bytesIn = 0
    final private(set) var bytesOut = 0

    init(index: Int, sink: any LoadSink) {
        self.index = index
        self.sink = sink
    }

    /// Called when the connection is open: starts the handshake.
    func opened() {}

    /// Handles every complete packet in `bytes`.
    ///
    /// - Returns: the size of these packets in bytes.
    func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int { bytes.count }

    /// Sends a message; `text` starts with the message's number, see `Corpus`.
    func send(_ text: Bytes100, number: UInt32) {}

    /// Sends a keep-alive, as an app does, because servers close connections that are silent for
    /// minutes.
    func keepAlive() {}

    final func write(_ bytes: UnsafeRawBufferPointer) {
        bytesOut += bytes.count
        connection?.write(bytes)
    }

    final func write(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0) }
    }

    final func close() {
        connection?.close(.local("done"))
    }

    // MARK: - ConnectionDelegate

    final func connectionOpened(_ connection: Connection) {
        self.connection = connection
        opened()
    }

    final func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int {
        do {
            let consumed = try consume(bytes)
            bytesIn += consumed
            return consumed
        } catch {
            sink.failed(self, "\(error)")
            connection.close(.local("failed"))
            return bytes.count
        }
    }

    final func connectionClosed(_ connection: Connection, reason: CloseReason) {
        self.connection = nil
        if case .local = reason { return }
        sink.failed(self, "the server closed the connection (\(reason))")
    }
}

/// An error of a run, with a description for the user.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
