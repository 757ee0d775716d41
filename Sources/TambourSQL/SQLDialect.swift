/// The differences between the SQL texts of the two engines.
///
/// A statement has one text for both engines. A definition of a table is a template with these
/// placeholders:
///
/// | template          | SQLite          | PostgreSQL |
/// | ----------------- | --------------- | ---------- |
/// | `{int64}`         | `INTEGER`       | `bigint`   |
/// | `{text}`          | `TEXT`          | `text`     |
/// | `{blob}`          | `BLOB`          | `bytea`    |
/// | `{without_rowid}` | `WITHOUT ROWID` | nothing    |
package enum SQLDialect: String, Sendable {
    case sqlite
    case postgreSQL

    /// The column type of a 64-bit integer.
    package var integer64: String {
        self == .sqlite ? "INTEGER" : "bigint"
    }

    /// The column type of UTF-8 text.
    package var text: String {
        self == .sqlite ? "TEXT" : "text"
    }

    /// The column type of bytes.
    package var blob: String {
        self == .sqlite ? "BLOB" : "bytea"
    }

    /// The end of a CREATE TABLE statement for a table whose rows are stored in the order of the
    /// primary key.
    package var withoutRowID: String {
        self == .sqlite ? "WITHOUT ROWID" : ""
    }

    /// Returns the template with its placeholders replaced. An unknown placeholder is a programming
    /// error and traps.
    package func expand(_ template: String) -> String {
        var result = ""
        var rest = template[...]
        while let open = rest.firstIndex(of: "{") {
            result += rest[..<open]
            guard let close = rest[open...].firstIndex(of: "}") else {
                preconditionFailure("a { without } in an SQL template: \(template)")
            }
            result += word(for: rest[rest.index(after: open)..<close])
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }

    private func word(for name: Substring) -> String {
        switch name {
        case "int64": integer64
        case "text": text
        case "blob": blob
        case "without_rowid": withoutRowID
        default: preconditionFailure("no {\(name)} in SQL templates")
        }
    }
}
