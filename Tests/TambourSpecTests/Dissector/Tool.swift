import Foundation
import TambourTesting

/// Programs that tests run.
enum Tool {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// Returns the location of a program in PATH; nil if the program is not installed.
    static func path(_ name: String) -> URL? {
        let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return folders.split(separator: ":").lazy
            .map { URL(filePath: String($0)).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Returns the location of a program of this package. The program is in the folder of the
    /// tests.
    static func built(_ name: String) -> URL? {
        ([Bundle.main] + Bundle.allBundles)
            .flatMap { [$0.bundleURL, $0.executableURL?.deletingLastPathComponent()] }
            .compactMap { $0 }
            .flatMap { [$0, $0.deletingLastPathComponent()] }
            .map { $0.appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Runs a program until it ends. The program's home folder is empty, so there are no settings
    /// or plugins.
    static func run(
        _ program: URL,
        _ arguments: [String],
        input: Data = Data(),
        in folder: TemporaryFolder
    ) throws -> ChildProcess.Outcome {
        let file = folder.file("\(UUID().uuidString).in")
        try input.write(to: file)
        return try ChildProcess.run(
            program,
            arguments,
            environment: [
                "HOME": folder.url.path, "XDG_CONFIG_HOME": folder.url.path,
                "WIRESHARK_CONFIG_DIR": folder.url.path,
            ],
            input: file.path
        )
    }
}

/// A folder that is removed when its last reference disappears.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "tambour-spec-\(UUID().uuidString)"
        )
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func file(_ name: String) -> URL { url.appending(path: name) }
}
