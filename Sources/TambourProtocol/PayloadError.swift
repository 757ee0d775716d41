/// An error in a payload and its location: `/message/text: 4001 UTF-16 units, limit 4000`.
package struct PayloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A JSON pointer to the field; empty for the payload as a whole.
    package var path: String
    /// The description of the error, in English.
    package var reason: String

    package init(path: String = "", reason: String) {
        self.path = path
        self.reason = reason
    }

    /// The path and the reason; only the reason if the path is empty.
    package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }

    /// Prepends the field `key` to the path; an empty key adds nothing.
    package func within(_ key: StaticString) -> PayloadError {
        guard key.utf8CodeUnitCount > 0 else { return self }
        return PayloadError(path: "/\(key)\(path)", reason: reason)
    }

    /// Prepends the index of an array item to the path; the first index is 0.
    package func within(index: Int) -> PayloadError {
        PayloadError(path: "/\(index)\(path)", reason: reason)
    }

    /// Prepends the key of a map to the path.
    package func within(key: some WireKey) -> PayloadError {
        PayloadError(path: "/\(key)\(path)", reason: reason)
    }
}

// These functions are not inlined. A check therefore adds only a comparison and a branch to its
// caller.
extension PayloadError {
    /// Returns the error for an absent required field.
    @inline(never)
    package static func missing(_ key: StaticString) -> PayloadError {
        PayloadError(path: "/\(key)", reason: "missing")
    }

    /// Returns the error for a key that occurs twice.
    @inline(never)
    package static func duplicateKey() -> PayloadError {
        PayloadError(reason: "duplicate key")
    }

    /// Returns the error for an item that a list contains twice.
    @inline(never)
    package static func duplicateItem() -> PayloadError {
        PayloadError(reason: "duplicate item")
    }

    /// Returns the error for a value that is not in its closed enumeration.
    @inline(never)
    package static func unknownValue(_ name: Text) -> PayloadError {
        PayloadError(reason: "unknown value \"\(name)\"")
    }

    /// Returns the error for an array or map with too many entries.
    @inline(never)
    package static func tooManyItems(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) items, limit \(limit)")
    }

    /// Returns the error for a value with too many bytes.
    @inline(never)
    package static func tooManyBytes(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) bytes, limit \(limit)")
    }

    /// Returns the error for a text with too many UTF-16 units.
    @inline(never)
    package static func tooManyUnits(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) UTF-16 units, limit \(limit)")
    }
}
