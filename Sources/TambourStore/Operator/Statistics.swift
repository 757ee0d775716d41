import TambourProtocol
import TambourSQL

/// The size of a table, including its indexes.
package struct TableSize: Equatable, Sendable {
    package let table: String
    package let rows: Int64
    /// The size of the table's pages in bytes; nil if the database does not report it.
    package let bytes: Int64?

    package init(table: String, rows: Int64, bytes: Int64?) {
        self.table = table
        self.rows = rows
        self.bytes = bytes
    }
}

private enum TableNameColumn: Int, SQLColumn {
    case tablename

    var sql: String { "CAST(tablename AS text)" }
}

/// The name of a table and its size in bytes. The FROM clause, which depends on the dialect,
/// provides both columns.
private enum TableBytesColumn: Int, SQLColumn {
    case table, bytes
}

private enum MeasurementColumn: Int, SQLColumn {
    case day, name, rowCount, bytes
}

extension ReadTransaction {
    /// Returns the size of every table, in the order of the table names.
    ///
    /// - Note: Reads the whole store. Do not call this function on a reader that serves requests.
    package func tableSizes() throws -> [TableSize] {
        let bytes = try tableBytes()
        return try tableNames().map { table in
            let count = try store.sql.prepare("SELECT count(*) FROM \(table)")
            return TableSize(table: table, rows: try count.oneInt() ?? 0, bytes: bytes?[table])
        }
    }

    private func tableNames() throws -> [String] {
        if let file = store.sql as? any SQLFileConnection { return try file.tableNames() }
        return try select(
            TableNameColumn.self,
            "FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
        ) { $0.string(.tablename) }
    }

    /// Returns the size of each table in bytes; nil if SQLite was built without `dbstat`.
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
        guard let query: SQLQuery<TableBytesColumn> = try? store.sql.query(sql) else { return nil }
        var bytes: [String: Int64] = [:]
        try query.each(do: { bytes[$0.string(.table)] = $0.int(.bytes) })
        return bytes
    }

    /// Returns the stored sizes of the last day that is not after `day`. If there is no such day,
    /// returns the sizes of the first stored day.
    ///
    /// - Parameter day: a day, as the number of days since 1970.
    /// - Returns: nil if no sizes are stored.
    package func keptSizes(upTo day: Int64) throws -> (day: Int64, sizes: [TableSize])? {
        let rows = try select(
            MeasurementColumn.self,
            """
            FROM measurement
            WHERE day = COALESCE(
              (SELECT max(day) FROM measurement WHERE day <= $1),
              (SELECT min(day) FROM measurement)
            )
            ORDER BY name
            """,
            day
        ) { row in
            let size = TableSize(
                table: row.string(.name),
                rows: row.int(.rowCount),
                bytes: row.optionalInt(.bytes)
            )
            return (day: row.int(.day), size: size)
        }
        return rows.first.map { ($0.day, rows.map(\.size)) }
    }

    /// Returns the number of messages that are not deleted for all users.
    package func messageCount() throws -> Int64 {
        try store.sql.prepare("SELECT count(*) FROM message WHERE status <> 2").oneInt() ?? 0
    }
}

extension WriteTransaction {
    /// Stores the sizes of a day, which is a number of days since 1970. Replaces earlier sizes of
    /// the same day.
    package func keep(_ sizes: [TableSize], of day: Int64) throws {
        writes += 1
        let forget = try store.sql.prepare("DELETE FROM measurement WHERE day = $1")
        try forget.run { $0.bind(1, day) }
        let insert = try store.sql.prepare(
            "INSERT INTO measurement (day, name, row_count, bytes) VALUES ($1, $2, $3, $4)"
        )
        for size in sizes {
            try insert.run {
                $0.bind(1, day)
                $0.bindText(2, size.table)
                $0.bind(3, size.rows)
                $0.bind(4, size.bytes)
            }
        }
    }
}

extension ReadTransaction {
    /// Returns the clock of the last commit, Unix milliseconds; 0 in a new store.
    package func lastCommit() throws -> Int64 { try store.meta.value("ct") ?? 0 }
}
