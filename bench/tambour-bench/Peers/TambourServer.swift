import Foundation

/// A `tambourd` on a data directory of its own.
final class TambourServer {
    let directory: URL
    private let program: String
    let process: ServerProcess

    /// - Parameter directory: Kept if it is there; else made.
    init(program: String, directory: URL, arguments: [String] = []) throws {
        self.program = program
        self.directory = directory
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        process = try Self.start(program, directory, arguments)
    }

    private static func start(
        _ program: String,
        _ directory: URL,
        _ arguments: [String]
    ) throws -> ServerProcess {
        try ServerProcess(
            program,
            [
                "serve", "--listen", "127.0.0.1:0", "--data", directory.path,
                "--login-codes", "fixed:111111", "--log-level", "error",
            ] + arguments
        )
    }

    /// Makes users through `tambourd admin`, whether the server runs or not.
    static func makeUsers(
        _ count: Int,
        firstPhone: Int64,
        program: String,
        directory: URL
    ) throws -> [Account] {
        let tokens = directory.appendingPathComponent("tokens-\(firstPhone)")
        _ = try Tool.text(
            program,
            [
                "admin", "users", "create", "--data", directory.path, "--count", "\(count)",
                "--first-phone", "+\(firstPhone)", "--tokens-out", tokens.path,
            ]
        )
        return try Account.read(tokens.path)
    }

    func makeUsers(_ count: Int, firstPhone: Int64) throws -> [Account] {
        try Self.makeUsers(count, firstPhone: firstPhone, program: program, directory: directory)
    }

    /// How many transactions the server has committed so far.
    func commits() throws -> Int {
        let text = try Tool.text(program, ["admin", "metrics", "--data", directory.path])
        for line in text.split(separator: "\n") where line.hasPrefix("tambour_commits_total ") {
            return Int(line.dropFirst("tambour_commits_total ".count)) ?? 0
        }
        throw BenchError("the metrics have no tambour_commits_total")
    }
}
