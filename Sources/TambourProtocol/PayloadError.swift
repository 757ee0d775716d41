/// An error in a payload, and its place: `/message/text: 4001 UTF-16 units, limit 4000`.
package struct PayloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A JSON pointer to the field; empty for the payload as a whole.
    package var path: String
    /// What is wrong with it, in English.
    package var reason: String

    package init(path: String = "", reason: String) {
        self.path = path
        self.reason = reason
    }

    /// The path and the reason; the reason alone when there is no path.
    package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }

    /// Returns the error as seen from the map with the field `key`; an empty key adds nothing.
    package func within(_ key: StaticString) -> PayloadError {
        guard key.utf8CodeUnitCount > 0 else { return self }
        return PayloadError(path: "/\(key)\(path)", reason: reason)
    }

    /// Returns the error as seen from the array with the item; the first index is 0.
    package func within(index: Int) -> PayloadError {
        PayloadError(path: "/\(index)\(path)", reason: reason)
    }

    /// Returns the error as seen from the map that is keyed by ids or names.
    package func within(key: some WireKey) -> PayloadError {
        PayloadError(path: "/\(key)\(path)", reason: reason)
    }
}

// Not inlined, so that a check costs its caller only a comparison and a branch.
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
