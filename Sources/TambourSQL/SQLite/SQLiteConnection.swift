import CSQLite

/// A connection to a SQLite file in WAL mode, configured as in `docs/data.md`.
///
/// Only one thread at a time may use the connection, because SQLite does not lock it
/// (`SQLITE_OPEN_NOMUTEX`).
package final class SQLiteConnection: SQLConnection {
    /// Whether a commit waits for the disk.
    package enum SynchronousMode: Int64, Sendable {
        /// The commit does not wait, so a power cut may lose the last commits. For tests only.
        case normal = 1
        /// The commit waits for the disk, so committed data survives a power cut.
        case full = 2
    }

    let handle: OpaquePointer
    private let beginImmediate: OpaquePointer
    private let beginDeferred: OpaquePointer
    private let openSnapshot: OpaquePointer
    private let commitStatement: OpaquePointer
    private let rollbackStatement: OpaquePointer

    package internal(set) var statementCount = 0
    package internal(set) var rowsStepped = 0
    /// The number of virtual machine steps that finalized statements have run; see
    /// `virtualMachineSteps`.
    var stepsOfFinalizedStatements = 0

    /// Opens the file and verifies its settings.
    ///
    /// - Parameters:
    ///   - path: A file on a local disk. Its log and index files are in the same directory.
    ///   - vfs: The name of SQLite's file layer; nil for the default layer.
    ///   - busyTimeoutMs: The maximum time to wait for another connection's lock.
    /// - Throws: `SQLError`. The kind is `io` when the file cannot be opened. It is `corrupt` when
    ///   the file is not a database. It is `other` when SQLite refuses WAL mode or the requested
    ///   `synchronous`.
    package init(
        path: String,
        mode: SQLMode,
        vfs: String? = nil,
        synchronous: SynchronousMode = .full,
        busyTimeoutMs: Int = 5_000
    ) throws(SQLError) {
        let opened = try SQLiteConnection.open(path: path, mode: mode, vfs: vfs)
        do {
            sqlite3_extended_result_codes(opened, 1)
            sqlite3_busy_timeout(opened, Int32(clamping: busyTimeoutMs))
            try SQLiteConnection.configure(opened, mode: mode, synchronous: synchronous)
            // BEGIN, COMMIT and ROLLBACK are statements too. They are prepared once, to avoid
            // parsing.
            beginImmediate = try SQLiteConnection.compile("BEGIN IMMEDIATE", on: opened)
            beginDeferred = try SQLiteConnection.compile("BEGIN", on: opened)
            openSnapshot = try SQLiteConnection.compile(
                "SELECT 1 FROM sqlite_schema LIMIT 1",
                on: opened
            )
            commitStatement = try SQLiteConnection.compile("COMMIT", on: opened)
            rollbackStatement = try SQLiteConnection.compile("ROLLBACK", on: opened)
        } catch {
            SQLiteConnection.close(opened)
            throw error
        }
        handle = opened
    }

    deinit {
        SQLiteConnection.close(handle)
    }

    package var dialect: SQLDialect { .sqlite }

    package var isInTransaction: Bool {
        sqlite3_get_autocommit(handle) == 0
    }

    package func prepare(_ sql: String) throws(SQLError) -> any SQLStatement {
        try SQLiteStatement(sql, on: self)
    }

    package func execute(_ sql: String) throws(SQLError) {
        try SQLiteConnection.execute(sql, on: handle)
    }

    package func begin(_ mode: SQLTransactionMode) throws(SQLError) {
        switch mode {
        case .immediate:
            try runOwn(beginImmediate)
        case .snapshot:
            try runOwn(beginDeferred)
            do {
                // BEGIN does not take the snapshot. The first read takes it.
                try runOwn(openSnapshot)
            } catch {
                rollback()
                throw error
            }
        }
    }

    package func commit() throws(SQLError) {
        try runOwn(commitStatement)
    }

    package func rollback() {
        guard isInTransaction else { return }
        // Ignore errors, because the transaction is never open after a rollback, even if the
        // rollback fails. If an I/O error persists, the next transaction reports it.
        sqlite3_step(rollbackStatement)
        sqlite3_reset(rollbackStatement)
    }

    package func checkpoint() throws(SQLError) {
        let code = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
        guard code == SQLITE_OK else {
            throw SQLError(sqlite: code, on: handle, sql: "checkpoint")
        }
    }

    // MARK: - Counters and checks

    /// The number of pages that this connection has written to the log so far.
    package var pagesWritten: Int {
        var current: Int32 = 0
        var highest: Int32 = 0
        sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_WRITE, &current, &highest, 0)
        return Int(current)
    }

    /// The number of instructions that SQLite's virtual machine has run for this connection's
    /// statements.
    ///
    /// Unlike `rowsStepped`, this number also grows with rows that SQLite visits but does not
    /// return. A scan therefore makes it large.
    package var virtualMachineSteps: Int {
        var total = stepsOfFinalizedStatements
        var statement = sqlite3_next_stmt(handle, nil)
        while let current = statement {
            total += Int(sqlite3_stmt_status(current, SQLITE_STMTSTATUS_VM_STEP, 0))
            statement = sqlite3_next_stmt(handle, current)
        }
        return total
    }

    /// The number of rows inserted, updated or deleted so far, including rows in batches that were
    /// rolled back.
    package var rowsChanged: Int { Int(sqlite3_total_changes(handle)) }

    package func quickCheck() throws(SQLError) -> [String] {
        let statement = try SQLiteStatement("PRAGMA quick_check(100)", on: self)
        var findings: [String] = []
        do {
            while try statement.step() {
                findings.append(statement.string(0))
            }
        } catch  where error.kind == .corrupt {
            // Some kinds of damage stop the check itself with an error.
            findings.append(error.message)
        }
        return findings == ["ok"] ? [] : findings
    }

    /// Returns the value of a pragma as an integer.
    package func pragma(_ name: String) throws(SQLError) -> Int64 {
        try SQLiteConnection.pragma(name, on: handle)
    }

    // MARK: - Calls of the C library

    private func runOwn(_ statement: OpaquePointer) throws(SQLError) {
        var code = sqlite3_step(statement)
        while code == SQLITE_ROW { code = sqlite3_step(statement) }
        guard code != SQLITE_DONE else {
            sqlite3_reset(statement)
            return
        }
        let sql = sqlite3_sql(statement).map { String(cString: $0) } ?? ""
        let error = SQLError(sqlite: code, on: handle, sql: sql)
        sqlite3_reset(statement)
        throw error
    }

    /// Makes the settings of the whole process once, before the first connection.
    private static let prepared: Void = {
        // This call fails if other code in the process has already opened a connection. In this
        // case SQLite continues to count memory, which is harmless.
        _ = tambour_sqlite3_stop_counting_memory()
    }()

    private static func open(
        path: String,
        mode: SQLMode,
        vfs: String?
    ) throws(SQLError) -> OpaquePointer {
        _ = prepared
        let access =
            switch mode {
            case .readWrite: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .readOnly: SQLITE_OPEN_READONLY
            case .immutable: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
            }
        let path = mode == .immutable ? "file:\(escaped(path))?immutable=1" : path
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(path, &opened, access | SQLITE_OPEN_NOMUTEX, vfs)
        guard code == SQLITE_OK, let opened else {
            // SQLite creates a handle even if opening fails, unless it has no memory for the
            // handle.
            let error = SQLError(sqlite: code, on: opened, sql: "open")
            sqlite3_close_v2(opened)
            throw error
        }
        return opened
    }

    /// Escapes a path for use in a URI.
    private static func escaped(_ path: String) -> String {
        var escaped = ""
        for byte in path.utf8 {
            switch UnicodeScalar(byte) {
            case "a"..."z", "A"..."Z", "0"..."9", "/", ".", "-", "_":
                escaped.unicodeScalars.append(UnicodeScalar(byte))
            default: escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return escaped
    }

    private static func configure(
        _ handle: OpaquePointer,
        mode: SQLMode,
        synchronous: SynchronousMode
    ) throws(SQLError) {
        if mode == .readWrite {
            // Set the page size first, because it cannot change after WAL mode begins.
            try execute("PRAGMA page_size = 4096", on: handle)
            try execute("PRAGMA journal_mode = WAL", on: handle)
        }
        let cacheKiB = mode == .readWrite ? 64 * 1024 : 8 * 1024
        try execute(
            """
            PRAGMA synchronous = \(synchronous.rawValue);
            PRAGMA cache_size = -\(cacheKiB);
            PRAGMA wal_autocheckpoint = 8000;
            PRAGMA temp_store = MEMORY;
            PRAGMA foreign_keys = OFF;
            PRAGMA trusted_schema = OFF;
            """,
            on: handle
        )

        if mode == .immutable { return }
        // Durability and snapshots depend on the next two settings, so verify them.
        let journal = try text("PRAGMA journal_mode", on: handle)
        guard journal == "wal" else {
            throw SQLError(kind: .other, message: "journal_mode is \(journal), not wal")
        }
        let actual = try pragma("synchronous", on: handle)
        guard actual == synchronous.rawValue else {
            throw SQLError(
                kind: .other,
                message: "synchronous is \(actual), not \(synchronous.rawValue)"
            )
        }
    }

    private static func execute(_ sql: String, on handle: OpaquePointer) throws(SQLError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else {
            throw SQLError(sqlite: code, on: handle, sql: sql)
        }
    }

    /// Compiles a statement that the caller keeps and finalizes.
    static func compile(
        _ sql: String,
        on handle: OpaquePointer
    ) throws(SQLError) -> OpaquePointer {
        var compiled: OpaquePointer?
        var isWhole = false
        var text = sql
        let code = text.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { chars in
                var tail: UnsafePointer<CChar>?
                let code = sqlite3_prepare_v3(
                    handle,
                    chars.baseAddress,
                    Int32(clamping: chars.count),
                    UInt32(SQLITE_PREPARE_PERSISTENT),
                    &compiled,
                    &tail
                )
                if let start = chars.baseAddress, let tail {
                    isWhole = chars[(tail - start)...].allSatisfy { byte in
                        byte == 0x20 || byte == 0x0a || byte == 0x09 || byte == 0x0d
                    }
                }
                return code
            }
        }
        guard code == SQLITE_OK else { throw SQLError(sqlite: code, on: handle, sql: sql) }
        guard let compiled, isWhole else {
            sqlite3_finalize(compiled)
            throw SQLError(kind: .other, message: "expected exactly one statement", sql: sql)
        }
        return compiled
    }

    private static func pragma(
        _ name: String,
        on handle: OpaquePointer
    ) throws(SQLError) -> Int64 {
        let value = try text("PRAGMA \(name)", on: handle)
        guard let number = Int64(value) else {
            throw SQLError(kind: .other, message: "\(name) is \(value), not an integer")
        }
        return number
    }

    /// Returns the first column of the first row as text; empty when there is no row.
    private static func text(
        _ sql: String,
        on handle: OpaquePointer
    ) throws(SQLError) -> String {
        let statement = try compile(sql, on: handle)
        defer { sqlite3_finalize(statement) }
        let code = sqlite3_step(statement)
        guard code == SQLITE_ROW || code == SQLITE_DONE else {
            throw SQLError(sqlite: code, on: handle, sql: sql)
        }
        guard code == SQLITE_ROW, let value = sqlite3_column_text(statement, 0) else { return "" }
        return String(cString: value)
    }

    /// Closes the handle and finalizes its statements.
    private static func close(_ handle: OpaquePointer) {
        // Callers' statements retain the connection, so no such statement exists any more. Only the
        // connection's own statements are left.
        while let statement = sqlite3_next_stmt(handle, nil) {
            sqlite3_finalize(statement)
        }
        sqlite3_close_v2(handle)
    }
}
