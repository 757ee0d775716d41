/// A database that connections can be opened to.
package protocol SQLSource: Sendable {
    /// Opens a connection.
    ///
    /// - Throws: `SQLError` of kind `io` when it cannot be opened, `corrupt` when it is not a
    ///   database, `other` when it cannot be configured.
    func open(_ mode: SQLMode) throws(SQLError) -> any SQLConnection
}

/// Whether a connection may write.
package enum SQLMode: Sendable {
    /// Creates the database when it is missing.
    case readWrite
    /// The database must exist.
    case readOnly
    /// The database must exist, and nobody may write it meanwhile, as on a read-only mount. No file
    /// is created beside it, and the contents of a write-ahead log beside it are ignored.
    case immutable
}

/// A database in one file on a local disk; its log lies beside it.
package struct SQLFile: SQLSource {
    package let path: String
    private let isDurable: Bool

    /// - Parameter isDurable: whether a commit waits for the disk. False is for tests only: a power
    ///   cut may then lose the last commits.
    package init(_ path: String, isDurable: Bool = true) {
        self.path = path
        self.isDurable = isDurable
    }

    package func open(_ mode: SQLMode) throws(SQLError) -> any SQLConnection {
        try connect(mode)
    }

    /// Opens a connection that can also do what concerns the file as a whole.
    package func connect(_ mode: SQLMode) throws(SQLError) -> any SQLFileConnection {
        try SQLiteConnection(path: path, mode: mode, synchronous: isDurable ? .full : .normal)
    }
}

/// A connection to a database in one file, with the operations on the whole file.
package protocol SQLFileConnection: SQLConnection {
    /// Copies the contents visible to this connection to a new file without any deleted data.
    ///
    /// If a snapshot is open, copies that snapshot and ignores concurrent writes. The write-ahead log
    /// grows until the snapshot ends. The copy is one file without a log, and is on the disk when this
    /// returns.
    /// - Throws: `SQLError`; an incomplete copy is then unusable.
    func copy(to path: String) throws(SQLError)

    /// Rewrites the file without deleted data and empties the log, so that no byte of that data is
    /// left.
    ///
    /// Takes as long as reading and writing the file, and temporarily twice its size on the disk.
    /// - Throws: `SQLError` of kind `busy` while another connection writes or a snapshot needs the
    ///   log.
    func vacuum() throws(SQLError)

    /// The size of the file without its log, bytes.
    var fileBytes: Int64 { get throws(SQLError) }

    /// Returns the tables of the schema by name, without the database's own.
    func tableNames() throws(SQLError) -> [String]

    /// Reads a table row by row in the order of the file.
    ///
    /// - Parameters:
    ///   - table: a name of the schema.
    ///   - body: receives each row as bytes, which differ if any value or its type does; valid
    ///     during the call.
    func readRows(of table: String, _ body: (UnsafeRawBufferPointer) -> Void) throws(SQLError)

    /// Reads the whole file and returns the first hundred problems.
    ///
    /// - Note: Takes time proportional to the size of the file.
    func quickCheck() throws(SQLError) -> [String]
}
