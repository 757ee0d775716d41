import Synchronization
import TambourProtocol
import TambourSQL
import TambourStore

/// Where the connections to the store come from: for the engine, the readers and everything else.
///
/// `@unchecked Sendable`: the writing connection is touched on the engine's queue only, once the
/// engine runs.
final class StoreSource: @unchecked Sendable {
    private let source: any SQLSource
    private let limits: Limits
    private let environment: Environment
    private let writing: any SQLConnection

    /// Opens the database, which is created when it is missing, and brings its schema up to date.
    init(_ source: any SQLSource, limits: Limits, environment: Environment) throws {
        self.source = source
        self.limits = limits
        self.environment = environment
        writing = try source.open(.readWrite)
        try StoreConnection.migrate(writing)
    }

    /// The engine's connection; opened once.
    func openWriter() throws -> StoreWriter {
        try StoreWriter(
            StoreConnection(
                environment.disk?(writing, .readWrite) ?? writing,
                limits: limits
            ),
            userIDs: environment.userIDs,
            firstCounter: UInt16(
                truncatingIfNeeded: environment.randomBytes(2).reduce(0) { $0 << 8 | Int($1) }
            )
        )
    }

    /// A connection for queries or logins.
    func openReader() throws -> StoreConnection {
        let reader = try source.open(.readOnly)
        return try StoreConnection(environment.disk?(reader, .readOnly) ?? reader, limits: limits)
    }

    /// A read-only connection for work that takes long.
    func openApart() throws -> StoreConnection {
        try StoreConnection(source.open(.readOnly), limits: limits)
    }

    /// Moves the log into the file; on the engine's queue.
    func checkpoint() throws {
        try writing.checkpoint()
    }

    /// Rewrites the file without deleted data; on the engine's queue.
    ///
    /// - Returns: its size before and after, in bytes.
    /// - Throws: `StoreDigest.Unsupported` for a database that is no file.
    func vacuum() throws -> (before: Int64, after: Int64) {
        let file = try StoreDigest.file(writing)
        let before = try file.fileBytes
        try file.vacuum()
        return (before, try file.fileBytes)
    }
}
