import Foundation
import TambourMessenger
import TambourServer
import TambourTesting

/// A `tambourd serve` in a process of its own. The server's limits are so high that no rate limit
/// applies.
final class FuzzServer {
    let address: String
    let dataDirectory: String
    private let directory: URL
    private let child: ChildProcess

    init() async throws {
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-fuzz-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let limits = directory.appendingPathComponent("limits.yaml")
        let overrides = [
            "maxSoftErrors": 1_000_000_000, "maxConnectionsPerToken": 64,
            "passwordHashLogRounds": 4, "loginRefusalDelayMs": 1,
        ]
        try Data(Unhurried.file(overrides).utf8).write(to: limits)
        dataDirectory = directory.appendingPathComponent("data").path
        child = try ChildProcess(
            try Self.program(),
            [
                "serve", "--listen", "127.0.0.1:0", "--data", dataDirectory,
                "--login-codes", "file:\(directory.path)/codes", "--limits", limits.path,
            ]
        )
        guard let address = await child.line(after: "listening tcp ") else {
            throw ChildProcess.Failed(description: "tambourd did not start\n\(child.errors)")
        }
        self.address = address
    }

    /// Kills the process if it still runs, and removes its directory.
    func remove() async {
        child.signal(SIGKILL)
        _ = await child.exitStatus()
        try? FileManager.default.removeItem(at: directory)
    }

    var isGone: Bool { child.residentBytes == 0 }
    var residentBytes: Int { child.residentBytes }
    var peakResidentBytes: Int { child.peakResidentBytes }

    /// The end of the server's output on standard error.
    var lastErrors: String { String(child.errors.suffix(3_000)) }

    /// The reason why the process ended, and the first stack frames of the crashed thread.
    var lastWords: String {
        let lines = child.errors.split(separator: "\n")
        guard let first = lines.lastIndex(where: { $0.contains("crashed") }) else {
            return lastErrors
        }
        let reason = lines.first { $0.contains("crashed") || $0.contains("Fatal error") } ?? ""
        let frames = lines[first...].filter { $0.contains(" in tambourd") }.prefix(12)
        return ([reason] + frames).joined(separator: "\n  ")
    }

    /// Runs an admin command and returns its lines.
    func admin(_ request: AdminService.Request) throws -> [String] {
        var lines: [String] = []
        let done: Bool
        do {
            done = try AdminClient(dataDirectory: dataDirectory).run(request) { lines.append($0) }
        } catch {
            // The lines printed before the error give the reason.
            throw ChildProcess.Failed(description: (lines + ["\(error)"]).joined(separator: "\n"))
        }
        guard done else { throw ChildProcess.Failed(description: "no server listens") }
        return lines
    }

    /// Returns the metrics whose values are integers. The keys are the names with their labels.
    func metrics() throws -> [String: Int] {
        var counters: [String: Int] = [:]
        for line in try admin(.metrics) where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            if words.count == 2, let value = Int(words[1]) { counters[String(words[0])] = value }
        }
        return counters
    }

    /// Returns the program built with the tests, or the program that `TAMBOUR_TAMBOURD` names.
    private static func program() throws -> URL {
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
