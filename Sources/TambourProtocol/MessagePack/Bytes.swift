#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A slice of a byte array. It keeps a reference to the array, so parts of a payload need not be
/// copied.
package struct Bytes: Hashable, Sendable {
    /// The whole array that contains the range.
    let storage: [UInt8]
    // Numbers of 32 bits suffice, because no payload reaches 4 GiB. They save memory, because a
    // message contains many `Bytes` values.
    private let start: UInt32
    private let length: UInt32

    /// Takes all bytes of an array.
    package init(_ array: [UInt8]) {
        self.init(array, range: 0..<array.count)
    }

    /// Takes a range of an array; the array must contain the range.
    package init(_ storage: [UInt8], range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= storage.count)
        self.storage = storage
        start = UInt32(range.lowerBound)
        length = UInt32(range.count)
    }

    /// No bytes.
    package static let empty = Bytes([])

    /// The number of bytes.
    package var count: Int { Int(length) }

    package var isEmpty: Bool { length == 0 }

    /// The range of the bytes in `storage`.
    var range: Range<Int> { Int(start)..<Int(start) + Int(length) }

    /// The bytes as an array: `storage` itself if the range covers all of it, otherwise a copy.
    package var array: [UInt8] {
        count == storage.count ? storage : Array(storage[range])
    }

    /// Passes the bytes to `body`; the pointer is valid only during the call.
    package func withUnsafeBytes<R, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try storage.withUnsafeBufferPointer { (owner) throws(E) -> R in
            try body(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: owner[range])))
        }
    }

    package static func == (left: Bytes, right: Bytes) -> Bool {
        guard left.length == right.length else { return false }
        return left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                guard let a = left.baseAddress, let b = right.baseAddress else { return true }
                return memcmp(a, b, left.count) == 0
            }
        }
    }

    package func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(length)
    }
}
