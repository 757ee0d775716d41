/// The columns of a SELECT, by name: the raw value of a case is its place in the list.
///
/// ```swift
/// enum VoteColumn: Int, SQLColumn { case userID, time }
/// let votes: SQLQuery<VoteColumn> = try sql.query(
///     "SELECT \(VoteColumn.list) FROM vote WHERE chat = $1"
/// )
/// let times = try votes.all({ $0.bind(1, chat) }, read: { $0.int(.time) })
/// ```
package protocol SQLColumn: RawRepresentable, CaseIterable, Sendable where RawValue == Int {
    /// What is selected. Without another one, the name of the case with underscores: `userID` is `user_id`.
    var sql: String { get }
}

extension SQLColumn {
    package var sql: String { snakeCase }

    /// The name of the case with underscores.
    package var snakeCase: String {
        var words = ""
        var isInWord = false
        for letter in "\(self)" {
            if letter.isUppercase, isInWord { words += "_" }
            words += letter.lowercased()
            // `ID` and the like are one word.
            isInWord = letter.isLowercase || letter.isNumber
        }
        return words
    }

    /// The list that a SELECT names, in the order of the cases.
    package static var list: String { allCases.map(\.sql).joined(separator: ", ") }

    /// The list with the name of a table before each column, for joins.
    package static func list(of table: String) -> String {
        allCases.map { "\(table).\($0.sql)" }.joined(separator: ", ")
    }
}

/// The columns of `First` and after them those of `Second`: one reader of `First` serves SELECTs
/// that add columns of their own.
package enum SQLPair<First: SQLColumn, Second: SQLColumn>: SQLColumn {
    case first(First)
    case second(Second)

    package init?(rawValue: Int) {
        if let column = First(rawValue: rawValue) {
            self = .first(column)
        } else if let column = Second(rawValue: rawValue - First.allCases.count) {
            self = .second(column)
        } else {
            return nil
        }
    }

    @inlinable
    package var rawValue: Int {
        switch self {
        case .first(let column): column.rawValue
        case .second(let column): First.allCases.count + column.rawValue
        }
    }

    package static var allCases: [Self] {
        First.allCases.map(Self.first) + Second.allCases.map(Self.second)
    }

    package var sql: String {
        switch self {
        case .first(let column): column.sql
        case .second(let column): column.sql
        }
    }
}

// Inlinable: the compiler replaces the name of a column by its number, in other modules too.

/// A row of a SELECT whose columns have names; valid until the next step.
package struct SQLRow<Column: SQLColumn> {
    @usableFromInline let statement: any SQLStatement
    /// The number of columns before those of `Column`.
    @usableFromInline let offset: Int

    @inlinable
    package init(_ statement: any SQLStatement) {
        self.init(statement, offset: 0)
    }

    @inlinable
    init(_ statement: any SQLStatement, offset: Int) {
        self.statement = statement
        self.offset = offset
    }

    @inlinable
    func place(of column: Column) -> Int { offset + column.rawValue }

    /// Whether the value is NULL.
    @inlinable
    package func isNull(_ column: Column) -> Bool { statement.isNull(place(of: column)) }
    /// The integer; 0 for NULL.
    @inlinable
    package func int(_ column: Column) -> Int64 { statement.int(place(of: column)) }
    @inlinable
    package func optionalInt(_ column: Column) -> Int64? {
        statement.optionalInt(place(of: column))
    }
    /// Whether the integer is not 0.
    @inlinable
    package func bool(_ column: Column) -> Bool { statement.bool(place(of: column)) }
    /// A copy of the text or blob; empty for NULL.
    @inlinable
    package func bytes(_ column: Column) -> [UInt8] { statement.bytes(place(of: column)) }
    @inlinable
    package func optionalBytes(_ column: Column) -> [UInt8]? {
        statement.optionalBytes(place(of: column))
    }
    /// The text; empty for NULL.
    @inlinable
    package func string(_ column: Column) -> String { statement.string(place(of: column)) }
    @inlinable
    package func optionalString(_ column: Column) -> String? {
        statement.optionalString(place(of: column))
    }
    /// The bytes of a text or blob, empty for NULL; valid until the next step.
    @inlinable
    package func borrowedBytes(_ column: Column) -> UnsafeRawBufferPointer {
        statement.borrowedBytes(place(of: column))
    }
    /// Passes the bytes of a text or blob to `body`; empty for NULL.
    @inlinable
    package func withBytes<Result, Failure: Error>(
        _ column: Column,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(borrowedBytes(column))
    }
}

