import Logging
import Synchronization
import TambourProtocol
import TambourSQL
import TambourStore

/// Opens the connections to the store, for the engine, the readers and all other parts of the
/// server.
///
/// `@unchecked Sendable`: once the engine runs, only the engine's queue touches the writing
/// connection.
final class StoreSource: @unchecked Sendable {
    private let source: any SQLSource
    private let limits: Limits
    private let environment: Environment
    private let writing: any SQLConnection

    /// Opens the database, creates it when it is missing, and migrates its schema.
    ///
    /// - Parameter logger: receives a line before each migration of an existing store, because a
    ///   migration may take minutes.
    init(
        _ source: any SQLSource,
        limits: Limits,
        environment: Environment,
        logger: Logger
    ) throws {
        self.source = source
        self.limits = limits
        self.environment = environment
        writing = try source.open(.readWrite)
        let begun = ContinuousClock.now
        var isNew = false
        let applied = try StoreConnection.migrate(writing) { migration in
            isNew = isNew || migration.version == 1
            if isNew { return }
            logger.notice(
                "migrating the store",
                metadata: ["schema": "\(migration.version)", "step": "\(migration.name)"]
            )
        }
        guard let first = applied.first, let last = applied.last, !isNew else { return }
        let took = ContinuousClock.now - begun
        logger.notice(
            "the store is migrated",
            metadata: ["from": "\(first - 1)", "schema": "\(last)", "took": "\(took)"]
        )
    }

    /// Opens the engine's connection. Called once.
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

    /// Opens a connection for queries or logins.
    func openReader() throws -> StoreConnection {
        let reader = try source.open(.readOnly)
        return try StoreConnection(environment.disk?(reader, .readOnly) ?? reader, limits: limits)
    }

    /// Opens a read-only connection for long-running work.
    func openApart() throws -> StoreConnection {
        try StoreConnection(source.open(.readOnly), limits: limits)
    }

    /// Copies the write-ahead log into the database file. Called on the engine's queue.
    func checkpoint() throws {
        try writing.checkpoint()
    }

    /// Rewrites the database file without deleted data. Called on the engine's queue.
    ///
    /// - Returns: the size of the file before and after, in bytes.
    /// - Throws: `StoreDigest.Unsupported` for a database that is not a file.
    func vacuum() throws -> (before: Int64, after: Int64) {
        let file = try StoreDigest.file(writing)
        let before = try file.fileBytes
        try file.vacuum()
        return (before, try file.fileBytes)
    }
}

extension Messenger {
    /// The version of the schema to which this program migrates a store.
    package static var storeSchema: Int { Schema.migrations.count }
}
