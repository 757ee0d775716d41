/// The columns of a SELECT, by name: the raw value of a case is its place in the list.
///
/// ```swift
/// enum VoteColumn: Int, SQLColumn { case userID, time }
/// let votes: SQLQuery<VoteColumn> = try sql.query(
///     "SELECT \(VoteColumn.list) FROM vote WHERE chat = $1"
/// )
/// let times = try votes.all({ $0.bind(1, chat) }, read: { $0.int(.time) })
/// ```
///
/// For `CodingKey` the compiler writes the names of the cases down. An interpolated `self` would
/// search the whole program for conformances of each type.
public protocol SQLColumn: RawRepresentable, CaseIterable, CodingKey where RawValue == Int {
    /// What is selected. Without another one, the name of the case with underscores: `userID` is `user_id`.
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
            // `ID` and the like are one word.
            isInWord = !isCapital
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

// Public and inlinable: so the compiler replaces the name of a column by its number in other modules
// too. It does not specialize generic `package` code across modules.

/// A row of a SELECT whose columns have names; valid until the next step.
public struct SQLRow<Column: SQLColumn> {
    @usableFromInline let statement: any SQLStatement
    /// The number of columns before those of `Column`.
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

    /// Whether the value is NULL.
    @inlinable
    public func isNull(_ column: Column) -> Bool { statement.isNull(place(of: column)) }
    /// The integer; 0 for NULL.
    @inlinable
    public func int(_ column: Column) -> Int64 { statement.int(place(of: column)) }
    @inlinable
    public func optionalInt(_ column: Column) -> Int64? {
        statement.optionalInt(place(of: column))
    }
    /// Whether the integer is not 0.
    @inlinable
    public func bool(_ column: Column) -> Bool { statement.bool(place(of: column)) }
    /// A copy of the text or blob; empty for NULL.
    @inlinable
    public func bytes(_ column: Column) -> [UInt8] { statement.bytes(place(of: column)) }
    @inlinable
    public func optionalBytes(_ column: Column) -> [UInt8]? {
        statement.optionalBytes(place(of: column))
    }
    /// The text; empty for NULL.
    @inlinable
    public func string(_ column: Column) -> String { statement.string(place(of: column)) }
    @inlinable
    public func optionalString(_ column: Column) -> String? {
        statement.optionalString(place(of: column))
    }
    /// The bytes of a text or blob, empty for NULL; valid until the next step.
    @inlinable
    public func borrowedBytes(_ column: Column) -> UnsafeRawBufferPointer {
        statement.borrowedBytes(place(of: column))
    }
    /// Passes the bytes of a text or blob to `body`; empty for NULL.
    @inlinable
    public func withBytes<Result, Failure: Error>(
        _ column: Column,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(borrowedBytes(column))
    }
}

extension SQLRow {
    /// The columns of `First` in this row.
    @inlinable
    public func first<First, Second>() -> SQLRow<First> where Column == SQLPair<First, Second> {
        SQLRow<First>(statement, offset: offset)
    }

    /// The columns of `Second` in this row.
    @inlinable
    public func second<First, Second>() -> SQLRow<Second> where Column == SQLPair<First, Second> {
        SQLRow<Second>(statement, offset: offset + First.allCases.count)
    }
}

/// A prepared SELECT whose columns have names.
///
/// The statement is in use until the last row: while `body` runs, do not run the same query again.
public struct SQLQuery<Column: SQLColumn> {
    public let statement: any SQLStatement

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

    /// Moves to the next row, for callers that bind and reset the statement themselves.
    ///
    /// - Returns: nil after the last one.
    @inlinable
    public func next() throws(SQLError) -> SQLRow<Column>? {
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
    public func run(_ bind: (any SQLStatement) throws -> Void) throws -> Int {
        try bind(self)
        return try run()
    }

    /// Reads the integer that a SELECT of one column returns.
    ///
    /// - Returns: nil for NULL, and when there is no row.
    @inlinable
    public func oneInt(_ bind: (any SQLStatement) throws -> Void = { _ in }) throws -> Int64? {
        defer { reset() }
        try bind(self)
        return try step() ? optionalInt(0) : nil
    }

    /// Whether a SELECT returns a row.
    @inlinable
    public func hasRow(_ bind: (any SQLStatement) throws -> Void) throws -> Bool {
        defer { reset() }
        try bind(self)
        return try step()
    }
}
