import TambourProtocol
import TambourSQL

/// The size of a table, including its indexes.
package struct TableSize: Equatable, Sendable {
    package let table: String
    package let rows: Int64
    /// The bytes of its pages; nil where the database does not report them.
    package let bytes: Int64?

    package init(table: String, rows: Int64, bytes: Int64?) {
        self.table = table
        self.rows = rows
        self.bytes = bytes
    }
}

extension ReadTransaction {
    /// Returns the size of every table, in the order of their names.
    ///
    /// - Note: Reads the whole store: do not use a reader that others wait for.
    package func tableSizes() throws -> [TableSize] {
        let bytes = try tableBytes()
        return try tableNames().map { table in
            let count = try store.sql.prepare("SELECT count(*) FROM \(table)")
            defer { count.reset() }
            return TableSize(
                table: table,
                rows: try count.step() ? count.int(0) : 0,
                bytes: bytes?[table]
            )
        }
    }

    private func tableNames() throws -> [String] {
        if let file = store.sql as? SQLiteConnection { return try file.tableNames() }
        let statement = try store.sql.prepare(
            """
            SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema()
            ORDER BY tablename
            """
        )
        defer { statement.reset() }
        var names: [String] = []
        while try statement.step() { names.append(statement.string(0)) }
        return names
    }

    /// Returns the bytes of each table; nil where SQLite was built without `dbstat`.
    private func tableBytes() throws -> [String: Int64]? {
        let sql =
            switch store.sql.dialect {
            case .sqlite:
                """
                SELECT s.tbl_name, sum(d.pgsize) FROM dbstat d
                JOIN sqlite_schema s ON s.name = d.name
                WHERE d.aggregate = 1 GROUP BY s.tbl_name
                """
            case .postgreSQL:
                """
                SELECT CAST(c.relname AS text), pg_total_relation_size(c.oid)
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = current_schema() AND c.relkind = 'r'
                """
            }
        guard let statement = try? store.sql.prepare(sql) else { return nil }
        defer { statement.reset() }
        var bytes: [String: Int64] = [:]
        while try statement.step() { bytes[statement.string(0)] = statement.int(1) }
        return bytes
    }

    /// Returns the sizes stored for the newest day not after `day`, or else for the first day.
    ///
    /// - Parameter day: days since 1970.
    /// - Returns: nil when none are stored.
    package func keptSizes(upTo day: Int64) throws -> (day: Int64, sizes: [TableSize])? {
        let statement = try store.sql.prepare(
            """
            SELECT day, name, row_count, bytes FROM measurement
            WHERE day = COALESCE(
              (SELECT max(day) FROM measurement WHERE day <= $1),
              (SELECT min(day) FROM measurement)
            )
            ORDER BY name
            """
        )
        defer { statement.reset() }
        statement.bind(1, day)
        var found: (day: Int64, sizes: [TableSize])?
        while try statement.step() {
            let size = TableSize(
                table: statement.string(1),
                rows: statement.int(2),
                bytes: statement.optionalInt(3)
            )
            found = (statement.int(0), (found?.sizes ?? []) + [size])
        }
        return found
    }

    /// Returns the number of messages that are not deleted for all.
    package func messageCount() throws -> Int64 {
        let statement = try store.sql.prepare("SELECT count(*) FROM message WHERE status <> 2")
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : 0
    }
}

extension WriteTransaction {
    /// Stores the sizes of a day, in days since 1970; replaces those of the same day.
    package func keep(_ sizes: [TableSize], of day: Int64) throws {
        writes += 1
        let forget = try store.sql.prepare("DELETE FROM measurement WHERE day = $1")
        forget.bind(1, day)
        try forget.run()
        let insert = try store.sql.prepare(
            "INSERT INTO measurement (day, name, row_count, bytes) VALUES ($1, $2, $3, $4)"
        )
        for size in sizes {
            insert.bind(1, day)
            insert.bindText(2, size.table)
            insert.bind(3, size.rows)
            insert.bind(4, size.bytes)
            try insert.run()
        }
    }
}

extension ReadTransaction {
    /// Returns the clock of the last commit, Unix milliseconds; 0 in a new store.
    package func lastCommit() throws -> Int64 { try store.meta.value("ct") ?? 0 }
}
