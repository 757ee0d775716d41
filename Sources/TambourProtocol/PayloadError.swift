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

// Not inlined, so that a check adds only a comparison and a branch to its caller.
extension PayloadError {
    /// A required field is absent.
    @inline(never)
    package static func missing(_ key: StaticString) -> PayloadError {
        PayloadError(path: "/\(key)", reason: "missing")
    }

    /// A field occurs twice.
    @inline(never)
    package static func duplicateKey() -> PayloadError {
        PayloadError(reason: "duplicate key")
    }

    /// A list contains an item twice.
    @inline(never)
    package static func duplicateItem() -> PayloadError {
        PayloadError(reason: "duplicate item")
    }

    /// A closed enumeration does not contain the value.
    @inline(never)
    package static func unknownValue(_ name: Text) -> PayloadError {
        PayloadError(reason: "unknown value \"\(name)\"")
    }

    /// An array has too many items.
    @inline(never)
    package static func tooManyItems(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) items, limit \(limit)")
    }

    /// A string or binary is too long.
    @inline(never)
    package static func tooManyBytes(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) bytes, limit \(limit)")
    }

    /// A text is too long.
    @inline(never)
    package static func tooManyUnits(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) UTF-16 units, limit \(limit)")
    }
}
