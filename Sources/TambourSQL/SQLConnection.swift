/// A database connection, which prepares statements and runs transactions.
///
/// A connection and its statements have no locks: only one thread at a time may use them. Each
/// statement has one text for both engines. Parameters are `$1`, `$2` …, and each may appear
/// several times. `SQLDialect` handles differences between the engines.
///
/// After an error inside a transaction the transaction is unusable: PostgreSQL rejects every
/// further statement, and SQLite may have rolled back already. Callers must handle every `SQLError`
/// with `rollback()`.
package protocol SQLConnection: AnyObject {
    /// The dialect of the connection's statements.
    var dialect: SQLDialect { get }

    /// Compiles a statement that the caller keeps and runs many times.
    ///
    /// - Parameter sql: One statement; its parameters are `$1` to `$n` without gaps. Where
    ///   PostgreSQL cannot infer a parameter's type, write `CAST($1 AS bigint)`: both engines
    ///   accept it.
    /// - Throws: `SQLError` of kind `other` when the text is invalid.
    func prepare(_ sql: String) throws(SQLError) -> any SQLStatement

    /// Runs one or several statements without parameters and discards their rows.
    func execute(_ sql: String) throws(SQLError)

    /// Opens a transaction.
    ///
    /// - Throws: `SQLError` of kind `busy` when the write lock is not available in time.
    func begin(_ mode: SQLTransactionMode) throws(SQLError)

    /// Commits the open transaction and makes it durable. In a snapshot, only ends the snapshot.
    ///
    /// Before the call, the caller must reset every statement that writes. After an error the
    /// transaction is still open; call `rollback()`.
    func commit() throws(SQLError)

    /// Rolls back the open transaction. Does nothing when no transaction is open, and never fails.
    func rollback()

    /// Whether a transaction is open; false if the engine itself has rolled the transaction back.
    var isInTransaction: Bool { get }

    /// Copies the contents of the write-ahead log to the database file and empties the log.
    ///
    /// Does nothing on PostgreSQL, because PostgreSQL makes checkpoints by itself.
    /// - Throws: `SQLError` of kind `busy` while a reader's snapshot still needs the log.
    func checkpoint() throws(SQLError)

    /// The number of times that prepared statements were run so far. Transactions and `execute` do
    /// not count.
    var statementCount: Int { get }

    /// The number of rows that prepared statements have returned so far.
    var rowsStepped: Int { get }
}

/// The purpose of a transaction.
package enum SQLTransactionMode: Sendable {
    /// For writing. SQLite takes the write lock in `begin`, so a later write cannot fail because of
    /// the lock.
    case immediate
    /// For reading. The snapshot is taken before `begin` returns, and later commits stay invisible.
    case snapshot
}

extension SQLConnection {
    /// Runs `body` in a transaction. Commits when `body` returns, and rolls back when it throws.
    package func transaction<Result>(
        _ mode: SQLTransactionMode,
        _ body: () throws -> Result
    ) throws -> Result {
        try begin(mode)
        do {
            let result = try body()
            try commit()
            return result
        } catch {
            rollback()
            throw error
        }
    }
}
