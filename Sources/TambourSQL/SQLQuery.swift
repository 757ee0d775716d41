/// The named columns of a SELECT. The raw value of a case is the position of its column in the
/// list.
///
/// ```swift
/// enum VoteColumn: Int, SQLColumn { case userID, time }
/// let votes: SQLQuery<VoteColumn> = try sql.query(
///     "SELECT \(VoteColumn.list) FROM vote WHERE chat = $1"
/// )
/// let times = try votes.all({ $0.bind(1, chat) }, read: { $0.int(.time) })
/// ```
///
/// Because of `CodingKey`, the compiler generates the names of the cases. String interpolation of
/// `self` would be slower: for each type it searches the whole program for conformances.
public protocol SQLColumn: RawRepresentable, CaseIterable, CodingKey where RawValue == Int {
    /// The selected expression. The default is the name of the case with underscores: `user_id` for
    /// `userID`.
    var sql: String { get }
}

extension SQLColumn {
    public var sql: String { snakeCase }

    /// The name of the case with underscores.
    package var snakeCase: String {
        var words = ""
        var isInWord = false
        for letter in stringValue.utf8 {
            let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letter)
            if isCapital, isInWord { words += "_" }
            words.unicodeScalars.append(UnicodeScalar(isCapital ? letter | 0x20 : letter))
            // Several successive capitals, such as `ID`, form one word.
            isInWord = !isCapital
        }
        return words
    }

    /// The list of columns for a SELECT, in the order of the cases.
    package static var list: String { allCases.map(\.sql).joined(separator: ", ") }

    /// Returns the list of columns with the name of a table before each column. Joins need this
    /// form.
    package static func list(of table: String) -> String {
        allCases.map { "\(table).\($0.sql)" }.joined(separator: ", ")
    }
}

/// The columns of `First`, followed by the columns of `Second`. Code that reads the columns of
/// `First` can also read a SELECT with further columns.
public enum SQLPair<First: SQLColumn, Second: SQLColumn>: SQLColumn {
    case first(First)
    case second(Second)

    public init?(stringValue: String) { nil }

    public init?(intValue: Int) {
        self.init(rawValue: intValue)
    }

    public init?(rawValue: Int) {
        if let column = First(rawValue: rawValue) {
            self = .first(column)
        } else if let column = Second(rawValue: rawValue - First.allCases.count) {
            self = .second(column)
        } else {
            return nil
        }
    }

    @inlinable
    public var rawValue: Int {
        switch self {
        case .first(let column): column.rawValue
        case .second(let column): First.allCases.count + column.rawValue
        }
    }

    public var stringValue: String { sql }

    public var intValue: Int? { rawValue }

    public static var allCases: [Self] {
        First.allCases.map(Self.first) + Second.allCases.map(Self.second)
    }

    public var sql: String {
        switch self {
        case .first(let column): column.sql
        case .second(let column): column.sql
        }
    }
}

// These types are public and inlinable, so that the compiler also replaces column names by numbers
// in other modules. The compiler does not specialize generic `package` code across modules.

/// A row of a SELECT with named columns. It is valid until the next step.
public struct SQLRow<Column: SQLColumn> {
    @usableFromInline let statement: any SQLStatement
    /// The number of columns before the columns of `Column`.
    @usableFromInline let offset: Int

    @inlinable
    public init(_ statement: any SQLStatement) {
        self.init(statement, offset: 0)
    }

    @inlinable
    init(_ statement: any SQLStatement, offset: Int) {
        self.statement = statement
        self.offset = offset
    }

    @inlinable
    func place(of column: Column) -> Int { offset &+ column.rawValue }