extension SQLRow {
    /// The columns of `First` in this row.
    @inlinable
    package func first<First, Second>() -> SQLRow<First> where Column == SQLPair<First, Second> {
        SQLRow<First>(statement, offset: offset)
    }

    /// The columns of `Second` in this row.
    @inlinable
    package func second<First, Second>() -> SQLRow<Second> where Column == SQLPair<First, Second> {
        SQLRow<Second>(statement, offset: offset + First.allCases.count)
    }
}

/// A prepared SELECT whose columns have names.
///
/// The statement is in use until the last row: while `body` runs, do not run the same query again.
package struct SQLQuery<Column: SQLColumn> {
    package let statement: any SQLStatement

    /// - Parameter statement: selects the columns in the order of their cases.
    package init(_ statement: any SQLStatement) {
        precondition(
            statement.columnCount == Column.allCases.count,
            "a SELECT returns the columns that its type names"
        )
        self.statement = statement
    }

    /// Reads the first row.
    ///
    /// - Returns: nil when there is none.
    @inlinable
    package func one<Value>(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        read: (SQLRow<Column>) throws -> Value
    ) throws -> Value? {
        defer { statement.reset() }
        try bind(statement)
        return try next().map(read)
    }

    /// Reads every row.
    @inlinable
    package func all<Value>(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        read: (SQLRow<Column>) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try each(bind) { values.append(try read($0)) }
        return values
    }

    /// Passes the rows to `body` until it returns false.
    @inlinable
    package func each(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        while body: (SQLRow<Column>) throws -> Bool
    ) throws {
        defer { statement.reset() }
        try bind(statement)
        while let row = try next(), try body(row) {}
    }

    /// Passes every row to `body`.
    @inlinable
    package func each(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        do body: (SQLRow<Column>) throws -> Void
    ) throws {
        defer { statement.reset() }
        try bind(statement)
        while let row = try next() { try body(row) }
    }

    /// Moves to the next row, for callers that bind and reset the statement themselves.
    ///
    /// - Returns: nil after the last one.
    @inlinable
    package func next() throws(SQLError) -> SQLRow<Column>? {
        try statement.step() ? SQLRow(statement) : nil
    }
}

extension SQLConnection {
    /// Compiles a SELECT of the columns that `Column` names.
    package func query<Column>(_ sql: String) throws(SQLError) -> SQLQuery<Column> {
        SQLQuery(try prepare(sql))
    }
}

extension SQLStatement {
    /// Binds values and runs a statement that returns no rows.
    ///
    /// - Returns: The number of rows changed.
    @discardableResult
    @inlinable
    package func run(_ bind: (any SQLStatement) throws -> Void) throws -> Int {
        try bind(self)
        return try run()
    }

    /// Reads the integer that a SELECT of one column returns.
    ///
    /// - Returns: nil for NULL, and when there is no row.
    @inlinable
    package func oneInt(_ bind: (any SQLStatement) throws -> Void = { _ in }) throws -> Int64? {
        defer { reset() }
        try bind(self)
        return try step() ? optionalInt(0) : nil
    }

    /// Whether a SELECT returns a row.
    @inlinable
    package func hasRow(_ bind: (any SQLStatement) throws -> Void) throws -> Bool {
        defer { reset() }
        try bind(self)
        return try step()
    }
}
