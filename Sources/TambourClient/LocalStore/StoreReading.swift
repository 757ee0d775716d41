import GRDB

/// Reads from a snapshot of the store, or from the state within a transaction.
protocol StoreReading {
    var db: Database { get }
}

extension Database: StoreReading {
    var db: Database { self }
}

extension StoreTransaction: StoreReading {}

extension StoreReading {
    /// The first row of a query, if any.
    func row(_ sql: String, _ arguments: StatementArguments = []) throws -> Row? {
        try Row.fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }

    func rows(_ sql: String, _ arguments: StatementArguments = []) throws -> [Row] {
        try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
    }

    func int(_ sql: String, _ arguments: StatementArguments = []) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
    }

    /// Whether a query has a result.
    func exists(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
        try row(sql, arguments) != nil
    }

    /// The data version, which changes when another process has written.
    func dataVersion() throws -> Int64? {
        try Int64.fetchOne(db, sql: "PRAGMA data_version")
    }
}
