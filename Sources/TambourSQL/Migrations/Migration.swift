/// One step of a schema's life: never edited once released, only followed by another.
package struct Migration: Sendable {
    /// 1 for the first, then one more each.
    package let version: Int
    /// What it does, in a few words.
    package let name: String
    private let sqlite: String
    private let postgreSQL: String
    /// What no SQL can do, behind the statements in their transaction; it may know only what they know.
    let fill: @Sendable (any SQLConnection) throws(SQLError) -> Void

    /// A step that reads the same for both engines but for the words `SQLDialect` knows.
    ///
    /// - Parameter template: One or several statements; see `SQLDialect.expand`.
    package init(
        _ version: Int,
        _ name: String,
        _ template: String,
        fill: @escaping @Sendable (any SQLConnection) throws(SQLError) -> Void = { _ in }
    ) {
        self.init(version, name, sqlite: template, postgreSQL: template, fill: fill)
    }

    /// A step that each engine takes in its own way; both texts are templates.
    package init(
        _ version: Int,
        _ name: String,
        sqlite: String,
        postgreSQL: String,
        fill: @escaping @Sendable (any SQLConnection) throws(SQLError) -> Void = { _ in }
    ) {
        self.version = version
        self.name = name
        self.sqlite = sqlite
        self.postgreSQL = postgreSQL
        self.fill = fill
    }

    /// The statements for one engine.
    package func sql(for dialect: SQLDialect) -> String {
        dialect.expand(dialect == .sqlite ? sqlite : postgreSQL)
    }

    /// Tells an edited step from the one that was applied: 64-bit FNV-1a over the statements.
    ///
    /// It guards against accidents, not against intent.
    package func checksum(for dialect: SQLDialect) -> Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in sql(for: dialect).utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        return Int64(bitPattern: hash)
    }
}
