/// One connection to a database: statements are prepared on it and transactions run on it.
///
/// A connection and its statements belong to one thread at a time; nothing here locks.
/// The texts given to it are written once for both engines: parameters are `$1`, `$2` … (each may
/// appear several times), and what differs between the engines goes through `SQLDialect`.
///
/// Inside a transaction an error ends what may be done with it: PostgreSQL refuses every further
/// statement, and SQLite may have rolled back already. Callers answer any `SQLError` with
/// `rollback()`.
package protocol SQLConnection: AnyObject {
    /// The dialect its statements are written in.
    var dialect: SQLDialect { get }

    /// Compiles one statement that is meant to be kept and run many times.
    ///
    /// - Parameter sql: One statement; its parameters are `$1` to `$n` without a gap. Where
    ///   PostgreSQL cannot guess a parameter's type write `CAST($1 AS bigint)`: both engines read it.
    /// - Throws: `SQLError` of kind `other` when the text is wrong.
    func prepare(_ sql: String) throws(SQLError) -> any SQLStatement

    /// Runs a text of one or several statements without parameters and drops the rows.
    func execute(_ sql: String) throws(SQLError)

    /// Opens a transaction.
    ///
    /// - Throws: `SQLError` of kind `busy` when the write lock cannot be had in time.
    func begin(_ mode: SQLTransactionMode) throws(SQLError)

    /// Makes the open transaction durable, or ends the open snapshot.
    ///
    /// Every statement that writes must have been reset. After an error the transaction is still
    /// open: call `rollback()`.
    func commit() throws(SQLError)

    /// Undoes the open transaction; does nothing when none is open, and never fails.
    func rollback()

    /// Whether a transaction is open; false after the engine itself has rolled one back.
    var isInTransaction: Bool { get }

    /// Moves what the write-ahead log holds into the database file and empties the log.
    ///
    /// PostgreSQL does this by itself; there it does nothing.
    /// - Throws: `SQLError` of kind `busy` while a reader's snapshot still needs the log.
    func checkpoint() throws(SQLError)

    /// How many prepared statements were run so far; transactions and `execute` do not count.
    var statementCount: Int { get }

    /// How many rows prepared statements have returned so far.
    var rowsStepped: Int { get }
}

/// What a transaction is for.
package enum SQLTransactionMode: Sendable {
    /// To write: on SQLite the write lock is taken at once, so a later write cannot be refused.
    case immediate
    /// To read: the snapshot is taken before `begin` returns, and later commits stay invisible.
    case snapshot
}

extension SQLConnection {
    /// Runs `body` in a transaction: commits when it returns, rolls back when it throws.
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
