import Synchronization
package import TambourMessenger
import TambourSQL

/// The cost of a server's transactions, counted by the database.
package struct StoreCost: Sendable {
    package var statements = 0
    /// The number of rows that statements returned.
    package var rowsRead = 0
    /// The number of rows that were inserted, updated or deleted.
    package var rowsWritten = 0
    /// The number of instructions that SQLite's virtual machine ran. A scan makes this number
    /// large, even if the scan returns few rows.
    package var steps = 0
    /// The duration of each transaction.
    package var transactions: [Duration] = []

    /// The duration of the longest transaction, which delays all other work of its engine or
    /// reader.
    package var longest: Duration { transactions.max() ?? .zero }
}

/// Counts the costs of all connections of a server, separately for each transaction.
package final class CostMeter: Sendable {
    private let total = Mutex(StoreCost())

    package init() {}

    /// The value for `Environment.disk`. It makes the connections of the engine and the readers
    /// report to this meter.
    package var disk: Environment.Disk {
        { [self] connection, _ in
            guard let sqlite = connection as? SQLiteConnection else { return connection }
            return MeteredConnection(sqlite, meter: self)
        }
    }

    /// Returns the costs since the previous call of this function.
    package func take() -> StoreCost {
        total.withLock { total in
            defer { total = StoreCost() }
            return total
        }
    }

    fileprivate func add(_ cost: StoreCost) {
        total.withLock { total in
            total.statements += cost.statements
            total.rowsRead += cost.rowsRead
            total.rowsWritten += cost.rowsWritten
            total.steps += cost.steps
            total.transactions += cost.transactions
        }
    }
}

/// A connection that reports the cost of each transaction to a meter.
private final class MeteredConnection: SQLConnection {
    private let inner: SQLiteConnection
    private let meter: CostMeter
    private var atBegin = StoreCost()
    private var began = ContinuousClock.now

    init(_ inner: SQLiteConnection, meter: CostMeter) {
        self.inner = inner
        self.meter = meter
    }

    var dialect: SQLDialect { inner.dialect }
    var isInTransaction: Bool { inner.isInTransaction }
    var statementCount: Int { inner.statementCount }
    var rowsStepped: Int { inner.rowsStepped }

    func prepare(_ sql: String) throws(SQLError) -> any SQLStatement { try inner.prepare(sql) }
    func execute(_ sql: String) throws(SQLError) { try inner.execute(sql) }
    func checkpoint() throws(SQLError) { try inner.checkpoint() }

    func begin(_ mode: SQLTransactionMode) throws(SQLError) {
        atBegin = now
        began = ContinuousClock.now
        try inner.begin(mode)
    }

    func commit() throws(SQLError) {
        try inner.commit()
        tell()
    }

    func rollback() {
        let wasOpen = inner.isInTransaction
        inner.rollback()
        if wasOpen { tell() }
    }

    private var now: StoreCost {
        var cost = StoreCost()
        cost.statements = inner.statementCount
        cost.rowsRead = inner.rowsStepped
        cost.rowsWritten = inner.rowsChanged
        cost.steps = inner.virtualMachineSteps
        return cost
    }

    private func tell() {
        let took = ContinuousClock.now - began
        var cost = now
        cost.statements -= atBegin.statements
        cost.rowsRead -= atBegin.rowsRead
        cost.rowsWritten -= atBegin.rowsWritten
        cost.steps -= atBegin.steps
        cost.transactions = [took]
        meter.add(cost)
    }
}
