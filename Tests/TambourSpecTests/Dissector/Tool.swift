import Foundation
import TambourTesting

/// Programs that tests run.
enum Tool {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// Where a program of PATH is; nil when it is not installed.
    static func path(_ name: String) -> URL? {
        let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return folders.split(separator: ":").lazy
            .map { URL(filePath: String($0)).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Where a program of this package is: beside the tests.
    static func built(_ name: String) -> URL? {
        ([Bundle.main] + Bundle.allBundles)
            .flatMap { [$0.bundleURL, $0.executableURL?.deletingLastPathComponent()] }
            .compactMap { $0 }
            .flatMap { [$0, $0.deletingLastPathComponent()] }
            .map { $0.appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// What became of a program.
    struct Outcome {
        var status: Int32
        var output: String
        var errors: String
    }

    /// Runs a program to its end, with a folder for a home in which nobody has settings or plugins.
    static func run(
        _ program: URL,
        _ arguments: [String],
        input: Data = Data(),
        in folder: TemporaryFolder
    ) throws -> Outcome {
        // Files, not pipes: nothing waits for anybody, however much is written.
        let files = try ["in", "out", "err"].map { name in
            let url = folder.file("\(UUID().uuidString).\(name)")
            try (name == "in" ? input : Data()).write(to: url)
            return url
        }
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        var environment = ProcessInfo.processInfo.environment
        environment["HOME"] = folder.url.path
        environment["XDG_CONFIG_HOME"] = folder.url.path
        environment["WIRESHARK_CONFIG_DIR"] = folder.url.path
        process.environment = environment
        process.standardInput = try FileHandle(forReadingFrom: files[0])
        process.standardOutput = try FileHandle(forWritingTo: files[1])
        process.standardError = try FileHandle(forWritingTo: files[2])
        try process.run()
        let status = process.waitForEnd()
        return Outcome(
            status: status,
            output: String(decoding: try Data(contentsOf: files[1]), as: UTF8.self),
            errors: String(decoding: try Data(contentsOf: files[2]), as: UTF8.self)
        )
    }
}

/// A folder that goes with whoever holds it.
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
