import TambourSQL
import Testing

/// The promises that both drivers must keep. The same code tests both.
@Suite("Both drivers keep the promises of SQLConnection and SQLStatement")
struct SQLDriverTests {
    /// With WITHOUT ROWID, SQLite refuses a NULL key. In a table without it, SQLite would replace a
    /// NULL in an INTEGER PRIMARY KEY by the next free number.
    static let table = """
        CREATE TABLE t(id {int64} NOT NULL PRIMARY KEY, name {text}, body {blob}) {without_rowid}
        """

    private func open(
        _ engine: SQLEngine
    ) throws -> (database: TestDatabase, connection: any SQLConnection) {
        let database = try TestDatabase(engine)
        let connection = try database.connect()
        try connection.execute(connection.dialect.expand(SQLDriverTests.table))
        return (database, connection)
    }

    private func insert(_ ids: ClosedRange<Int>, into connection: any SQLConnection) throws {
        let insert = try connection.prepare("INSERT INTO t(id) VALUES ($1)")
        for id in ids {
            insert.bind(1, id)
            try insert.run()
        }
    }

    private func count(on connection: any SQLConnection) throws -> Int64 {
        let select = try connection.prepare("SELECT count(*) FROM t")
        #expect(try select.step())
        return select.int(0)
    }

    @Test("what is bound comes back the same", arguments: SQLEngine.available)
    func roundTrip(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let insert = try connection.prepare("INSERT INTO t(id, name, body) VALUES ($1, $2, $3)")
        let select = try connection.prepare("SELECT id, name, body FROM t WHERE id = $1")
        let everyByte = [UInt8](0...255)
        let cases: [(id: Int64, name: String?, body: [UInt8]?)] = [
            (0, "", []), (1, nil, nil), (-1, "Привет, 👋🏽", everyByte), (.max, "x", [0]),
            (.min, String(repeating: "ж", count: 70_000), everyByte + everyByte),
        ]

        for (id, name, body) in cases {
            insert.bind(1, id)
            insert.bindText(2, name)
            insert.bindBlob(3, body)
            #expect(try insert.run() == 1)

            select.bind(1, id)
            #expect(try select.step())
            #expect(select.columnCount == 3)
            #expect(select.int(0) == id)
            #expect(select.optionalInt(0) == id)
            #expect(select.isNull(1) == (name == nil))
            #expect(select.optionalString(1) == name)
            #expect(select.string(1) == name ?? "")
            #expect(select.optionalBytes(2) == body)
            #expect(select.bytes(2) == body ?? [])
            #expect(select.withBytes(1) { Array($0) } == Array((name ?? "").utf8))
            #expect(try !select.step())
            select.reset()
        }
    }

    @Test(
        "parameters go by their number, in any order and repeated",
        arguments: SQLEngine.available
    )
    func parameterNumbers(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let select = try connection.prepare(
            """
            SELECT CAST($3 AS bigint), CAST($1 AS bigint), CAST($2 AS bigint),
                CAST($1 AS bigint) + CAST($3 AS bigint)
            """
        )
        select.bind(1, 10)
        select.bind(2, 200)
        select.bind(3, 3_000)
        #expect(try select.step())
        #expect((0...3).map { select.int($0) } == [3_000, 10, 200, 3_010])
    }

    @Test("more than nine parameters keep their places", arguments: SQLEngine.available)
    func manyParameters(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let numbers = (1...12).reversed()
        let list = numbers.map { "CAST($\($0) AS bigint)" }.joined(separator: ", ")
        let select = try connection.prepare("SELECT \(list)")
        for number in numbers { select.bind(number, number * 7) }
        #expect(try select.step())
        #expect((0..<12).map { select.int($0) } == numbers.map { Int64($0 * 7) })
    }

