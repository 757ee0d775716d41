/// Migrates a database to the schema of this program.
///
/// Applied migrations are recorded in the table `schema_migration(version, name, checksum)`.
package enum MigrationRunner {
    /// Applies the pending migrations, each in its own transaction.
    ///
    /// If several programs start on one database at once, exactly one of them applies each
    /// migration.
    /// - Parameters:
    ///   - migrations: All released migrations, with versions 1, 2, 3 …
    ///   - willApply: Called before each pending migration.
    /// - Returns: The versions that this call applied.
    /// - Throws: `MigrationError`. The failing migration is rolled back; the migrations before it
    ///   stay applied.
    @discardableResult
    package static func migrate(
        _ connection: any SQLConnection,
        with migrations: [Migration],
        willApply: (Migration) -> Void = { _ in }
    ) throws(MigrationError) -> [Int] {
        for (index, migration) in migrations.enumerated() {
            precondition(migration.version == index + 1, "migrations are numbered 1, 2, 3 …")
        }
        var applied: [Int] = []
        while let version = try applyNext(of: migrations, on: connection, willApply) {
            applied.append(version)
        }
        return applied
    }

    /// Checks the recorded migrations and applies the next pending migration. Returns nil if no
    /// migration is pending.
    private static func applyNext(
        of migrations: [Migration],
        on connection: any SQLConnection,
        _ willApply: (Migration) -> Void
    ) throws(MigrationError) -> Int? {
        var current = 0
        do {
            try connection.begin(.immediate)
            if connection.dialect == .postgreSQL {
                // On SQLite, the transaction already holds the write lock. The number of the
                // advisory lock is arbitrary.
                try connection.execute("SELECT pg_advisory_xact_lock(7770)")
            }
            try connection.execute(
                connection.dialect.expand(
                    """
                    CREATE TABLE IF NOT EXISTS schema_migration(
                        version {int64} NOT NULL PRIMARY KEY,
                        name {text} NOT NULL,
                        checksum {int64} NOT NULL)
                    """
                )
            )
            let recorded = try recordedSteps(on: connection)
            if let problem = problem(with: recorded, knowing: migrations, on: connection.dialect) {
                connection.rollback()
                throw problem
            }
            guard recorded.count < migrations.count else {
                try connection.commit()
                return nil
            }
            let migration = migrations[recorded.count]
            current = migration.version
            willApply(migration)
            try connection.execute(migration.sql(for: connection.dialect))
            try migration.fill(connection)
            try record(migration, on: connection)
            try connection.commit()
            return migration.version
        } catch let error as SQLError {
            connection.rollback()
            throw MigrationError.failed(version: current, underlying: error)
        } catch let error as MigrationError {
            throw error
        } catch {
            preconditionFailure("only the two errors above are thrown here: \(error)")
        }
    }

    private struct Step {
        var version: Int
        var name: String
        var checksum: Int64
    }

    private enum StepColumn: Int, SQLColumn {
        case version, name, checksum
    }

    private static func recordedSteps(
        on connection: any SQLConnection
    ) throws(SQLError) -> [Step] {
        let select: SQLQuery<StepColumn> = try connection.query(
            "SELECT \(StepColumn.list) FROM schema_migration ORDER BY version"
        )
        var steps: [Step] = []
        while let row = try select.next() {
            steps.append(
                Step(
                    version: Int(row.int(.version)),
                    name: row.string(.name),
                    checksum: row.int(.checksum)
                )
            )
        }
        return steps
    }

    private static func problem(
        with recorded: [Step],
        knowing migrations: [Migration],
        on dialect: SQLDialect
    ) -> MigrationError? {
        if let last = recorded.last, last.version > migrations.count {
            return .newerDatabase(found: last.version, known: migrations.count)
        }
        for (index, step) in recorded.enumerated() {
            guard step.version == index + 1 else { return .missing(version: index + 1) }
            guard step.checksum == migrations[index].checksum(for: dialect) else {
                return .changed(version: step.version, name: step.name)
            }
        }
        return nil
    }

    private static func record(
        _ migration: Migration,
        on connection: any SQLConnection
    ) throws(SQLError) {
        let insert = try connection.prepare(
            "INSERT INTO schema_migration(version, name, checksum) VALUES ($1, $2, $3)"
        )
        insert.bind(1, migration.version)
        insert.bindText(2, migration.name)
        insert.bind(3, migration.checksum(for: connection.dialect))
        try insert.run()
    }
}

/// The reason why a database cannot be migrated to this program's schema.
package enum MigrationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A newer program has migrated the database.
    case newerDatabase(found: Int, known: Int)
    /// The text of a migration has changed after the migration was applied.
    case changed(version: Int, name: String)
    /// A migration is not recorded, although a later migration is.
    case missing(version: Int)
    /// The database returned an error. Version 0 means that the error occurred outside a migration.
    case failed(version: Int, underlying: SQLError)

    package var description: String {
        switch self {
        case .newerDatabase(let found, let known):
            "the database has schema version \(found), this program knows up to \(known): "
                + "start a newer program, or restore a backup"
        case .changed(let version, let name):
            "migration \(version) (\(name)) was changed after it had been applied: "
                + "restore its text and add another migration"
        case .missing(let version):
            "migration \(version) is not recorded, though later ones are"
        case .failed(let version, let error):
            "migration \(version) failed: \(error)"
        }
    }
}
