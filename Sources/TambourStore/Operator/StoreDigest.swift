import Crypto
import TambourProtocol
package import TambourSQL

/// A digest of a table's contents. If the digests of two tables are equal, their rows are equal.
package struct TableDigest: Equatable, Sendable {
    package let table: String
    package let rows: Int
    /// The SHA-256 of all rows in the order of the file, as hex digits.
    package let sha256: String

    package init(table: String, rows: Int, sha256: String) {
        self.table = table
        self.rows = rows
        self.sha256 = sha256
    }
}

/// Computes digests of a whole store, to verify a copy.
package enum StoreDigest {
    /// The error for a store that is not a file. `tambourd` cannot copy such a store.
    package struct Unsupported: Error, CustomStringConvertible {
        package init() {}

        package var description: String {
            "a PostgreSQL store is backed up by pg_dump and restored by pg_restore, not by tambourd"
        }
    }

    /// Returns the same connection with the operations on the whole file, such as copying.
    ///
    /// - Throws: `Unsupported` if the store is not a file.
    package static func file(_ sql: any SQLConnection) throws -> any SQLFileConnection {
        guard let file = sql as? any SQLFileConnection else { throw Unsupported() }
        return file
    }

    /// Returns a digest of each table, in the order of the names, followed by a digest of the
    /// schema.
    ///
    /// - Note: Reads the whole store. Call this function inside a snapshot.
    package static func tables(of sql: any SQLConnection) throws -> [TableDigest] {
        let file = try file(sql)
        return try file.tableNames().map { try digest(of: $0, in: file) } + [schema(of: file)]
    }

    private static func digest(
        of table: String,
        in file: any SQLFileConnection
    ) throws -> TableDigest {
        var sha = SHA256()
        var rows = 0
        try file.readRows(of: table) { row in
            rows += 1
            sha.update(bufferPointer: row)
        }
        return TableDigest(table: table, rows: rows, sha256: hex(sha))
    }

    /// Returns a digest of the statements that created the tables, indexes and other objects.
    private static func schema(of file: any SQLFileConnection) throws -> TableDigest {
        let statement = try file.prepare(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
        )
        defer { statement.reset() }
        var sha = SHA256()
        var rows = 0
        while try statement.step() {
            rows += 1
            for column in 0..<statement.columnCount {
                statement.withBytes(column) { sha.update(bufferPointer: $0) }
                sha.update(data: [0])
            }
        }
        return TableDigest(table: "(schema)", rows: rows, sha256: hex(sha))
    }

    private static func hex(_ sha: SHA256) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: sha.finalize().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self
        )
    }
}