    @Test(
        "a text that is not one statement with $1 to $n is refused",
        arguments: SQLEngine.available,
        [
            "SELECT id FROM t WHERE id = $2", "SELECT 1; SELECT 2", "SELEC", "",
            "SELECT id FROM missing",
        ]
    )
    func wrongTexts(engine: SQLEngine, sql: String) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let error = #expect(throws: SQLError.self) {
            let statement = try connection.prepare(sql)
            // PostgreSQL prepares an empty text. It fails only when it runs the text.
            if sql.isEmpty { _ = try statement.step() }
        }
        #expect(error?.kind == .other)
        #expect(error?.sql == sql)
        #expect(error?.message.isEmpty == false)
    }

    @Test("what was bound is forgotten by reset", arguments: SQLEngine.available)
    func resetForgets(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let insert = try connection.prepare("INSERT INTO t(id, name) VALUES ($1, $2)")
        insert.bind(1, 1)
        insert.bindText(2, "kept")
        try insert.run()
        insert.bind(1, 2)
        try insert.run()
        let select = try connection.prepare("SELECT name FROM t ORDER BY id")
        #expect(try select.step())
        #expect(select.string(0) == "kept")
        #expect(try select.step())
        #expect(select.isNull(0))
    }

    @Test("text and blobs may be lent until reset", arguments: SQLEngine.available)
    func borrowed(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let insert = try connection.prepare("INSERT INTO t(id, name, body) VALUES ($1, $2, $3)")
        try Array("lent".utf8).withUnsafeBytes { bytes in
            insert.bind(1, 1)
            insert.bindText(2, borrowed: bytes)
            insert.bindBlob(3, borrowed: UnsafeRawBufferPointer(rebasing: bytes[1...]))
            try insert.run()
            insert.bind(1, 2)
            insert.bindText(2, borrowed: UnsafeRawBufferPointer(start: nil, count: 0))
            insert.bindBlob(3, borrowed: UnsafeRawBufferPointer(rebasing: bytes[4...]))
            try insert.run()
        }
        let select = try connection.prepare("SELECT name, body FROM t ORDER BY id")
        #expect(try select.step())
        #expect(select.string(0) == "lent")
        #expect(select.bytes(1) == Array("ent".utf8))
        #expect(try select.step())
        #expect(select.optionalString(0) == "")
        #expect(select.optionalBytes(1) == [])
    }

    @Test("after the last row step stays false until reset", arguments: SQLEngine.available)
    func stepAfterTheEnd(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        try insert(1...2, into: connection)
        let select = try connection.prepare("SELECT id FROM t")
        for _ in 1...2 {
            #expect(try select.step())
            #expect(try select.step())
            #expect(try !select.step())
            #expect(try !select.step())
            select.reset()
        }
    }

    @Test("run says how many rows changed", arguments: SQLEngine.available)
    func changes(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        try insert(1...5, into: connection)
        #expect(try connection.prepare("UPDATE t SET name = 'x' WHERE id > 2").run() == 3)
        #expect(try connection.prepare("SELECT id FROM t").run() == 0)
        let again = "INSERT INTO t(id) VALUES ($1) ON CONFLICT DO NOTHING"
        let insert = try connection.prepare(again)
        insert.bind(1, 5)
        #expect(try insert.run() == 0)
        insert.bind(1, 6)
        #expect(try insert.run() == 1)
        #expect(try connection.prepare("DELETE FROM t").run() == 6)
    }

    @Test("rows come back from a write that asks for them", arguments: SQLEngine.available)
    func returning(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let upsert = try connection.prepare(
            """
            INSERT INTO t(id, name) VALUES ($1, $2)
            ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id, name
            """
        )
        for name in ["a", "b"] {
            upsert.bind(1, 7)
            upsert.bindText(2, name)
            #expect(try upsert.step())
            #expect(upsert.int(0) == 7)
            #expect(upsert.string(1) == name)
            #expect(try !upsert.step())
            upsert.reset()
        }
    }

    @Test("sums, counts and flags are integers", arguments: SQLEngine.available)
    func aggregates(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        try connection.transaction(.immediate) { try insert(-2_000...2_001, into: connection) }
        let select = try connection.prepare(
            """
            SELECT sum(id), count(*), max(id), sum(id * 1000000000000), sum(id - 20001 * 2),
                count(*) > 5, sum(id) FILTER (WHERE id > 90000)
            FROM t
            """
        )
        #expect(try select.step())
        #expect(select.int(0) == 2_001)
        #expect(select.int(1) == 4_002)
        #expect(select.int(2) == 2_001)
        #expect(select.int(3) == 2_001_000_000_000_000)
        #expect(select.int(4) == 2_001 - 4_002 * 40_002)
        #expect(select.bool(5))
        #expect(select.isNull(6))
        #expect(select.int(6) == 0)
        #expect(select.optionalInt(6) == nil)
    }

    @Test(
        "a broken rule is a constraint, and the values are not told",
        arguments: SQLEngine.available
    )
    func constraint(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let insert = try connection.prepare("INSERT INTO t(id) VALUES ($1)")
        insert.bind(1, 123_456_789)
        try insert.run()
        insert.bind(1, 123_456_789)
        let twice = #expect(throws: SQLError.self) { try insert.run() }
        #expect(twice?.kind == .constraint)
        #expect(twice?.description.contains("123456789") == false)
        let null = #expect(throws: SQLError.self) { try insert.run() }
        #expect(null?.kind == .constraint)
        insert.bind(1, 2)
        #expect(try insert.run() == 1)
    }

    @Test("execute runs several statements", arguments: SQLEngine.available)
    func execute(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        try connection.execute("INSERT INTO t(id) VALUES (1); INSERT INTO t(id) VALUES (2);")
        #expect(try count(on: connection) == 2)
    }

    @Test("what is rolled back is gone, what is committed stays", arguments: SQLEngine.available)
    func transactions(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        let other = try database.connect(.readOnly)
        try connection.begin(.immediate)
        #expect(connection.isInTransaction)
        try insert(1...3, into: connection)
        #expect(try count(on: connection) == 3)
        #expect(try count(on: other) == 0)
        connection.rollback()
        #expect(!connection.isInTransaction)
        #expect(try count(on: connection) == 0)

        try connection.transaction(.immediate) { try insert(1...3, into: connection) }
        #expect(!connection.isInTransaction)
        #expect(try count(on: other) == 3)
        try connection.checkpoint()
        #expect(try count(on: other) == 3)
    }

    @Test("a transaction whose body throws leaves nothing", arguments: SQLEngine.available)
    func transactionThatThrows(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let error = #expect(throws: SQLError.self) {
            try connection.transaction(.immediate) {
                try insert(1...2, into: connection)
                try insert(2...2, into: connection)
            }
        }
        #expect(error?.kind == .constraint)
        #expect(!connection.isInTransaction)
        #expect(try count(on: connection) == 0)
    }

    @Test("rollback without a transaction does nothing", arguments: SQLEngine.available)
    func rollbackAlone(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        connection.rollback()
        try insert(1...1, into: connection)
        #expect(try count(on: connection) == 1)
    }

    @Test("a snapshot is taken when begin returns", arguments: SQLEngine.available)
    func snapshot(engine: SQLEngine) throws {
        let (database, writer) = try open(engine)
        let reader = try database.connect(.readOnly)
        try insert(1...1, into: writer)
        try reader.begin(.snapshot)
        try writer.transaction(.immediate) { try insert(2...9, into: writer) }
        #expect(try count(on: reader) == 1)
        try reader.commit()
        #expect(try count(on: reader) == 9)
    }

    @Test("a snapshot cannot write", arguments: SQLEngine.available)
    func snapshotCannotWrite(engine: SQLEngine) throws {
        let (database, writer) = try open(engine)
        defer { withExtendedLifetime(writer) {} }
        let reader = try database.connect(.readOnly)
        try reader.begin(.snapshot)
        #expect(throws: SQLError.self) { try insert(1...1, into: reader) }
        reader.rollback()
        #expect(try count(on: reader) == 0)
    }

    @Test("statements and rows are counted", arguments: SQLEngine.available)
    func counters(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        let statements = connection.statementCount
        let rows = connection.rowsStepped
        try connection.transaction(.immediate) { try insert(1...4, into: connection) }
        #expect(connection.statementCount - statements == 4)
        #expect(connection.rowsStepped - rows == 0)
        let select = try connection.prepare("SELECT id FROM t")
        while try select.step() {}
        #expect(connection.statementCount - statements == 5)
        #expect(connection.rowsStepped - rows == 4)
    }

    @Test("two statements may be stepped side by side", arguments: SQLEngine.available)
    func interleaved(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        try insert(1...3, into: connection)
        let outer = try connection.prepare("SELECT id FROM t ORDER BY id")
        let inner = try connection.prepare("SELECT id FROM t WHERE id >= $1 ORDER BY id")
        var seen: [[Int64]] = []
        while try outer.step() {
            inner.bind(1, outer.int(0))
            while try inner.step() { seen.append([outer.int(0), inner.int(0)]) }
            inner.reset()
        }
        #expect(seen == [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3], [3, 3]])
    }

    @Test("many statements come and go on one connection", arguments: SQLEngine.available)
    func shortLivedStatements(engine: SQLEngine) throws {
        let (database, connection) = try open(engine)
        defer { withExtendedLifetime(database) {} }
        for id in 1...50 {
            try connection.transaction(.immediate) { try insert(id...id, into: connection) }
        }
        #expect(try count(on: connection) == 50)
    }
}
