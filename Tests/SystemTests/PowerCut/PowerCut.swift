import Foundation
import TambourTesting

/// Runs programs under `powercut.c`, a layer that loses unsynced data.
///
/// ```swift
/// try ChildProcess(program, [], environment: PowerCut(directory: data, seed: 7).environment)
/// process.signal(SIGUSR2)   // cuts now; `afterOperations:` sets another moment
/// ```
struct PowerCut {
    /// Which unsynced data a cut removes; see `powercut.c`.
    enum Policy: String, CaseIterable {
        case drop, prefix, blocks, sectors, keep
    }

    /// The directory whose files lose unsynced data; it must exist.
    var directory: String
    /// The seed of the losses. The same seed and the same calls in the same order lose the same
    /// bytes.
    var seed: UInt64
    /// The number of the file-changing operation at which to cut, counted from 1. If it is nil, the
    /// cut waits for SIGUSR2.
    var afterOperations: Int?
    /// The policy; nil lets the seed choose.
    var policy: Policy?
    /// The name of the program to cut; needed only if another program, such as a shell, starts it.
    var program: String?

    /// The environment of this process with the layer switched on.
    var environment: [String: String] {
        get throws {
            var result = ProcessInfo.processInfo.environment
            result["LD_PRELOAD"] = try PowerCut.library.get()
            result["TAMBOUR_POWERCUT_DIR"] = directory
            result["TAMBOUR_POWERCUT_SEED"] = String(seed)
            result["TAMBOUR_POWERCUT_AFTER"] = afterOperations.map { String($0) }
            result["TAMBOUR_POWERCUT_POLICY"] = policy?.rawValue
            result["TAMBOUR_POWERCUT_PROGRAM"] = program
            return result
        }
    }

    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    /// The layer as a library, compiled once per process.
    static let library = Result {
        try compile("powercut.c", ["-shared", "-fPIC", "-O2", "-ldl", "-lpthread"])
    }

    /// The small program that tests the layer itself.
    static let writer = Result { try compile("writer.c", ["-O1", "-lsqlite3"]) }

    /// Compiles a file in this file's folder.
    private static func compile(_ name: String, _ options: [String]) throws -> String {
        let source = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().appendingPathComponent(name).path
        // Several test processes may run at once, so each has its own copy, removed at the end.
        let result = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-\(getpid())-\(name).out").path
        let compiler = try ChildProcess.run(
            URL(filePath: "/usr/bin/env"),
            ["clang", "-Wall", "-Wextra", "-Werror", "-o", result, source] + options
        )
        guard compiler.status == 0 else {
            throw Failure(description: "clang could not compile \(name): \(compiler.errors)")
        }
        compiled.append(result)
        atexit { PowerCut.compiled.removeAll() }
        return result
    }

    private static let compiled = TemporaryFiles()
}

/// Files to remove when the process ends.
private final class TemporaryFiles: @unchecked Sendable {
    // The lock makes this class sendable.
    private let lock = NSLock()
    private var paths: [String] = []

    func append(_ path: String) {
        lock.withLock { paths.append(path) }
    }

    func removeAll() {
        lock.withLock {
            for path in paths { unlink(path) }
            paths = []
        }
    }
}
