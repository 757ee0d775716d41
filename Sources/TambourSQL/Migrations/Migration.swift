/// One step of a schema. A released step is never edited; changes need a new step.
package struct Migration: Sendable {
    /// The number of the step: 1 for the first migration, then ascending by 1.
    package let version: Int
    /// A short description of the step.
    package let name: String
    private let sqlite: String
    private let postgreSQL: String
    /// Work that SQL cannot do. It runs after the statements, in the same transaction. It may use
    /// only the schema as this step leaves it, because the later steps have not run yet.
    let fill: @Sendable (any SQLConnection) throws(SQLError) -> Void

    /// Creates a step with the same text for both engines, except for the placeholders of
    /// `SQLDialect`.
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

    /// Creates a step with a different text for each engine. Both texts are templates.
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

    /// Returns the statements for one engine.
    package func sql(for dialect: SQLDialect) -> String {
        dialect.expand(dialect == .sqlite ? sqlite : postgreSQL)
    }

    /// Returns a checksum of the statements, the 64-bit FNV-1a hash. It reveals that somebody has
    /// edited an applied step.
    ///
    /// The checksum protects against accidental edits, not against an attacker.
    package func checksum(for dialect: SQLDialect) -> Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in sql(for: dialect).utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        return Int64(bitPattern: hash)
    }
}
