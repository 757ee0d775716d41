import CSQLite

extension SQLError {
    /// Creates the error for a result code of SQLite. The connection may provide a more detailed
    /// message than the code alone.
    ///
    /// - Parameter handle: The connection on which the error occurred. The new error contains the
    ///   connection's last message if this message belongs to `code`.
    init(sqlite code: Int32, on handle: OpaquePointer?, sql: String) {
        let message: UnsafePointer<CChar>? =
            if let handle, sqlite3_extended_errcode(handle) == code || code == SQLITE_ERROR {
                sqlite3_errmsg(handle)
            } else {
                sqlite3_errstr(code)
            }
        self.init(
            kind: Kind(sqlite: code),
            message: message.map { String(cString: $0) } ?? "unknown",
            engineCode: String(code),
            sql: sql
        )
    }
}

extension SQLError.Kind {
    /// Creates the kind for a SQLite result code. The low byte of an extended code is the primary
    /// code.
    fileprivate init(sqlite code: Int32) {
        self =
            switch code & 0xff {
            case SQLITE_CONSTRAINT: .constraint
            case SQLITE_BUSY, SQLITE_LOCKED: .busy
            case SQLITE_CORRUPT, SQLITE_NOTADB: .corrupt
            case SQLITE_FULL: .full
            case SQLITE_IOERR, SQLITE_CANTOPEN: .io
            default: .other
            }
    }
}
