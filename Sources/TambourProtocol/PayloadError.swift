/// What is wrong with a payload, and where: `/message/text: 4001 UTF-16 units, limit 4000`.
package struct PayloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A JSON pointer to the field; empty when the payload as a whole is meant.
    package var path: String
    /// What is wrong with it, in English.
    package var reason: String

    package init(path: String = "", reason: String) {
        self.path = path
        self.reason = reason
    }

    /// The path and the reason; the reason alone when there is no path.
    package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }

    /// The same error seen from the map that holds the field `key`; an empty key adds nothing.
    package func within(_ key: StaticString) -> PayloadError {
        guard key.utf8CodeUnitCount > 0 else { return self }
        return PayloadError(path: "/\(key)\(path)", reason: reason)
    }

    /// The same error seen from the array that holds the item; the first is 0.
    package func within(index: Int) -> PayloadError {
        PayloadError(path: "/\(index)\(path)", reason: reason)
    }

    /// The same error seen from the map that is keyed by ids.
    package func within(id: Int64) -> PayloadError {
        PayloadError(path: "/\(id)\(path)", reason: reason)
    }
}

// Made out of line, so that a check costs its caller a compare and a branch.
extension PayloadError {
    /// A required field is absent.
    @inline(never)
    package static func missing(_ key: StaticString) -> PayloadError {
        PayloadError(path: "/\(key)", reason: "missing")
    }

    /// A field came twice.
    @inline(never)
    package static func duplicateKey() -> PayloadError {
        PayloadError(reason: "duplicate key")
    }

    /// A list names one thing twice.
    @inline(never)
    package static func duplicateItem() -> PayloadError {
        PayloadError(reason: "duplicate item")
    }

    /// A closed enumeration has no such value.
    @inline(never)
    package static func unknownValue(_ name: Text) -> PayloadError {
        PayloadError(reason: "unknown value \"\(name)\"")
    }

    /// An array holds more than it may.
    @inline(never)
    package static func tooManyItems(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) items, limit \(limit)")
    }

    /// A string or binary is longer than it may be.
    @inline(never)
    package static func tooManyBytes(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) bytes, limit \(limit)")
    }

    /// A text is longer than it may be.
    @inline(never)
    package static func tooManyUnits(_ count: Int, limit: Int) -> PayloadError {
        PayloadError(reason: "\(count) UTF-16 units, limit \(limit)")
    }
}
