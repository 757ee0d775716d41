/// Why the database refused, in terms both engines share.
///
/// Neither the message nor the text contains a bound value: it may be logged.
package struct SQLError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What callers may want to tell apart.
    package enum Kind: String, Sendable {
        /// A unique, foreign, check or not-null rule was broken.
        case constraint
        /// Another transaction is in the way: rolling back and trying again may help.
        case busy
        /// The file is damaged or is not a database.
        case corrupt
        /// The disk or a quota is full.
        case full
        /// The operating system refused to read, write or open, or the connection is lost.
        case io
        /// Anything else, most of all a mistake in the statement.
        case other
    }

    package var kind: Kind
    /// The engine's own words.
    package var message: String
    /// The engine's own code: SQLite's extended result code or PostgreSQL's SQLSTATE.
    package var engineCode: String
    /// The statement, as text; empty when there was none.
    package var sql: String

    package init(kind: Kind, message: String, engineCode: String = "", sql: String = "") {
        self.kind = kind
        self.message = message
        self.engineCode = engineCode
        self.sql = sql
    }

    package var description: String {
        let code = engineCode.isEmpty ? "" : " \(engineCode)"
        return sql.isEmpty
            ? "\(kind.rawValue)\(code): \(message)"
            : "\(kind.rawValue)\(code): \(message) in: \(sql)"
    }
}
