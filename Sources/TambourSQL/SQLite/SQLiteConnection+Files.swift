import CSQLite

extension SQLiteConnection: SQLFileConnection {
    package func copy(to path: String) throws(SQLError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        defer { sqlite3_close_v2(opened) }
        guard code == SQLITE_OK, let opened else {
            throw SQLError(sqlite: code, on: opened, sql: "open")
        }
        guard let backup = sqlite3_backup_init(opened, "main", handle, "main") else {
            throw SQLError(sqlite: sqlite3_errcode(opened), on: opened, sql: "backup")
        }
        let copied = sqlite3_backup_step(backup, -1)
        let finished = sqlite3_backup_finish(backup)
        guard copied == SQLITE_DONE, finished == SQLITE_OK else {
            let code = copied == SQLITE_DONE ? finished : copied
            throw SQLError(sqlite: code, on: opened, sql: "backup")
        }
        for statement in [
            "PRAGMA synchronous = FULL", "PRAGMA journal_mode = DELETE", "VACUUM",
        ] {
            let code = sqlite3_exec(opened, statement, nil, nil, nil)
            guard code == SQLITE_OK else {
                throw SQLError(sqlite: code, on: opened, sql: statement)
            }
        }
    }

    package func vacuum() throws(SQLError) {
        // Put the temporary copy in a file, because it may not fit into memory. Other temporary
        // data stays in memory.
        try execute("PRAGMA temp_store = FILE")
        do {
            try execute("VACUUM")
        } catch {
            try execute("PRAGMA temp_store = MEMORY")
            throw error
        }
        try execute("PRAGMA temp_store = MEMORY")
        try checkpoint()
    }

    package var fileBytes: Int64 {
        get throws(SQLError) { try pragma("page_count") * pragma("page_size") }
    }

    package func tableNames() throws(SQLError) -> [String] {
        let statement = try prepare(
            """
            SELECT name FROM sqlite_schema
            WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
            """
        )
        var names: [String] = []
        while try statement.step() { names.append(statement.string(0)) }
        return names
    }

    package func readRows(of table: String, _ body: (UnsafeRawBufferPointer) -> Void)
        throws(SQLError)
    {
        var compiled: OpaquePointer?
        let sql = "SELECT * FROM \"\(table)\" NOT INDEXED"
        let code = sqlite3_prepare_v2(handle, sql, -1, &compiled, nil)
        defer { sqlite3_finalize(compiled) }
        guard code == SQLITE_OK, let compiled else {
            throw SQLError(sqlite: code, on: handle, sql: sql)
        }
        var row: [UInt8] = []
        while true {
            let code = sqlite3_step(compiled)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw SQLError(sqlite: code, on: handle, sql: sql) }
            row.removeAll(keepingCapacity: true)
            for column in 0..<sqlite3_column_count(compiled) {
                Self.append(compiled, column, to: &row)
            }
            row.withUnsafeBytes(body)
        }
    }

    /// Appends the type of a value, then the value. Integers and floats take eight bytes. For a
    /// text or blob, the length comes first.
    private static func append(
        _ statement: OpaquePointer,
        _ column: Int32,
        to row: inout [UInt8]
    ) {
        func append(_ value: UInt64) {
            withUnsafeBytes(of: value.littleEndian) { row.append(contentsOf: $0) }
        }
        let type = sqlite3_column_type(statement, column)
        row.append(UInt8(truncatingIfNeeded: type))
        switch type {
        case SQLITE_INTEGER:
            append(UInt64(bitPattern: sqlite3_column_int64(statement, column)))
        case SQLITE_FLOAT:
            append(sqlite3_column_double(statement, column).bitPattern)
        case SQLITE_NULL:
            break
        default:
            let start = sqlite3_column_blob(statement, column)
            let count = Int(sqlite3_column_bytes(statement, column))
            append(UInt64(count))
            row.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
        }
    }
}
