import CSQLite

/// A statement that SQLite compiles on its first use.
///
/// A compiled statement needs some kilobytes. Every connection has hundreds of statements, and most
/// are rarely used. `init` therefore compiles the text only to check it, and does not keep the
/// result.
final class SQLiteStatement: SQLStatement {
    private let connection: SQLiteConnection
    /// The compiled statement; nil until the first use. Read `compiled` instead.
    private var handle: OpaquePointer?
    private let sql: String
    private let isReadOnly: Bool
    /// The item at index n - 1 is SQLite's number for the parameter `$n`. SQLite numbers parameters
    /// in the order in which they first appear.
    private let positions: [Int32]
    let columnCount: Int
    private var state = State.ready
    /// The first error in a call that cannot throw, since the last reset. `step` throws it.
    private var failure: SQLError?

    private enum State {
        case ready
        case running
        case finished
    }

    init(_ sql: String, on connection: SQLiteConnection) throws(SQLError) {
        let compiled = try SQLiteConnection.compile(sql, on: connection.handle)
        defer { sqlite3_finalize(compiled) }
        guard let positions = SQLiteStatement.positions(of: compiled) else {
            throw SQLError(
                kind: .other,
                message: "parameters must be $1 to $n without a gap",
                sql: sql
            )
        }
        self.connection = connection
        self.sql = sql
        self.isReadOnly = sqlite3_stmt_readonly(compiled) != 0
        self.positions = positions
        columnCount = Int(sqlite3_column_count(compiled))
    }

    deinit {
        guard let handle else { return }
        connection.stepsOfFinalizedStatements += Int(
            sqlite3_stmt_status(handle, SQLITE_STMTSTATUS_VM_STEP, 0)
        )
        sqlite3_finalize(handle)
    }

    // MARK: - Binding

    func bind(_ index: Int, _ value: Int64) {
        note(sqlite3_bind_int64(compiled, position(index), value))
    }

    func bindNull(_ index: Int) {
        note(sqlite3_bind_null(compiled, position(index)))
    }

    func bindText(_ index: Int, _ utf8: UnsafeRawBufferPointer) {
        bindText(index, utf8, SQLiteStatement.copied)
    }

    func bindText(_ index: Int, borrowed utf8: UnsafeRawBufferPointer) {
        bindText(index, utf8, nil)
    }

    func bindBlob(_ index: Int, _ bytes: UnsafeRawBufferPointer) {
        bindBlob(index, bytes, SQLiteStatement.copied)
    }

    func bindBlob(_ index: Int, borrowed bytes: UnsafeRawBufferPointer) {
        bindBlob(index, bytes, nil)
    }

    // MARK: - Running

    func step() throws(SQLError) -> Bool {
        switch state {
        case .running: break
        case .finished: return false
        case .ready:
            _ = compiled
            if let failure { throw failure }
            connection.statementCount += 1
            state = .running
        }
        let code = sqlite3_step(handle)
        if code == SQLITE_ROW {
            connection.rowsStepped += 1
            return true
        }
        state = .finished
        guard code == SQLITE_DONE else {
            throw SQLError(sqlite: code, on: connection.handle, sql: sql)
        }
        return false
    }

    func reset() {
        if let handle {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
        }
        failure = nil
        state = .ready
    }

    func run() throws(SQLError) -> Int {
        defer { reset() }
        while try step() {}
        return isReadOnly ? 0 : Int(sqlite3_changes(connection.handle))
    }

    // MARK: - Reading

    func isNull(_ column: Int) -> Bool {
        sqlite3_column_type(handle, Int32(column)) == SQLITE_NULL
    }

    func int(_ column: Int) -> Int64 {
        sqlite3_column_int64(handle, Int32(column))
    }

    func borrowedBytes(_ column: Int) -> UnsafeRawBufferPointer {
        // SQLite stores text as UTF-8. Reading a text as a blob therefore returns it without
        // conversion.
        guard let start = sqlite3_column_blob(handle, Int32(column)) else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        let count = Int(sqlite3_column_bytes(handle, Int32(column)))
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    // MARK: - Calls of the C library

    /// SQLITE_TRANSIENT: SQLite copies the bytes. Swift cannot import this constant, because it is
    /// a cast. For SQLITE_STATIC, pass nil.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private func bindText(
        _ index: Int,
        _ utf8: UnsafeRawBufferPointer,
        _ owner: sqlite3_destructor_type?
    ) {
        // A nil pointer would bind NULL instead of an empty text.
        let empty = ("" as StaticString).utf8Start
        let start = utf8.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? empty
        start.withMemoryRebound(to: CChar.self, capacity: utf8.count) { chars in
            note(
                sqlite3_bind_text64(
                    compiled,
                    position(index),
                    chars,
                    UInt64(utf8.count),
                    owner,
                    UInt8(SQLITE_UTF8)
                )
            )
        }
    }

    private func bindBlob(
        _ index: Int,
        _ bytes: UnsafeRawBufferPointer,
        _ owner: sqlite3_destructor_type?
    ) {
        guard let start = bytes.baseAddress, !bytes.isEmpty else {
            note(sqlite3_bind_zeroblob(compiled, position(index), 0))
            return
        }
        note(sqlite3_bind_blob64(compiled, position(index), start, UInt64(bytes.count), owner))
    }

    // When a message is sent, this file spends most of its time in binding. The common path is
    // therefore inlined, but not the body of `compile`.
    @inline(__always)
    private var compiled: OpaquePointer? { handle ?? compile() }

    /// Compiles the statement. `step` throws the errors that occur here. The only possible errors
    /// are a lack of memory and a dropped table.
    private func compile() -> OpaquePointer? {
        do {
            handle = try SQLiteConnection.compile(sql, on: connection.handle)
        } catch {
            failure = failure ?? error
        }
        return handle
    }

    private func position(_ index: Int) -> Int32 {
        precondition(state == .ready, "bind before reset")
        return positions[index - 1]
    }

    @inline(__always)
    private func note(_ code: Int32) {
        if code != SQLITE_OK { fail(code) }
    }

    private func fail(_ code: Int32) {
        failure = failure ?? SQLError(sqlite: code, on: nil, sql: sql)
    }

    /// Returns SQLite's numbers for `$1` to `$n`. Returns nil when a parameter's name has another
    /// form, or a number from 1 to n is missing.
    private static func positions(of statement: OpaquePointer) -> [Int32]? {
        let count = sqlite3_bind_parameter_count(statement)
        guard count > 0 else { return [] }
        var positions = [Int32](repeating: 0, count: Int(count))
        for position in 1...count {
            guard let name = sqlite3_bind_parameter_name(statement, position) else { return nil }
            let text = String(cString: name)
            guard text.first == "$", let number = Int(text.dropFirst()),
                number >= 1, number <= positions.count
            else { return nil }
            positions[number - 1] = position
        }
        return positions.contains(0) ? nil : positions
    }
}
