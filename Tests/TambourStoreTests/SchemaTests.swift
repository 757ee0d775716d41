import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("The schema and the statements over it")
struct SchemaTests {
    @Test("every statement is understood by every engine", arguments: SQLEngine.available)
    func statements(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        try StoreConnection.migrate(connection)
        // Opening prepares all of them.
        _ = try StoreConnection(connection, limits: .standard)
    }

    @Test("a migrated database is left as it is", arguments: SQLEngine.available)
    func migratedTwice(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        try StoreConnection.migrate(connection)
        #expect(try MigrationRunner.migrate(connection, with: Schema.migrations) == [])
    }
}
