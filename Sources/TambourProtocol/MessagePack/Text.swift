#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A text, stored as valid UTF-8 in the form in which it is sent. A `String` is created only on
/// request.
package struct Text: Hashable, Sendable {
    /// The UTF-8.
    package let bytes: Bytes

    /// Encodes a string as UTF-8.
    package init(_ string: String) {
        bytes = Bytes(Array(string.utf8))
    }

    /// Validates the bytes; nil if they are not UTF-8.
    package init?(validating bytes: Bytes) {
        guard bytes.withUnsafeBytes({ UTF8Scan.utf16Count(validating: $0) }) != nil else {
            return nil
        }
        self.bytes = bytes
    }

    /// Takes bytes that are known to be UTF-8.
    package init(unchecked bytes: Bytes) {
        self.bytes = bytes
    }

    /// The text with its own copy of the bytes. Use it for a text that is kept longer than its
    /// request, because a range of the payload keeps the whole payload in memory.
    package var detached: Text { Text(unchecked: Bytes(bytes.array)) }

    /// The empty text.
    package static let empty = Text(unchecked: .empty)

    package var isEmpty: Bool { bytes.isEmpty }

    /// The length in UTF-16 code units. Text limits and formatting ranges use this unit.
    package var utf16Count: Int {
        bytes.withUnsafeBytes { UTF8Scan.utf16Count(ofValid: $0) }
    }

    /// Returns whether the text equals `other`, byte for byte.
    package func equals(_ other: StaticString) -> Bool {
        guard bytes.count == other.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return true }
            return memcmp(base, other.utf8Start, bytes.count) == 0
        }
    }
}

extension Text: ExpressibleByStringLiteral {
    package init(stringLiteral value: String) {
        self.init(value)
    }
}

extension Text: CustomStringConvertible {
    /// The text as a string.
    package var description: String {
        bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

extension String {
    /// The text as a string.
    package init(_ text: Text) {
        self = text.description
    }
}

extension Text: WireValue {
    package static func read(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> Text {
        try reader.readText()
    }

    package func write(to writer: inout MessagePackWriter) {
        writer.writeText(self)
    }
}

extension Text: WireKey {
    package static func readKey(
        from reader: inout MessagePackReader
    ) throws(PayloadError) -> Text {
        try reader.readText(maxBytes: reader.limits.maxShortStringBytes)
    }

    package func writeKey(to writer: inout MessagePackWriter) {
        writer.writeText(self)
    }
}
