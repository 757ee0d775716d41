import Dispatch
import Glibc
import TambourProtocol

/// One connection to the admin socket. It receives one request line and sends answer lines.
///
/// `@unchecked Sendable`: until the request line is complete, only the queue passed to `readLine`
/// uses the connection. Afterwards only the code that received the line uses it.
final class AdminConnection: @unchecked Sendable {
    private enum Reading {
        case goesOn
        /// The request line; nil if no complete line arrived.
        case ended(String?)
    }

    private let descriptor: Int32
    private var source: (any DispatchSourceRead)?
    private var line: [UInt8] = []
    /// Called when the dispatch source no longer uses the descriptor.
    private var afterReading: (() -> Void)?

    /// The length of the longest request line, in bytes. An announcement fits even if every byte is
    /// escaped.
    private static let maxLine = 40_000
    /// The time limit for a request to arrive.
    private static let patience = DispatchTimeInterval.seconds(10)
    /// The time in seconds after which the connection is closed if the client reads no bytes of an
    /// answer.
    private static let writePatience = 10

    /// - Parameter descriptor: the socket. The connection becomes its owner.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        UnixSocket.setTimeouts(descriptor, seconds: Self.writePatience)
    }

    /// Whether the connection still waits for the request.
    var isReading: Bool { source != nil }

    /// Reads the first line without blocking the queue.
    ///
    /// - Parameter then: called once on the queue, unless `refuse` is called earlier. It receives
    ///   nil when the line is too long or does not end in time, and when the client closes the
    ///   connection first.
    func readLine(on queue: DispatchQueue, then: @escaping @Sendable (String?) -> Void) {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        self.source = source
        source.setEventHandler { [self] in
            guard isReading, case .ended(let line) = readSome() else { return }
            endReading { then(line) }
        }
        source.setCancelHandler { [self] in
            afterReading?()
            afterReading = nil
        }
        source.activate()
        queue.asyncAfter(deadline: .now() + Self.patience) { [weak self] in
            guard let self, isReading else { return }
            endReading { then(nil) }
        }
    }

    private func readSome() -> Reading {
        var chunk = [UInt8](repeating: 0, count: Self.maxLine)
        let count = recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return .goesOn }
        guard count > 0 else { return .ended(nil) }
        line += chunk[..<count]
        if let end = line.firstIndex(of: UInt8(ascii: "\n")) {
            return .ended(String(decoding: line[..<end], as: UTF8.self))
        }
        return line.count < Self.maxLine ? .goesOn : .ended(nil)
    }

    private func endReading(_ body: @escaping () -> Void) {
        afterReading = body
        source?.cancel()
        source = nil
    }

    /// - Returns: false if the client has closed the connection or does not read the answer.
    @discardableResult
    func write(_ text: String) -> Bool {
        UnixSocket.write(descriptor, text)
    }

    /// Sends a reason and closes without waiting for a request.
    func refuse(_ reason: String) {
        guard !isReading else { return endReading { self.refuse(reason) } }
        write("!\(reason)\n=\n")
        close()
    }

    func close() {
        Glibc.close(descriptor)
    }
}
