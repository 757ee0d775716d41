import Foundation
import Synchronization
import TambourTesting

/// A real `tambourd serve` with its own data directory, which `run` removes at the end.
///
/// The program is the one built with the tests; `TAMBOUR_TAMBOURD` names another one.
final class TambourdProcess: Sendable {
    /// The address for clients, `127.0.0.1:PORT`. The port stays the same over restarts.
    let address: String
    /// The file with a line `PHONE CODE` for each login code.
    let codesFile: URL

    let dataDirectory: String

    private let arguments: [String]
    private let descriptors: Int?
    private let child: Mutex<ChildProcess>
    private let earlierErrors = Mutex("")

    /// Starts a server, runs `body`, stops the server as an operator would, and removes its
    /// directory.
    ///
    /// - Parameters:
    ///   - limits: Limits to override, by their names in `protocol-spec/limits.yaml`. Rate limits
    ///     are off unless named.
    ///   - arguments: Further arguments of `serve`.
    ///   - descriptors: The maximum number of descriptors; nil for the system's limit.
    /// - Throws: Any error of `body`, and `ChildProcess.Failed` if the server does not start or
    ///   stop.
    static func run<Result: Sendable>(
        limits: [String: Int] = [:],
        arguments: [String] = [],
        descriptors: Int? = nil,
        _ body: (TambourdProcess) async throws -> Result
    ) async throws -> Result {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-system-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var arguments = arguments
        let file = directory.appendingPathComponent("limits.yaml")
        try Data(Unhurried.file(limits).utf8).write(to: file)
        arguments += ["--limits", file.path]
        let server = try await TambourdProcess(in: directory, arguments, descriptors)
        do {
            let result = try await body(server)
            try await server.stop()
            return result
        } catch {
            server.current.signal(SIGKILL)
            _ = await server.current.exitStatus()
            throw error
        }
    }

    private init(in directory: URL, _ further: [String], _ descriptors: Int?) async throws {
        self.descriptors = descriptors
        codesFile = directory.appendingPathComponent("codes")
        dataDirectory = directory.appendingPathComponent("data").path
        let own = [
            "--data", dataDirectory,
            "--login-codes", "file:\(codesFile.path)",
        ]
        arguments = own + further
        let (child, address) = try await Self.start(
            listen: "127.0.0.1:0",
            arguments,
            descriptors
        )
        self.child = Mutex(child)
        self.address = address
    }

    /// The standard error of all runs of the server.
    var errors: String { earlierErrors.withLock { $0 } + current.errors }

    /// The server's present memory, in bytes; 0 after the process has ended.
    var residentBytes: Int { current.residentBytes }

    /// The server's peak memory so far, in bytes.
    var peakResidentBytes: Int { current.peakResidentBytes }

    /// Stops the server gracefully and starts it again on the same port with the same data.
    ///
    /// - Throws: `ChildProcess.Failed` if it does not stop with status 0 or does not come back.
    func restart() async throws {
        try await stop()
        try await startAgain()
    }

    /// Stops the server gracefully, runs `body`, and starts the server again.
    func stopped(_ body: () async throws -> Void) async throws {
        try await stop()
        try await body()
        try await startAgain()
    }

    /// Kills the server with SIGKILL and starts it again on the same port with the same data.
    func killAndRestart() async throws {
        current.signal(SIGKILL)
        _ = try await current.exitStatus(within: .seconds(120))
        try await startAgain()
    }

    /// Stops the server with SIGTERM, as systemd does. It must end with status 0.
    private func stop() async throws {
        current.signal(SIGTERM)
        let status = try await current.exitStatus(within: .seconds(120))
        guard status == 0 else {
            throw ChildProcess.Failed(description: "SIGTERM ended it with \(status)\n\(errors)")
        }
    }

    private var current: ChildProcess { child.withLock { $0 } }

    private func startAgain() async throws {
        let old = current.errors
        earlierErrors.withLock { $0 += old }
        let (next, _) = try await Self.start(listen: address, arguments, descriptors)
        child.withLock { $0 = next }
    }

    /// Starts the program and waits until it reports its addresses.
    private static func start(
        listen: String,
        _ arguments: [String],
        _ descriptors: Int?
    ) async throws -> (ChildProcess, String) {
        let words = ["serve", "--listen", listen] + arguments
        let child =
            if let descriptors {
                try ChildProcess(
                    URL(fileURLWithPath: "/bin/sh"),
                    ["-c", "ulimit -n \(descriptors); exec \"$0\" \"$@\"", program().path] + words
                )
            } else {
                try ChildProcess(program(), words)
            }
        if let address = await child.line(after: "listening tcp ") { return (child, address) }
        let status = await child.exitStatus()
        throw ChildProcess.Failed(
            description: "tambourd ended with \(status) before it listened\n\(child.errors)"
        )
    }

    /// The program under test: the one built with the tests, or the one that `TAMBOUR_TAMBOURD`
    /// names.
    static func program() throws -> URL {
        if let named = ProcessInfo.processInfo.environment["TAMBOUR_TAMBOURD"] {
            return URL(fileURLWithPath: named)
        }
        let built = ([Bundle.main] + Bundle.allBundles)
            .flatMap { [$0.bundleURL, $0.executableURL?.deletingLastPathComponent()] }
            .compactMap { $0 }
            .flatMap { [$0, $0.deletingLastPathComponent()] }
            .map { $0.appendingPathComponent("tambourd") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        guard let built else {
            throw ChildProcess.Failed(description: "no tambourd beside the tests")
        }
        return built
    }
}
