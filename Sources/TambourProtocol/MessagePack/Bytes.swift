#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A slice of a byte array that keeps the array alive, so parts of a payload are never copied.
package struct Bytes: Hashable, Sendable {
    /// The whole array that contains the range.
    let storage: [UInt8]
    // 32 bits each: a message holds many of these, and no payload is 4 GiB.
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

    /// A copy of the bytes, or the array itself when the range is all of it.
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
