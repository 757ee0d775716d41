import TambourSQL
import Testing

@Suite("Rows are read by the names of their columns")
struct SQLQueryTests {
    private enum ReaderColumn: Int, SQLColumn {
        case userID, firstName, nextN

        var sql: String {
            switch self {
            case .nextN: "read_n + 1"
            default: snakeCase
            }
        }
    }

    private enum ChatColumn: Int, SQLColumn {
        case chatKey, title
    }

    private typealias PairColumn = SQLPair<ReaderColumn, ChatColumn>

    private func open(
        _ engine: SQLEngine
    ) throws -> (database: TestDatabase, connection: any SQLConnection) {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        try connection.execute(
            connection.dialect.expand(
                """
                CREATE TABLE reader(
                  user_id {int64} NOT NULL PRIMARY KEY, first_name {text} NOT NULL,
                  read_n {int64} NOT NULL, chat_key {int64} NOT NULL, title {text}
                ) {without_rowid};
                INSERT INTO reader VALUES (1, 'Alice', 10, 7, NULL), (2, 'Bob', 20, 8, 'Friends')
                """
            )
        )
        return (database, connection)
    }

    @Test("the name of a case gives the name of its column")
    func names() {
        #expect(ReaderColumn.list == "user_id, first_name, read_n + 1")
        #expect(ChatColumn.list(of: "c") == "c.chat_key, c.title")
        #expect(PairColumn.list == "\(ReaderColumn.list), \(ChatColumn.list)")
        #expect(PairColumn.allCases.map(\.rawValue) == [0, 1, 2, 3, 4])
        #expect(
            (0..<6).map { PairColumn(rawValue: $0)?.sql ?? "" } == PairColumn.allCases.map(\.sql)
                + [""]
        )
    }

    @Test("the columns of a pair are those of both", arguments: SQLEngine.available)
    func pairs(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let query: SQLQuery<PairColumn> = try connection.query(
            "SELECT \(PairColumn.list) FROM reader ORDER BY user_id"
        )
        func words(_ reader: SQLRow<ReaderColumn>, _ chat: SQLRow<ChatColumn>) -> String {
            let title = chat.optionalString(.title) ?? "none"
            return
                "\(reader.string(.firstName)) \(reader.int(.nextN)) \(chat.int(.chatKey)) \(title)"
        }
        let found = try query.all(read: { words($0.first(), $0.second()) })
        #expect(found == ["Alice 11 7 none", "Bob 21 8 Friends"])
        let keys = try query.all(read: { [$0.int(.first(.userID)), $0.int(.second(.chatKey))] })
        #expect(keys == [[1, 7], [2, 8]])
    }

    @Test("a query can run again after each way to read it", arguments: SQLEngine.available)
    func again(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let query: SQLQuery<ReaderColumn> = try connection.query(
            "SELECT \(ReaderColumn.list) FROM reader WHERE user_id >= $1 ORDER BY user_id"
        )
        struct Interruption: Error {}
        for _ in 0..<2 {
            let first = try query.one({ $0.bind(1, 1) }, read: { $0.string(.firstName) })
            #expect(first == "Alice")
            #expect(try query.one({ $0.bind(1, 3) }, read: { $0.int(.userID) }) == nil)
            var ids: [Int64] = []
            try query.each({ $0.bind(1, 1) }, do: { ids.append($0.int(.userID)) })
            try query.each(
                { $0.bind(1, 1) },
                while: {
                    ids.append($0.int(.userID))
                    return false
                }
            )
            #expect(ids == [1, 2, 1])
            #expect(throws: Interruption.self) {
                try query.each({ $0.bind(1, 1) }, do: { _ in throw Interruption() })
            }
        }
    }

    @Test("statements of one column, and those that write", arguments: SQLEngine.available)
    func statements(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let number = try connection.prepare("SELECT read_n FROM reader WHERE user_id = $1")
        let largest = try connection.prepare("SELECT max(read_n) FROM reader")
        let remove = try connection.prepare("DELETE FROM reader WHERE user_id = $1")
        #expect(number.columnCount == 1)
        #expect(remove.columnCount == 0)
        #expect(try number.oneInt { $0.bind(1, 2) } == 20)
        #expect(try largest.oneInt() == 20)
        #expect(try number.hasRow { $0.bind(1, 1) })
        #expect(try remove.run { $0.bind(1, 1) } == 1)
        #expect(try remove.run { $0.bind(1, 1) } == 0)
        #expect(try !number.hasRow { $0.bind(1, 1) })
        #expect(try number.oneInt { $0.bind(1, 1) } == nil)
        try remove.run { $0.bind(1, 2) }
        #expect(try largest.oneInt() == nil)
    }
}
