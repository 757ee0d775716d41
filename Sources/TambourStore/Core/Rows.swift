import TambourProtocol
import TambourSQL

// Single columns that several SELECTs return.

enum ChatKeyColumn: Int, SQLColumn {
    case chat
}

enum IDColumn: Int, SQLColumn {
    case id
}

enum MessageIDColumn: Int, SQLColumn {
    case message
}

enum UserIDColumn: Int, SQLColumn {
    case userID
}

extension SQLRow {
    /// Returns the count; 0 for NULL.
    func count(_ column: Column) -> Int { Int(count: int(column)) }

    /// Returns the integer; nil for 0, which means absent.
    func nonZero(_ column: Column) -> Int64? {
        let value = int(column)
        return value == 0 ? nil : value
    }

    /// Returns a user's text; empty for NULL.
    func text(_ column: Column) -> Text { Text(unchecked: Bytes(bytes(column))) }

    /// Returns a user's text; nil for NULL.
    func optionalText(_ column: Column) -> Text? { isNull(column) ? nil : text(column) }

    /// Returns an encoded value; nil for NULL.
    func packed<Value>(_ column: Column) -> Packed<Value>? {
        isNull(column) ? nil : Packed(unchecked: Bytes(bytes(column)))
    }
}

extension SQLStatement {
    /// Reads the count that a SELECT of one column returns. Returns 0 for NULL, and if there is no
    /// row.
    func oneCount(_ bind: (any SQLStatement) throws -> Void = { _ in }) throws -> Int {
        Int(count: try oneInt(bind) ?? 0)
    }

    /// Binds a user's text: UTF-8 as bytes, which may contain zeros.
    func bindWords(_ index: Int, _ words: Text?) {
        bindBlob(index, words?.bytes)
    }

    /// Binds a user's text: UTF-8 as bytes, which may contain zeros.
    func bindWords(_ index: Int, _ words: String?) {
        bindBlob(index, words.map { [UInt8]($0.utf8) })
    }

    func bindBlob(_ index: Int, _ bytes: Bytes?) {
        guard let bytes else { return bindNull(index) }
        bytes.withUnsafeBytes { bindBlob(index, $0) }
    }
}
