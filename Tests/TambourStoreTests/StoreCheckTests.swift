import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("The check of a store finds what is wrong with it")
struct StoreCheckTests {
    /// Creates a store with a dialog, a group and some messages. One of the messages is removed.
    private func store(_ engine: SQLEngine) throws -> TestStore {
        let store = try TestStore(engine)
        let users = try store.users(3)
        let sent = try (0..<4).map { number in
            try store.send("x", from: users[number % 2], to: users[(number + 1) % 2])
        }
        _ = try store.group(users)
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            try tx.remove([sent[1]], in: chat)
        }
        return store
    }

    @Test("nothing is wrong with a new store, nor with one in use", arguments: SQLEngine.available)
    func healthy(engine: SQLEngine) throws {
        #expect(try TestStore(engine).problems() == [])
        #expect(try store(engine).problems() == [])
    }

    @Test(
        "planted damage is named",
        arguments: SQLEngine.available,
        [
            (
                "UPDATE chat SET member_count = 7 WHERE id = 1",
                "chat 1: 7 members recorded, 2 found"
            ),
            (
                "DELETE FROM member WHERE user_id = 2 AND chat = 1",
                "chat 1: 2 members recorded, 1 found"
            ),
            (
                "DELETE FROM message WHERE chat = 1 AND n = 2",
                "chat 1: 3 messages are numbered 1 to 4"
            ),
            (
                "UPDATE message SET n = n + 1 WHERE chat = 1",
                "chat 1: 4 messages are numbered 2 to 5"
            ),
            (
                "UPDATE message SET n = 5 - n WHERE chat = 1",
                "has number 3, the one before it 4"
            ),
            (
                "UPDATE member SET read_n = 9 WHERE user_id = 2 AND chat = 1",
                "member 2 of chat 1: has read 9, more than there is"
            ),
            (
                "UPDATE member SET ct = 1900000000000 WHERE user_id = 2 AND chat = 1",
                "member 2 of chat 1: changed at 1900000000000, after the commit clock"
            ),
            (
                "UPDATE meta SET v = v + 6000 WHERE k = 'ct'",
                "the commit clock is 6000 ms ahead of the wall clock"
            ),
            (
                "UPDATE meta SET v = 9223372036854775807 WHERE k = 'ct_lease'",
                "meta ct_lease: 9223372036854775807 is no time"
            ),
            (
                "UPDATE meta SET v = -9223372036854775807 WHERE k = 'ct'",
                "meta ct: -9223372036854775807 is no time"
            ),
            (
                "UPDATE chat SET id = 9223372036854775807 WHERE id = 1",
                "chat 9223372036854775807: id is 9223372036854775807"
            ),
            (
                "UPDATE message SET id = 9223372036854775807 WHERE chat = 1 AND n = 4",
                "message 1 9223372036854775807: id is 9223372036854775807"
            ),
            ("UPDATE message SET id = -5 WHERE chat = 1 AND n = 1", "message 1 -5: id is -5"),
            ("UPDATE message SET updated = -1 WHERE chat = 1 AND n = 1", "updated is -1"),
            ("UPDATE account SET id = -3 WHERE id = 3", "account -3: id is -3"),
            ("UPDATE member SET read_n = -1 WHERE user_id = 2 AND chat = 1", "read_n is -1"),
        ]
    )
    func damage(engine: SQLEngine, damage: (sql: String, problem: String)) throws {
        let store = try store(engine)
        try store.database.connect().execute(damage.sql)

        let problems = try store.problems()
        #expect(problems.contains { $0.contains(damage.problem) }, "\(problems)")
    }

    @Test("every column of numbers is known to the check, and no other")
    func columns() throws {
        let database = try TestDatabase(.sqlite)
        let connection = try database.connect()
        try StoreConnection.migrate(connection)
        let statement = try connection.prepare(
            """
            SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
            WHERE t.type = 'table' AND c.type = 'INTEGER' AND t.name <> 'schema_migration'
            """
        )
        defer { statement.reset() }
        var columns: Set<String> = []
        while try statement.step() { columns.insert(statement.string(0)) }
        #expect(columns.count > 100)
        let bounded = Set(StoreCheck.ranges.keys)
        #expect(bounded.union(StoreCheck.unbounded) == columns)
        #expect(bounded.isDisjoint(with: StoreCheck.unbounded))
    }
}
