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
        // The constructor of the store connection prepares all statements.
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
        var budget = ScanBudget(.standard)
        let page = try StoreConnection(connection, limits: .standard).read { snapshot in
            try snapshot.people(query, limit: 5, &budget)
        }
        #expect(page.found.map(\.item.phone) == [79_990_000_001])
    }

    @Test(
        "read marks of a store that is older than hiding them are shown, and hidden from then on",
        arguments: SQLEngine.available
    )
    func olderMarks(engine: SQLEngine) throws {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        let older = Schema.migrations.prefix { $0.name != "hidden read marks" }
        try #require(older.count < Schema.migrations.count)
        try MigrationRunner.migrate(connection, with: Array(older))
        // The settings of four users. Three have the values false, true and an invalid value. The
        // fourth has no value.
        let values: [[UInt8]?] = [[0xC2], [0xC3], [0x01], nil]
        try connection.execute(
            """
            INSERT INTO chat (id, kind, owner, created, member_count, ct_head)
            VALUES (-4096, 2, 1, 0, 4, 0)
            """
        )
        let setting = try connection.prepare(
            "INSERT INTO user_setting (user_id, name, value) VALUES ($1, $2, $3)"
        )
        for (index, value) in values.enumerated() {
            let id = index + 1
            try connection.execute(
                """
                INSERT INTO account
                  (id, phone, first_name, registered, updated, privacy)
                VALUES (\(id), \(id), '', 0, 0, \(id == 1 ? 3 : 0))
                """
            )
            try connection.execute(
                """
                INSERT INTO member (user_id, chat, joined, read_time, read_n, ct, big)
                VALUES (\(id), -4096, 0, \(100 * id), 0, 5, 0)
                """
            )
            guard let value else { continue }
            setting.bind(1, Int64(id))
            setting.bindBlob(2, Array("SHOW_READ_MARK".utf8))
            setting.bindBlob(3, value)
            try setting.run()
        }

        try StoreConnection.migrate(connection)
        let store = try StoreConnection(connection, limits: .standard)
        try store.read { snapshot in
            let privacy = try (1...4).map { id in
                try #require(try snapshot.account(UserID(Int64(id)))).privacy
            }
            #expect(privacy.map(\.showsReadMark) == [false, true, true, true])
            #expect(privacy.map(\.isHidden) == [true, false, false, false])
            #expect(privacy[0].searchByPhone == .contacts)
            let kept = try (1...4).map { try snapshot.settings(of: UserID($0)).pairs.count }
            #expect(kept == [1, 1, 0, 0])
            let view = try #require(try snapshot.view(ChatKey(-4096), for: UserID(4)))
            let marks = (1...4).map { (UserID($0), 100 * $0) }
            #expect(try snapshot.people(of: view).participants == IDMap(marks))
        }
    }
}
