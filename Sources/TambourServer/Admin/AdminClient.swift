import Glibc
package import TambourMessenger

/// Sends admin requests to a running server.
package struct AdminClient {
    private let path: String
    /// The length of the longest accepted line of an answer, in bytes. A message in JSON fits into
    /// such a line even if every byte is escaped.
    private static let maxAnswerLine = 1 << 24

    package init(dataDirectory: String) {
        path = "\(dataDirectory)/admin.sock"
    }

    /// Runs a request on the server.
    ///
    /// - Returns: false when no server listens. In this case the request was not run.
    /// - Throws: `AdminService.Failure` with the server's error text.
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
