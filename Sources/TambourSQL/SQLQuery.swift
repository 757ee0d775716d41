/// The columns of a SELECT, by name: the raw value of a case is its place in the list.
///
/// ```swift
/// enum VoteColumn: Int, SQLColumn { case userID, time }
/// let votes = SQLQuery<VoteColumn>(try sql.prepare("SELECT \(VoteColumn.list) FROM vote WHERE chat = $1"))
/// let all = try votes.all { $0.bind(1, chat) } read: { Vote(user: $0.int(.userID), at: $0.int(.time)) }
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
}

/// A row of a SELECT whose columns have names; valid until the next step.
package struct SQLRow<Column: SQLColumn> {
    private let statement: any SQLStatement

    package init(_ statement: any SQLStatement) {
        self.statement = statement
    }

    /// Whether the value is NULL.
    package func isNull(_ column: Column) -> Bool { statement.isNull(column.rawValue) }
    /// The integer; 0 for NULL.
    package func int(_ column: Column) -> Int64 { statement.int(column.rawValue) }
    package func optionalInt(_ column: Column) -> Int64? { statement.optionalInt(column.rawValue) }
    /// Whether the integer is not 0.
    package func bool(_ column: Column) -> Bool { statement.bool(column.rawValue) }
    /// A copy of the text or blob; empty for NULL.
    package func bytes(_ column: Column) -> [UInt8] { statement.bytes(column.rawValue) }
    package func optionalBytes(_ column: Column) -> [UInt8]? {
        statement.optionalBytes(column.rawValue)
    }
    /// The text; empty for NULL.
    package func string(_ column: Column) -> String { statement.string(column.rawValue) }
    package func optionalString(_ column: Column) -> String? {
        statement.optionalString(column.rawValue)
    }
    /// The bytes of a text or blob, empty for NULL; valid until the next step.
    package func borrowedBytes(_ column: Column) -> UnsafeRawBufferPointer {
        statement.borrowedBytes(column.rawValue)
    }
    /// Passes the bytes of a text or blob to `body`; empty for NULL.
    package func withBytes<Result, Failure: Error>(
        _ column: Column,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(statement.borrowedBytes(column.rawValue))
    }
}

/// A prepared SELECT whose columns have names.
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
    package func one<Value>(
        _ bind: (any SQLStatement) throws -> Void,
        read: (SQLRow<Column>) throws -> Value
    ) throws -> Value? {
        defer { statement.reset() }
        try bind(statement)
        guard try statement.step() else { return nil }
        return try read(SQLRow(statement))
    }

    /// Reads every row.
    package func all<Value>(
        _ bind: (any SQLStatement) throws -> Void,
        read: (SQLRow<Column>) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try each(bind) { values.append(try read($0)) }
        return values
    }

    /// Passes the rows to `body` until it returns false.
    package func each(
        _ bind: (any SQLStatement) throws -> Void,
        while body: (SQLRow<Column>) throws -> Bool
    ) throws {
        defer { statement.reset() }
        try bind(statement)
        while try statement.step(), try body(SQLRow(statement)) {}
    }

    /// Passes every row to `body`.
    package func each(
        _ bind: (any SQLStatement) throws -> Void,
        _ body: (SQLRow<Column>) throws -> Void
    ) throws {
        try each(bind, while: {
            try body($0)
            return true
        })
    }
}

extension SQLStatement {
    /// Binds values and runs a statement that returns no rows.
    ///
    /// - Returns: The number of rows changed.
    @discardableResult
    package func run(_ bind: (any SQLStatement) throws -> Void) throws -> Int {
        try bind(self)
        return try run()
    }
}
