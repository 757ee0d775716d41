/// A database error in terms common to both engines.
///
/// The message and the SQL text may be logged, because they contain no bound values. There is one
/// exception: the message may contain a value that PostgreSQL cannot convert to the type of its
/// parameter.
public struct SQLError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of errors that callers distinguish.
    package enum Kind: String, Sendable {
        /// A unique, foreign key, check or not-null constraint was violated.
        case constraint
        /// Another transaction holds a lock. A rollback and a retry may help.
        case busy
        /// The file is damaged or is not a database.
        case corrupt
        /// The disk or a quota is full.
        case full
        /// The operating system could not open, read or write a file, or the connection is lost.
        case io
        /// Any other error, usually a mistake in the statement.
        case other
    }

    package var kind: Kind
    /// The engine's own message.
    package var message: String
    /// The engine's own code: SQLite's extended result code or PostgreSQL's SQLSTATE.
    package var engineCode: String
    /// The text of the statement; empty for an error without a statement.
    package var sql: String

    package init(kind: Kind, message: String, engineCode: String = "", sql: String = "") {
        self.kind = kind
        self.message = message
        self.engineCode = engineCode
        self.sql = sql
    }

    public var description: String {
        let code = engineCode.isEmpty ? "" : " \(engineCode)"
        return sql.isEmpty
            ? "\(kind.rawValue)\(code): \(message)"
            : "\(kind.rawValue)\(code): \(message) in: \(sql)"
    }
}
