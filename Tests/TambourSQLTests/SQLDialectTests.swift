import TambourSQL
import Testing

@Suite("The words that differ between the engines")
struct SQLDialectTests {
    static let template = "CREATE TABLE t(a {int64}, b {text}, c {blob}) {without_rowid}"

    @Test("a template names every type SQLite's way")
    func sqlite() {
        let sql = SQLDialect.sqlite.expand(SQLDialectTests.template)
        #expect(sql == "CREATE TABLE t(a INTEGER, b TEXT, c BLOB) WITHOUT ROWID")
    }

    @Test("a template names every type PostgreSQL's way")
    func postgreSQL() {
        let sql = SQLDialect.postgreSQL.expand(SQLDialectTests.template)
        #expect(sql == "CREATE TABLE t(a bigint, b text, c bytea) ")
    }

    @Test("a text without names stays as it is")
    func plain() {
        #expect(SQLDialect.sqlite.expand("SELECT 1") == "SELECT 1")
    }
}
