/// A compiled statement. The caller binds values, steps through the rows, resets the statement, and
/// repeats.
///
/// ```swift
/// statement.bind(1, chat)
/// while try statement.step() { use(statement.int(0)) }
/// statement.reset()
/// ```
///
/// A statement retains its connection. The first parameter is number 1, as in `$1`; the first
/// column is number 0. Binding a parameter that the text does not contain is a programming error
/// and traps. So is binding between `step` and `reset`. Unbound parameters are NULL.
public protocol SQLStatement: AnyObject {
    /// Binds an integer.
    func bind(_ index: Int, _ value: Int64)
    /// Binds NULL.
    func bindNull(_ index: Int)
    /// Binds text and copies its bytes.
    ///
    /// - Parameter utf8: Valid UTF-8. PostgreSQL rejects text that contains a zero byte.
    func bindText(_ index: Int, _ utf8: UnsafeRawBufferPointer)
    /// Binds bytes and copies them.
    func bindBlob(_ index: Int, _ bytes: UnsafeRawBufferPointer)
    /// Binds text without copying it. The bytes must stay in place until `reset`.
    func bindText(_ index: Int, borrowed utf8: UnsafeRawBufferPointer)
    /// Binds bytes without copying them. They must stay in place until `reset`.
    func bindBlob(_ index: Int, borrowed bytes: UnsafeRawBufferPointer)

    /// Advances to the next row. The first call runs the statement.
    ///
    /// - Returns: Whether there is a row. After the last row, false until `reset` is called.
    func step() throws(SQLError) -> Bool

    /// Prepares the statement for another run and clears the bound values.
    func reset()

    /// Runs the statement to its end and resets it, even when it fails.
    ///
    /// - Returns: The number of rows changed by an INSERT, UPDATE or DELETE.
    @discardableResult
    func run() throws(SQLError) -> Int

    /// The number of columns in a row.
    var columnCount: Int { get }
    /// Returns whether the value in this row is NULL.
    func isNull(_ column: Int) -> Bool
    /// Returns the integer in this row; 0 for NULL.
    func int(_ column: Int) -> Int64
    /// Returns the bytes of a text or blob in this row; empty for NULL. They are valid until the
    /// next step or reset.
    func borrowedBytes(_ column: Int) -> UnsafeRawBufferPointer
}

// MARK: - Binding other types

extension SQLStatement {
    /// Binds an integer.
    package func bind(_ index: Int, _ value: Int) {
        bind(index, Int64(value))
    }

    /// Binds an integer, or NULL.
    package func bind(_ index: Int, _ value: Int64?) {
        guard let value else { return bindNull(index) }
        bind(index, value)
    }

    /// Binds 1 for true and 0 for false, because flags are integers in both dialects.
    package func bind(_ index: Int, _ value: Bool) {
        bind(index, Int64(value ? 1 : 0))
    }

    /// Binds text.
    package func bindText(_ index: Int, _ value: String) {
        var value = value
        value.withUTF8 { bindText(index, UnsafeRawBufferPointer($0)) }
    }

    /// Binds text, or NULL.
    package func bindText(_ index: Int, _ value: String?) {
        guard let value else { return bindNull(index) }
        bindText(index, value)
    }

    /// Binds text given as UTF-8.
    package func bindText(_ index: Int, _ utf8: [UInt8]) {
        utf8.withUnsafeBytes { bindText(index, $0) }
    }

    /// Binds text given as UTF-8, or NULL.
    package func bindText(_ index: Int, _ utf8: [UInt8]?) {
        guard let utf8 else { return bindNull(index) }
        bindText(index, utf8)
    }

    /// Binds bytes.
    package func bindBlob(_ index: Int, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bindBlob(index, $0) }
    }

    /// Binds bytes, or NULL.
    package func bindBlob(_ index: Int, _ bytes: [UInt8]?) {
        guard let bytes else { return bindNull(index) }
        bindBlob(index, bytes)
    }
}

// MARK: - Reading other types

extension SQLStatement {
    /// Returns the integer in this row; nil for NULL.
    @inlinable
    public func optionalInt(_ column: Int) -> Int64? {
        isNull(column) ? nil : int(column)
    }

    /// Returns whether the integer in this row is not 0.
    @inlinable
    public func bool(_ column: Int) -> Bool {
        int(column) != 0
    }

    /// Passes the bytes of a text or blob in this row to `body`; for NULL, passes no bytes.
    @inlinable
    public func withBytes<Result, Failure: Error>(
        _ column: Int,
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(borrowedBytes(column))
    }

    /// Returns a copy of the bytes of a text or blob in this row; empty for NULL.
    @inlinable
    public func bytes(_ column: Int) -> [UInt8] {
        [UInt8](borrowedBytes(column))
    }

    /// Returns a copy of the bytes of a text or blob in this row; nil for NULL.
    @inlinable
    public func optionalBytes(_ column: Int) -> [UInt8]? {
        isNull(column) ? nil : bytes(column)
    }

    /// Returns the text in this row; empty for NULL.
    @inlinable
    public func string(_ column: Int) -> String {
        String(decoding: borrowedBytes(column), as: UTF8.self)
    }

    /// Returns the text in this row; nil for NULL.
    @inlinable
    public func optionalString(_ column: Int) -> String? {
        isNull(column) ? nil : string(column)
    }
}
