import TambourSQL
import Testing

@Suite("Migrations")
struct MigrationRunnerTests {
    static let first = Migration(
        1,
        "users",
        "CREATE TABLE u(id {int64} NOT NULL PRIMARY KEY, name {text}) {without_rowid};"
    )
    static let second = Migration(
        2,
        "pictures",
        sqlite: "ALTER TABLE u ADD COLUMN picture BLOB; INSERT INTO u(id) VALUES (2)",
        postgreSQL: "ALTER TABLE u ADD COLUMN picture bytea; INSERT INTO u(id) VALUES (2)"
    )
    static let broken = Migration(
        3,
        "broken",
        "INSERT INTO u(id) VALUES (3); INSERT INTO u(id) VALUES (2)"
    )

    private func ids(on connection: any SQLConnection) throws -> [Int64] {
        let select = try connection.prepare("SELECT id FROM u ORDER BY id")
        var ids: [Int64] = []
        while try select.step() { ids.append(select.int(0)) }
        return ids
    }

    @Test("each is applied once, in order", arguments: SQLEngine.available)
    func appliedOnce(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        let both = [MigrationRunnerTests.first, MigrationRunnerTests.second]
        #expect(try MigrationRunner.migrate(connection, with: [both[0]]) == [1])
        #expect(try MigrationRunner.migrate(connection, with: both) == [2])
        #expect(try MigrationRunner.migrate(connection, with: both) == [])
        #expect(try ids(on: connection) == [2])

        let select = try connection.prepare("SELECT version, name FROM schema_migration")
        var recorded: [String] = []
        while try select.step() { recorded.append("\(select.int(0)) \(select.string(1))") }
        #expect(recorded.sorted() == ["1 users", "2 pictures"])
    }

    @Test(
        "one that fails leaves nothing behind and can be tried again",
        arguments: SQLEngine.available
    )
    func failing(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        let three = [
            MigrationRunnerTests.first, MigrationRunnerTests.second, MigrationRunnerTests.broken,
        ]
        let error = #expect(throws: MigrationError.self) {
            try MigrationRunner.migrate(connection, with: three)
        }
        guard case .failed(version: 3, let underlying) = error else {
            Issue.record("expected migration 3 to fail, got \(String(describing: error))")
            return
        }
        #expect(underlying.kind == .constraint)
        #expect(!connection.isInTransaction)
        #expect(try ids(on: connection) == [2])
        try connection.execute("DELETE FROM u")
        #expect(try MigrationRunner.migrate(connection, with: three) == [3])
        #expect(try ids(on: connection) == [2, 3])
    }

    @Test("a database from a newer program is refused", arguments: SQLEngine.available)
    func newer(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        let both = [MigrationRunnerTests.first, MigrationRunnerTests.second]
        try MigrationRunner.migrate(connection, with: both)
        let error = #expect(throws: MigrationError.newerDatabase(found: 2, known: 1)) {
            try MigrationRunner.migrate(connection, with: [both[0]])
        }
        #expect(error?.description.contains("start a newer program") == true)
        #expect(!connection.isInTransaction)
    }

    @Test("a step edited after it was applied is refused", arguments: SQLEngine.available)
    func changed(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        try MigrationRunner.migrate(connection, with: [MigrationRunnerTests.first])
        let edited = Migration(1, "users", "CREATE TABLE u(id {int64} NOT NULL PRIMARY KEY)")
        #expect(throws: MigrationError.changed(version: 1, name: "users")) {
            try MigrationRunner.migrate(connection, with: [edited, MigrationRunnerTests.second])
        }
        #expect(!connection.isInTransaction)
    }

    @Test("a hole in the record is refused", arguments: SQLEngine.available)
    func hole(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        let both = [MigrationRunnerTests.first, MigrationRunnerTests.second]
        try MigrationRunner.migrate(connection, with: both)
        try connection.execute("DELETE FROM schema_migration WHERE version = 1")
        #expect(throws: MigrationError.missing(version: 1)) {
            try MigrationRunner.migrate(connection, with: both)
        }
    }
}
