import Glibc
package import TambourMessenger
package import TambourProtocol
import TambourSQL
package import TambourStore

/// A backend for a store that cannot be written, such as a copy on a read-only mount. It only runs
/// commands that read.
///
/// `@unchecked Sendable`: only the single thread of a command-line program uses it.
package final class ReadOnlyAdminBackend: AdminBackend, @unchecked Sendable {
    package let environment: Environment
    package let limits: Limits
    private let store: StoreConnection

    /// - Throws: `AdminService.Failure` if a write-ahead log contains changes that are not in the
    ///   database file.
    package init(
        dataDirectory: String,
        environment: Environment = .live,
        limits: Limits = .standard
    ) throws {
        self.environment = environment
        self.limits = limits
        let path = "\(dataDirectory)/tambour.db"
        guard Self.size(of: "\(path)-wal") ?? 0 == 0 else {
            throw AdminService.Failure(
                description:
                    "\(path)-wal holds changes that are not in the store yet, and \(dataDirectory) "
                    + "cannot be written; copy the directory to a place that can be written"
            )
        }
        store = try StoreConnection(SQLFile(path).open(.immutable), limits: limits)
    }

    /// Returns whether a data directory contains a store, and the store or the directory cannot be
    /// written.
    package static func isNeeded(for dataDirectory: String) -> Bool {
        let path = "\(dataDirectory)/tambour.db"
        return size(of: path) != nil
            && (access(dataDirectory, W_OK) != 0 || access(path, W_OK) != 0)
    }

    private static func size(of path: String) -> Int64? {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    package func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        throw AdminService.Failure(description: "the data directory cannot be written")
    }

    package func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws {
        try body(store)
    }

    package func readApart<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result {
        try body(store)
    }

    package func vacuum() throws -> (before: Int64, after: Int64) {
        throw AdminService.Failure(description: "the data directory cannot be written")
    }

    package var metricsText: String? { nil }
    package func reload() throws -> [String]? { nil }
}
