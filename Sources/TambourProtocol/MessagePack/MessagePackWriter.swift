#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Writes MessagePack into a growing buffer, each value in its shortest form.
package struct MessagePackWriter: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private var ownsBuffer = true
    /// The capabilities of the peer that reads the output; by default all. The writer omits or
    /// replaces values that this peer does not support.
    package var capabilities = Capabilities.all
    /// The number of bytes written.
    package private(set) var count = 0

    /// Creates a writer with an initial buffer of `capacity` bytes.
    package init(capacity: Int = 512) {
        self.capacity = max(capacity, 16)
        base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    /// Creates a writer on the caller's buffer, which must outlive the writer. If this buffer
    /// becomes full, the writer moves to a buffer of its own.
    init(room: UnsafeMutableRawBufferPointer) {
        guard let base = room.baseAddress else { preconditionFailure("room without an address") }
        self.base = base
        capacity = room.count
        ownsBuffer = false
    }

    deinit {
        if ownsBuffer { base.deallocate() }
    }

    /// The bytes written.
    package consuming func finish() -> [UInt8] {
        [UInt8](UnsafeRawBufferPointer(start: base, count: count))
    }

    /// Passes the bytes written so far to `body`; the pointer is valid only during the call.
    package func withUnsafeBytes<R, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }

    /// Discards the bytes written and keeps the buffer.
    package mutating func removeAll() {
        count = 0
    }

    // MARK: Containers

    /// Starts a map; `count` pairs of key and value must follow.
    package mutating func writeMapHeader(_ count: Int) {
        if count < 16 {
            put(0x80 | UInt8(count))
        } else if count <= UInt16.max {
            put(0xDE, UInt16(count))
        } else {
            put(0xDF, UInt32(count))
        }
    }

    /// Starts an array; `count` values must follow.
    package mutating func writeArrayHeader(_ count: Int) {
        if count < 16 {
            put(0x90 | UInt8(count))
        } else if count <= UInt16.max {
            put(0xDC, UInt16(count))
        } else {
            put(0xDD, UInt32(count))
        }
    }

    // MARK: Scalars

    /// Writes nil. Do not write nil for an absent field, because some clients cannot decode nil;
    /// omit the field.
    package mutating func writeNil() {
        put(0xC0)
    }

    /// Writes a boolean.
    package mutating func writeBool(_ value: Bool) {
        put(value ? 0xC3 : 0xC2)
    }

    /// Writes an integer in one to nine bytes.
    package mutating func writeInt(_ value: Int64) {
        if value >= 0 {
            if value < 0x80 {
                put(UInt8(truncatingIfNeeded: value))
            } else if value <= UInt8.max {
                put(0xCC, UInt8(truncatingIfNeeded: value))
            } else if value <= UInt16.max {
                put(0xCD, UInt16(truncatingIfNeeded: value))
            } else if value <= UInt32.max {
                put(0xCE, UInt32(truncatingIfNeeded: value))
            } else {
                put(0xCF, UInt64(truncatingIfNeeded: value))
            }
        } else if value >= -32 {
            put(UInt8(truncatingIfNeeded: value))
        } else if value >= Int8.min {
            put(0xD0, UInt8(truncatingIfNeeded: value))
        } else if value >= Int16.min {
            put(0xD1, UInt16(truncatingIfNeeded: value))
        } else if value >= Int32.min {
            put(0xD2, UInt32(truncatingIfNeeded: value))
        } else {
            put(0xD3, UInt64(truncatingIfNeeded: value))
        }
    }

    /// Writes a float of 64 bits.
    package mutating func writeDouble(_ value: Double) {
        put(0xCB, value.bitPattern)
    }

    // MARK: Strings and bytes

    /// Writes the key of a map entry, or another constant string.
    @inline(__always)
    package mutating func writeKey(_ key: StaticString) {
        putString(UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
    }

    /// Writes a number as a string of decimal digits. Maps whose keys are ids have such keys.
    package mutating func writeDecimalKey(_ value: Int64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var first = 20
            var left = value.magnitude
            repeat {
                first &-= 1
                digits[first] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: left % 10)
                left /= 10
            } while left > 0
            if value < 0 {
                first &-= 1
                digits[first] = UInt8(ascii: "-")
            }
            putString(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: digits[first...])))
        }
    }

    /// Writes a string.
    package mutating func writeText(_ text: Text) {
        text.bytes.withUnsafeBytes { putString($0) }
    }

    /// Writes a string after `prefix`.
    package mutating func writeText(_ text: Text, after prefix: StaticString) {
        guard prefix.utf8CodeUnitCount > 0 else { return writeText(text) }
        writeText(Text("\(prefix)\(text)"))
    }

    /// Writes a string.
    package mutating func writeString(_ string: String) {
        var string = string
        string.withUTF8 { putString(UnsafeRawBufferPointer($0)) }
    }

    /// Writes a binary value.
    package mutating func writeBytes(_ bytes: Bytes) {
        if bytes.count <= UInt8.max {
            put(0xC4, UInt8(bytes.count))
        } else if bytes.count <= UInt16.max {
            put(0xC5, UInt16(bytes.count))
        } else {
            put(0xC6, UInt32(bytes.count))
        }
        writeRaw(bytes)
    }

    /// Writes bytes that are already MessagePack.
    package mutating func writeRaw(_ bytes: Bytes) {
        bytes.withUnsafeBytes { putAll($0) }
    }

    // MARK: Bytes

    @inline(__always)
    private mutating func putString(_ bytes: UnsafeRawBufferPointer) {
        if bytes.count < 32 {
            put(0xA0 | UInt8(truncatingIfNeeded: bytes.count))
        } else if bytes.count <= UInt8.max {
            put(0xD9, UInt8(bytes.count))
        } else if bytes.count <= UInt16.max {
            put(0xDA, UInt16(bytes.count))
        } else {
            put(0xDB, UInt32(bytes.count))
        }
        putAll(bytes)
    }

    @inline(__always)
    private mutating func putAll(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        memcpy(base + count, source, bytes.count)
        count &+= bytes.count
    }

    @inline(__always)
    private mutating func put(_ byte: UInt8) {
        reserve(1)
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    /// Writes a first byte and a big-endian number.
    @inline(__always)
    private mutating func put<Number: FixedWidthInteger & BitwiseCopyable>(
        _ first: UInt8,
        _ number: Number
    ) {
        reserve(1 &+ MemoryLayout<Number>.size)
        base.storeBytes(of: first, toByteOffset: count, as: UInt8.self)
        base.storeBytes(of: number.bigEndian, toByteOffset: count &+ 1, as: Number.self)
        count &+= 1 &+ MemoryLayout<Number>.size
    }

    @inline(__always)
    private mutating func reserve(_ room: Int) {
        if capacity &- count < room { grow(by: room) }
    }

    @inline(never)
    private mutating func grow(by room: Int) {
        let larger = max(capacity * 2, count + room)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        moved.copyMemory(from: base, byteCount: count)
        if ownsBuffer { base.deallocate() }
        base = moved
        capacity = larger
        ownsBuffer = true
    }
}