    /// Returns whether the value is NULL.
    @inlinable
    public func isNull(_ column: Column) -> Bool { statement.isNull(place(of: column)) }
    /// Returns the integer; 0 for NULL.
    @inlinable
    public func int(_ column: Column) -> Int64 { statement.int(place(of: column)) }
    @inlinable
    public func optionalInt(_ column: Column) -> Int64? {
        statement.optionalInt(place(of: column))
    }
    /// Returns whether the integer is not 0.
    @inlinable
    public func bool(_ column: Column) -> Bool { statement.bool(place(of: column)) }
    /// Returns a copy of the text or blob; empty for NULL.
    @inlinable
    public func bytes(_ column: Column) -> [UInt8] { statement.bytes(place(of: column)) }
    @inlinable
    public func optionalBytes(_ column: Column) -> [UInt8]? {
        statement.optionalBytes(place(of: column))
    }
    /// Returns the text; empty for NULL.
    @inlinable
    public func string(_ column: Column) -> String { statement.string(place(of: column)) }
    @inlinable
    public func optionalString(_ column: Column) -> String? {
        statement.optionalString(place(of: column))
    }
    /// Returns the bytes of a text or blob; empty for NULL. They are valid until the next step.
    @inlinable
    public func borrowedBytes(_ column: Column) -> UnsafeRawBufferPointer {
        statement.borrowedBytes(place(of: column))
    }
    /// Passes the bytes of a text or blob to `body`; for NULL, passes no bytes.
    @inlinable
    public func withBytes<Result, Failure: Error>(
        _ column: Column,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(borrowedBytes(column))
    }
}

extension SQLRow {
    /// Returns the columns of `First` in this row.
    @inlinable
    public func first<First, Second>() -> SQLRow<First> where Column == SQLPair<First, Second> {
        SQLRow<First>(statement, offset: offset)
    }

    /// Returns the columns of `Second` in this row.
    @inlinable
    public func second<First, Second>() -> SQLRow<Second> where Column == SQLPair<First, Second> {
        SQLRow<Second>(statement, offset: offset + First.allCases.count)
    }
}

/// A prepared SELECT with named columns.
///
/// The statement is in use until the last row has been read, so `body` must not run the same query.
public struct SQLQuery<Column: SQLColumn> {
    public let statement: any SQLStatement

    /// - Parameter statement: a statement that selects the columns in the order of the cases.
    package init(_ statement: any SQLStatement) {
        precondition(
            statement.columnCount == Column.allCases.count,
            "a SELECT returns the columns that its type names"
        )
        self.statement = statement
    }

    /// Reads the first row.
    ///
    /// - Returns: nil when the query has no result.
    @inlinable
    public func one<Value>(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        read: (SQLRow<Column>) throws -> Value
    ) throws -> Value? {
        defer { statement.reset() }
        try bind(statement)
        return try statement.step() ? read(SQLRow(statement)) : nil
    }

    /// Reads every row.
    @inlinable
    public func all<Value>(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        read: (SQLRow<Column>) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try each(bind) { values.append(try read($0)) }
        return values
    }

    /// Passes the rows to `body` until it returns false.
    @inlinable
    public func each(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        while body: (SQLRow<Column>) throws -> Bool
    ) throws {
        defer { statement.reset() }
        try bind(statement)
        while try statement.step(), try body(SQLRow(statement)) {}
    }

    /// Passes every row to `body`.
    @inlinable
    public func each(
        _ bind: (any SQLStatement) throws -> Void = { _ in },
        do body: (SQLRow<Column>) throws -> Void
    ) throws {
        defer { statement.reset() }
        try bind(statement)
        while try statement.step() { try body(SQLRow(statement)) }
    }

    /// Moves to the next row. It is for callers that bind and reset the statement themselves.
    ///
    /// - Returns: nil after the last row.
    @inlinable
    public func next() throws(SQLError) -> SQLRow<Column>? {
        try statement.step() ? SQLRow(statement) : nil
    }
}

extension SQLConnection {
    /// Compiles a SELECT of the columns in `Column`.
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
    public func run(_ bind: (any SQLStatement) throws -> Void) throws -> Int {
        try bind(self)
        return try run()
    }

    /// Reads the integer that a SELECT of one column returns.
    ///
    /// - Returns: nil if the integer is NULL or there is no row.
    @inlinable
    public func oneInt(_ bind: (any SQLStatement) throws -> Void = { _ in }) throws -> Int64? {
        defer { reset() }
        try bind(self)
        return try step() ? optionalInt(0) : nil
    }

    /// Returns whether a SELECT returns a row.
    @inlinable
    public func hasRow(_ bind: (any SQLStatement) throws -> Void) throws -> Bool {
        defer { reset() }
        try bind(self)
        return try step()
    }
}
