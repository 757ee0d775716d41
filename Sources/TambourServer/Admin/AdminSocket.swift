import Dispatch
import Glibc
import Logging
import TambourMessenger
import TambourNet

/// The socket for admin commands, a Unix socket of mode 0600 in the data directory.
///
/// A request is one line of words separated by tabs. In the answer, a line that begins with `>` is
/// output, and a line that begins with `!` is an error. The line `=` ends the answer. Each
/// connection has its own dispatch source for reading, so a silent connection blocks no other
/// connection. Commands run concurrently and may block. Commands that may take long run one after
/// another on a separate queue.
///
/// `@unchecked Sendable`: only `queue` touches `connections`, and no other state changes after
/// `init`.
final class AdminSocket: @unchecked Sendable {
    private let service: AdminService
    private let logger: Logger
    private let path: String
    private let acceptor: Acceptor
    private let maxConnections: Int
    /// The queue that accepts connections and reads requests. It never blocks.
    private let queue = DispatchQueue(label: "tambour.admin")
    private let shortQueue = DispatchQueue(label: "tambour.admin-short", attributes: .concurrent)
    private let longQueue = DispatchQueue(label: "tambour.admin-long")
    /// The open connections, the oldest first.
    private var connections: [AdminConnection] = []

    /// - Parameter onExhausted: called when the process has no free descriptor for an
    ///   administrator's connection.
    init(
        path: String,
        backend: any AdminBackend,
        maxConnections: Int,
        logger: Logger,
        onExhausted: @escaping @Sendable () -> Void
    ) throws {
        self.path = path
        self.logger = logger
        self.maxConnections = max(1, maxConnections)
        service = AdminService(backend)
        unlink(path)
        acceptor = Acceptor(
            descriptor: try UnixSocket.listen(path),
            queue: queue,
            accept: UnixSocket.accept
        )
        acceptor.start(onExhausted: onExhausted) { [weak self] descriptor, _ in
            guard let self else {
                close(descriptor)
                return
            }
            welcome(descriptor)
        }
    }

    func stop() {
        acceptor.stop()
        unlink(path)
    }

    private func welcome(_ descriptor: Int32) {
        let connection = AdminConnection(descriptor)
        if connections.count >= maxConnections {
            guard let silent = connections.first(where: \.isReading) else {
                return connection.refuse(
                    "too many admin commands are running; try again when one has finished"
                )
            }
            silent.refuse(
                "this connection sent no command and another administrator is waiting; "
                    + "connect again"
            )
            leave(silent)
        }
        connections.append(connection)
        connection.readLine(on: queue) { [weak self] line in
            guard let self else { return connection.close() }
            received(line, on: connection)
        }
    }

    private func leave(_ connection: AdminConnection) {
        connections.removeAll { $0 === connection }
    }

    private func received(_ line: String?, on connection: AdminConnection) {
        guard let line,
            let request = AdminService.Request(
                words: line.split(separator: "\t").map(String.init)
            )
        else {
            leave(connection)
            return connection.refuse("not an admin command")
        }
        // Capture `self` strongly, so that the administrator gets the whole answer.
        (request.isLong ? longQueue : shortQueue).async {
            self.answer(request, connection)
            self.queue.async { self.leave(connection) }
        }
    }

    private func answer(_ request: AdminService.Request, _ connection: AdminConnection) {
        defer { connection.close() }
        do {
            try service.run(request) { line in
                guard connection.write(">\(Self.printable(line))\n") else {
                    throw AdminService.Failure(description: "the other side has gone")
                }
            }
        } catch {
            // The log must not contain phone numbers, so it omits the arguments that the
            // administrator typed.
            let reason = (error as? AdminService.Failure)?.reason ?? "\(error)"
            logger.notice(
                "an admin command failed",
                metadata: [
                    "command": "\(request.words[0])", "reason": "\(Self.printable(reason))",
                ]
            )
            connection.write("!\(Self.printable("\(error)"))\n")
        }
        connection.write("=\n")
    }

    /// Replaces control characters. Users choose their names, so a name could otherwise break a
    /// line or control a terminal.
    private static func printable(_ line: String) -> String {
        var text = ""
        for scalar in line.unicodeScalars {
            text.unicodeScalars.append(
                scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
            )
        }
        return text
    }
}
