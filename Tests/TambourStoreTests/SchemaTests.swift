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

    @Test(
        "names are found in a store that is older than their index",
        arguments: SQLEngine.available
    )
    func olderStore(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        let older = Schema.migrations.prefix { $0.name != "search and reports" }
        try #require(older.count < Schema.migrations.count)
        try MigrationRunner.migrate(connection, with: Array(older))
        let insert = try connection.prepare(
            """
            INSERT INTO account (id, phone, first_name, last_name, registered, updated)
            VALUES (1, 79990000001, $1, $2, 0, 0)
            """
        )
        insert.bindBlob(1, Array("Пётр".utf8))
        insert.bindBlob(2, Array("Ильич".utf8))
        try insert.run()

        try StoreConnection.migrate(connection)
        let query = try #require(SearchQuery("иль петр"))
        let found = try StoreConnection(connection, limits: .standard).read { snapshot in
            try snapshot.people(query, limit: 5)
        }
        #expect(found.map(\.phone) == [79_990_000_001])
    }
}
