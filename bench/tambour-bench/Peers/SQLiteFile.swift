import Foundation
import TambourSQL

/// The database of a running server, inspected from outside.
struct SQLiteFile {
    let path: String

    init(_ file: URL) { path = file.path }

    /// Returns a description of how `process` writes to the file, as far as it is visible from
    /// outside.
    ///
    /// - Throws: `BenchError` if the file is not in WAL mode or the process does not hold the log
    ///   open.
    func seen(by process: ServerProcess) throws -> String {
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let mode = try Self.text("PRAGMA journal_mode", connection)
        guard mode == "wal" else { throw BenchError("\(path): journal_mode is \(mode)") }
        let log = path + "-wal"
        let isOpen = ProcessTable.family(of: process.processID).contains { processID in
            let folder = "/proc/\(processID)/fd"
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return names.contains {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))
                    == log
            }
        }
        guard isOpen else { throw BenchError("\(log) is not open in the server") }
        let size = try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int ?? 0
        return "journal_mode is wal, and it holds the log open (\(size) bytes)"
    }

    /// Checks that the SQLite library loaded by `process` flushes every commit by default.
    ///
    /// - Returns: the name of the library's file.
    /// - Throws: `BenchError` if the library does not flush every commit. Also throws if the
    ///   benchmark uses a different library and therefore cannot query the default.
    func defaultsToFull(in process: ServerProcess) throws -> String {
        guard let library = Self.library(of: process.processID),
            library == Self.library(of: getpid())
        else { throw BenchError("the server has loaded another SQLite than the benchmark") }
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let options = try connection.prepare("PRAGMA compile_options")
        var defaults: Set<String> = []
        while try options.step() { defaults.insert(options.string(0)) }
        guard defaults.isSuperset(of: ["DEFAULT_SYNCHRONOUS=2", "DEFAULT_WAL_SYNCHRONOUS=2"]) else {
            throw BenchError("\(library): synchronous is not FULL by default")
        }
        return URL(fileURLWithPath: library).lastPathComponent
    }

    /// Returns the library file that a process has mapped.
    private static func library(of processID: pid_t) -> String? {
        ProcessTable.maps(of: processID).first { $0.contains("/libsqlite3.so") }
            .flatMap { $0.split(separator: " ").last }
            .map(String.init)
    }

    private static func text(_ query: String, _ connection: SQLiteConnection) throws -> String {
        let statement = try connection.prepare(query)
        defer { statement.reset() }
        return try statement.step() ? statement.string(0) : ""
    }
}
