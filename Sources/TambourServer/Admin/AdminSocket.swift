import Dispatch
import Glibc
import Logging

/// The admin commands' door: a Unix socket of mode 0600 in the data directory.
///
/// One line of words separated by tabs asks; lines that begin with `>` answer, one that begins with
/// `!` says what went wrong, and `=` ends it. Admin commands are few: they are served one by one on
/// a queue of their own, which may wait; those that may take long have another one, so that a check
/// of health never waits for them.
///
/// `@unchecked Sendable`: nothing in it changes after `init`, and the source is only cancelled.
final class AdminSocket: @unchecked Sendable {
    private let service: AdminService
    private let logger: Logger
    private let path: String
    private let listener: Int32
    private let queue = DispatchQueue(label: "tambour.admin")
    private let longQueue = DispatchQueue(label: "tambour.admin-long")
    private let source: any DispatchSourceRead

    /// Longest request line, bytes.
    private static let maxLine = 4096

    init(path: String, backend: any AdminBackend, logger: Logger) throws {
        self.path = path
        self.logger = logger
        service = AdminService(backend)
        unlink(path)
        listener = try UnixSocket.listen(path)
        source = DispatchSource.makeReadSource(fileDescriptor: listener, queue: queue)
        let descriptor = listener
        source.setCancelHandler { close(descriptor) }
        source.setEventHandler { [weak self] in self?.acceptOne() }
        source.activate()
    }

    func stop() {
        source.cancel()
        unlink(path)
    }

    private func acceptOne() {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        UnixSocket.setTimeouts(client, seconds: 10)
        guard let line = UnixSocket.readLine(client, limit: Self.maxLine),
            let request = AdminService.Request(
                words: line.split(separator: "\t").map(String.init)
            )
        else {
            UnixSocket.write(client, "!not an admin command\n=\n")
            close(client)
            return
        }
        guard request.isLong else { return answer(request, client) }
        // Held, not weak: whoever asked hears the end of it.
        longQueue.async { self.answer(request, client) }
    }

    private func answer(_ request: AdminService.Request, _ client: Int32) {
        defer { close(client) }
        do {
            try service.run(request) { line in
                guard UnixSocket.write(client, ">\(Self.printable(line))\n") else {
                    throw AdminService.Failure(description: "the other side has gone")
                }
            }
        } catch {
            // The reason may name a phone: it goes to who asked, not into the log.
            logger.notice("an admin command failed", metadata: ["command": "\(request.words[0])"])
            UnixSocket.write(client, "!\(Self.printable("\(error)"))\n")
        }
        UnixSocket.write(client, "=\n")
    }

    /// A line that is one line wherever it is read, and does nothing to a terminal: names come from
    /// users.
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

/// Asks a running server.
package struct AdminClient {
    private let path: String
    /// Longest line of an answer, bytes: a message in JSON, every byte of it escaped.
    private static let maxAnswerLine = 1 << 24

    package init(dataDirectory: String) {
        path = "\(dataDirectory)/admin.sock"
    }

    /// Runs a request on the server.
    ///
    /// - Returns: false when no server listens; then nothing was done.
    /// - Throws: `AdminService.Failure` with the server's words.
    package func run(
        _ request: AdminService.Request,
        output: (String) throws -> Void
    ) throws -> Bool {
        guard let socket = UnixSocket.connect(path) else { return false }
        defer { close(socket) }
        UnixSocket.write(socket, request.words.joined(separator: "\t") + "\n")
        var failure: String?
        var reader = UnixSocket.LineReader(socket, limit: Self.maxAnswerLine)
        while let line = reader.next() {
            switch line.first {
            case ">": try output(String(line.dropFirst()))
            case "!": failure = String(line.dropFirst())
            default:
                if let failure { throw AdminService.Failure(description: failure) }
                return true
            }
        }
        throw AdminService.Failure(description: failure ?? "the server went away")
    }
}

enum UnixSocket {
    private static func address<Result>(
        _ path: String,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    static func listen(_ path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else {
            throw Server.StartError("no admin socket: \(DataDirectory.reason())")
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // Nobody else may connect, at no moment: the file gets the mode that the socket has when it
        // is bound. The process's umask would do the same to every file made meanwhile.
        guard fchmod(descriptor, 0o600) == 0 else {
            let reason = DataDirectory.reason()
            close(descriptor)
            throw Server.StartError("no admin socket for its owner alone: \(reason)")
        }
        let bound = address(path) { bind(descriptor, $0, $1) }
        guard let bound else {
            close(descriptor)
            throw Server.StartError("the data directory's path is too long for a socket: \(path)")
        }
        guard bound == 0, Glibc.listen(descriptor, 8) == 0 else {
            let reason = DataDirectory.reason()
            close(descriptor)
            throw Server.StartError("no admin socket at \(path): \(reason)")
        }
        return descriptor
    }

    static func connect(_ path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        guard address(path, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    static func setTimeouts(_ descriptor: Int32, seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    @discardableResult
    static func write(_ descriptor: Int32, _ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// The first line, without its end; nil when none comes within `limit` bytes.
    static func readLine(_ descriptor: Int32, limit: Int) -> String? {
        var reader = LineReader(descriptor, limit: limit)
        return reader.next()
    }

    struct LineReader {
        private let descriptor: Int32
        private let limit: Int
        private var waiting: [UInt8] = []

        init(_ descriptor: Int32, limit: Int = 1 << 20) {
            self.descriptor = descriptor
            self.limit = limit
        }

        mutating func next() -> String? {
            while true {
                if let end = waiting.firstIndex(of: 10) {
                    let line = String(decoding: waiting[..<end], as: UTF8.self)
                    waiting.removeSubrange(...end)
                    return line
                }
                guard waiting.count < limit else { return nil }
                var chunk = [UInt8](repeating: 0, count: 16_384)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return nil }
                waiting += chunk[..<count]
            }
        }
    }
}
