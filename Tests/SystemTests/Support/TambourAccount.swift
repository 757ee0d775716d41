import Foundation
import TambourTesting
import Testing

/// An account file on a device, and the `tambour` programs that use it.
struct TambourAccount {
    let directory: URL
    let name: String

    /// The exit status and output of a finished program.
    struct Outcome {
        let status: Int32
        let lines: [String]
        let errors: String
    }

    /// Starts a program with this account's file.
    func start(_ arguments: [String], input: String = "/dev/null") throws -> ChildProcess {
        try ChildProcess(Self.program(), arguments + place, input: input)
    }

    /// Runs a program until it ends; kills it if it runs longer than `deadline`.
    func run(
        _ arguments: [String],
        input: String = "/dev/null",
        within deadline: Duration = .seconds(120)
    ) async throws -> Outcome {
        let child = try start(arguments, input: input)
        async let status = child.exitStatus(within: deadline)
        var lines: [String] = []
        for await line in child.lines { lines.append(line) }
        return Outcome(status: try await status, lines: lines, errors: child.errors)
    }

    /// Runs a program with a text as its standard input.
    func run(_ arguments: [String], saying input: String) async throws -> Outcome {
        try await run(arguments, saying: Data(input.utf8))
    }

    /// Runs a program with any bytes as its standard input.
    func run(_ arguments: [String], saying input: Data) async throws -> Outcome {
        let file = directory.appendingPathComponent("\(name).input")
        try input.write(to: file)
        return try await run(arguments, input: file.path)
    }

    /// Runs a program in a shell that redirects its output to a file.
    func run(_ arguments: [String], into file: String) async throws -> Outcome {
        let words = ["-c", "exec \"$0\" \"$@\" > \(file)", try Self.program().path]
        let child = try ChildProcess(URL(filePath: "/bin/sh"), words + arguments + place)
        let status = try await child.exitStatus(within: .seconds(120))
        return Outcome(status: status, lines: [], errors: child.errors)
    }

    func logIn(to address: String, token: String) async throws {
        let result = try await run(["login", address, "--token"], saying: "\(token)\n")
        try #require(result.status == 0, "\(result.errors)")
    }

    private var place: [String] { ["--home", directory.path, "--account", name] }

    static func program() throws -> URL {
        try TambourdProcess.program().deletingLastPathComponent()
            .appendingPathComponent("tambour")
    }
}
