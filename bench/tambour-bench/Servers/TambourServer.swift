import Foundation
import TambourTesting

/// A `tambourd` with its own data directory.
final class TambourServer {
    let directory: URL
    private let program: String
    let process: ServerProcess

    /// - Parameter directory: The data directory; created if it does not exist.
    init(program: String, directory: URL) throws {
        self.program = program
        self.directory = directory
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let limits = directory.appendingPathComponent("limits.yaml")
        try Unhurried.file().write(to: limits, atomically: true, encoding: .utf8)
        process = try ServerProcess(
            program,
            [
                "serve", "--listen", "127.0.0.1:0", "--data", directory.path,
                "--login-codes", "fixed:111111", "--log-level", "error", "--limits", limits.path,
            ]
        )
    }

    /// Creates users through `tambourd admin`, whether the server runs or not.
    ///
    /// Stores the users in the file `accounts` in the directory; see `Account.read`.
    static func makeUsers(
        _ count: Int,
        firstPhone: Int64,
        program: String,
        directory: URL
    ) throws -> [Account] {
        let file = directory.appendingPathComponent("accounts").path
        _ = try Tool.text(
            program,
            [
                "admin", "users", "create", "--data", directory.path, "--count", "\(count)",
                "--first-phone", "+\(firstPhone)", "--tokens-out", file,
            ]
        )
        return try Account.read(file)
    }

    func makeUsers(_ count: Int, firstPhone: Int64) throws -> [Account] {
        try Self.makeUsers(count, firstPhone: firstPhone, program: program, directory: directory)
    }
}
