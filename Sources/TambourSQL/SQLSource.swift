/// A database to which connections can be opened.
package protocol SQLSource: Sendable {
    /// Opens a connection.
    ///
    /// - Throws: `SQLError`. The kind is `io` when the database cannot be opened. It is `corrupt`
    ///   when the file is not a database. It is `other` when the connection cannot be configured.
    func open(_ mode: SQLMode) throws(SQLError) -> any SQLConnection
}

/// Whether a connection may write.
package enum SQLMode: Sendable {
    /// Creates the database when it is missing.
    case readWrite
    /// The database must exist.
    case readOnly
    /// The database must exist. No process may write to it while the connection is open, for
    /// example because the file is on a read-only mount. SQLite creates no other files and ignores
    /// a write-ahead log.
    case immutable
}

/// A database in one file on a local disk. Its log is a second file in the same directory.
package struct SQLFile: SQLSource {
    package let path: String
    private let isDurable: Bool

    /// - Parameter isDurable: whether a commit waits for the disk. False is for tests only, because
    ///   a power cut may lose the last commits.
    package init(_ path: String, isDurable: Bool = true) {
        self.path = path
        self.isDurable = isDurable
    }

    package func open(_ mode: SQLMode) throws(SQLError) -> any SQLConnection {
        try connect(mode)
    }

    /// Opens a connection that also has the operations on the whole file.
    package func connect(_ mode: SQLMode) throws(SQLError) -> any SQLFileConnection {
        try SQLiteConnection(path: path, mode: mode, synchronous: isDurable ? .full : .normal)
    }
}

/// A connection to a database in one file, with the operations on the whole file.
package protocol SQLFileConnection: SQLConnection {
    /// Copies the data that this connection sees to a new file. The copy contains no deleted data.
    ///
    /// If a snapshot is open, the copy contains this snapshot, without concurrent writes. The
    /// write-ahead log grows until the snapshot ends. The copy is one file without a log. The
    /// function returns after the copy is synced to the disk.
    /// - Throws: `SQLError`. After an error, an incomplete file may remain at `path`; it must not
    ///   be used.
    func copy(to path: String) throws(SQLError)

    /// Rewrites the file without deleted data and empties the log. Afterwards neither the file nor
    /// the log contains deleted data.
    ///
    /// The function takes as long as reading and writing the whole file. It temporarily needs twice
    /// the size of the file on the disk.
    /// - Throws: `SQLError` of kind `busy` while another connection writes or a snapshot needs the
    ///   log.
    func vacuum() throws(SQLError)

    /// The size of the file without its log, in bytes.
    var fileBytes: Int64 { get throws(SQLError) }

    /// Returns the names of the schema's tables, without the internal tables of the engine.
    func tableNames() throws(SQLError) -> [String]

    /// Reads a table row by row in the order of the file.
    ///
    /// - Parameters:
    ///   - table: the name of a table.
    ///   - body: receives each row as bytes, which are valid during the call. Two rows have the
    ///     same bytes only if all values and their types are the same.
    func readRows(of table: String, _ body: (UnsafeRawBufferPointer) -> Void) throws(SQLError)

    /// Reads the whole file and returns the first hundred problems.
    ///
    /// - Note: The time is proportional to the size of the file.
    func quickCheck() throws(SQLError) -> [String]
}
