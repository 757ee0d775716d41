// What generated readers call. It is here and not generated because it is the same for every type.

/// Marks the field with this number as read.
/// - Throws: `PayloadError` if it was already.
@inline(__always)
func claim(_ field: Int, in seen: inout UInt64) throws(PayloadError) {
    let bit: UInt64 = 1 << UInt64(field)
    guard seen & bit == 0 else { throw .duplicateKey() }
    seen |= bit
}

/// A required field is absent.
func missing(_ key: StaticString) -> PayloadError { .missing(key) }

/// A closed enumeration has no such value.
func unknownValue(_ name: Text) -> PayloadError { .unknownValue(name) }
