import TambourProtocol
import TambourSQL
import TambourStore
import Testing

/// How SQLite runs each statement: one that reads a table from end to end, or everything of a user to find
/// a few rows, works in every test and stalls a server that has users.
@Suite("Query plans")
struct QueryPlanTests {
    /// Keeps what is prepared.
    private final class Recorder: SQLConnection {
        let inner: any SQLConnection
        private(set) var texts: [String] = []

        init(_ inner: any SQLConnection) { self.inner = inner }

        func prepare(_ sql: String) throws(SQLError) -> any SQLStatement {
            texts.append(sql)
            return try inner.prepare(sql)
        }

        var dialect: SQLDialect { inner.dialect }
        func execute(_ sql: String) throws(SQLError) { try inner.execute(sql) }
        func begin(_ mode: SQLTransactionMode) throws(SQLError) { try inner.begin(mode) }
        func commit() throws(SQLError) { try inner.commit() }
        func rollback() { inner.rollback() }
        var isInTransaction: Bool { inner.isInTransaction }
        func checkpoint() throws(SQLError) { try inner.checkpoint() }
        var statementCount: Int { inner.statementCount }
        var rowsStepped: Int { inner.rowsStepped }
    }

    @Test("no statement looks further than an index leads it")
    func plans() throws {
        let store = try TestStore(.sqlite)
        let recorder = Recorder(try store.database.connect())
        _ = try StoreConnection(recorder, limits: store.limits)
        var unexpected: [String] = []
        for text in recorder.texts {
            let plan = try recorder.inner.prepare("EXPLAIN QUERY PLAN \(text)")
            while try plan.step() {
                let detail = plan.string(3)
                print(
                    "PLAN|\(detail)|\(text.split(whereSeparator: \.isWhitespace).joined(separator: " "))"
                )
                if detail.hasPrefix("SCAN ") { unexpected.append("\(detail): \(text)") }
            }
            plan.reset()
        }
        #expect(unexpected == [])
    }
}
