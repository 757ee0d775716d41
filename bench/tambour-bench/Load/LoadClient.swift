import TambourNet

/// What a load run hears of its clients, always on its lane.
protocol LoadSink: AnyObject {
    /// The client is logged in and may send.
    func ready(_ client: LoadClient)
    /// The server took the client's oldest message that was not acknowledged yet.
    func acknowledged(_ client: LoadClient)
    /// Message `number` reached the client.
    func delivered(_ number: UInt32, to client: LoadClient)
    /// The client cannot go on.
    func failed(_ client: LoadClient, _ reason: String)
}

/// One connection of a load run; a subclass for each protocol knows what the bytes mean.
///
/// Owned by the run's lane.
class LoadClient: ConnectionDelegate {
    final let index: Int
    final unowned let sink: any LoadSink
    final private(set) var connection: Connection?
    /// When it began to connect.
    final var dialedAt: UInt64 = 0
    final private(set) var bytesIn = 0
    final private(set) var bytesOut = 0

    init(index: Int, sink: any LoadSink) {
        self.index = index
        self.sink = sink
    }

    /// The connection stands: say hello.
    func opened() {}

    /// Handles every whole packet in `bytes`.
    ///
    /// - Returns: how many bytes they were.
    func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int { bytes.count }

    /// Sends a message; `text` begins with its number, see `Corpus`.
    func send(_ text: Bytes100, number: UInt32) {}

    /// Says that it is there, as an app does: servers close who says nothing for minutes.
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

/// What goes wrong in a run, in words.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
