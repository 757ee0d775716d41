#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A cursor over the MessagePack in a byte array. Checks every read against the end of the array.
///
/// The returned `Text` and `Bytes` values are ranges of the array. The reader therefore allocates
/// memory only for arrays of items and for `String` values. A reader exists only inside
/// `read(_:limits:_:)`, because its pointer is valid only there.
///
/// The first byte of each type of value, and the data after this byte:
///
///     00..7f  positive fixint           c0      nil             ca, cb  float 32, 64
///     80..8f  fixmap, entries           c1      never used      cc..cf  uint 8, 16, 32, 64
///     90..9f  fixarray, items           c2, c3  false, true     d0..d3  int 8, 16, 32, 64
///     a0..bf  fixstr, bytes             c4..c6  bin 8, 16, 32   d4..d8  fixext 1, 2, 4, 8, 16
///     e0..ff  negative fixint           c7..c9  ext 8, 16, 32   d9..db  str 8, 16, 32
///                                                               dc, dd  array 16, 32
///                                                               de, df  map 16, 32
package struct MessagePackReader: ~Copyable {
    /// The key of a map entry. The name is valid only as long as the reader.
    package enum Key {
        /// A string key. Its bytes should be UTF-8, but are not validated.
        case name(UnsafeRawBufferPointer)
        /// An integer key of any width.
        case int(Int64)
        /// A key of any other type. The reader has already skipped it.
        case other
    }

    /// The limits that apply to the values read.
    package let limits: Limits

    private let owner: [UInt8]
    let base: UnsafeRawPointer
    private let start: Int
    private(set) var end: Int
    var position: Int
    var depth = 0
    var elements = 0
    /// Whether skipped strings must be UTF-8: true while the caller keeps the bytes of the skipped
    /// values.
    var checksSkippedText = false

    /// The maximum number of items for which an array reserves memory before the items are read. A
    /// header may claim one item for each byte that follows. Memory for all claimed items could be
    /// many times the size of the input.
    static let reservedItems = 64

    private init(_ bytes: Bytes, base: UnsafeRawPointer, limits: Limits) {
        owner = bytes.storage
        self.base = base
        start = bytes.range.lowerBound
        end = bytes.range.upperBound
        position = start
        self.limits = limits
    }

    /// Reads bytes that must be exactly one value.
    /// - Throws: `PayloadError` from `body`, or if bytes remain after the value.
    package static func read<Value>(
        _ bytes: Bytes,
        limits: Limits,
        _ body: (inout MessagePackReader) throws(PayloadError) -> Value
    ) throws(PayloadError) -> Value {
        try bytes.storage.withUnsafeBufferPointer { (owner) throws(PayloadError) -> Value in
            guard let base = owner.baseAddress else { throw Self.truncated(after: 0) }
            var reader = MessagePackReader(bytes, base: UnsafeRawPointer(base), limits: limits)
            let value = try body(&reader)
            guard reader.position == reader.end else { throw reader.trailing() }
            return value
        }
    }

    /// Reads stored bytes without limits. The bytes were checked before they were stored, and the
    /// limits at that time may have been wider.
    package static func readStored<Value>(
        _ bytes: Bytes,
        _ body: (inout MessagePackReader) throws(PayloadError) -> Value
    ) throws(PayloadError) -> Value {
        try read(bytes, limits: .unlimited, body)
    }

    // MARK: Containers

    /// Enters a map and returns the number of its entries; `endContainer()` leaves it.
    package mutating func readMapHeader() throws(PayloadError) -> Int {
        guard position < end else { throw mismatch("a map") }
        let first = byte(at: position)
        let count: Int
        switch first {
        case 0x80...0x8F:
            count = Int(first & 0x0F)
            position &+= 1
        case 0xDE: count = Int(try fixed(UInt16.self))
        case 0xDF: count = Int(try fixed(UInt32.self))
        default: throw mismatch("a map")
        }
        try enter(count, bytesAnElement: 2)
        return count
    }

    /// Enters an array and returns the number of its items; `endContainer()` leaves it.
    package mutating func readArrayHeader() throws(PayloadError) -> Int {
        guard position < end else { throw mismatch("an array") }
        let first = byte(at: position)
        let count: Int
        switch first {
        case 0x90...0x9F:
            count = Int(first & 0x0F)
            position &+= 1
        case 0xDC: count = Int(try fixed(UInt16.self))
        case 0xDD: count = Int(try fixed(UInt32.self))
        default: throw mismatch("an array")
        }
        try enter(count, bytesAnElement: 1)
        return count
    }

    /// Leaves the map or array that was entered last.
    package mutating func endContainer() {
        depth &-= 1
    }

    /// Reads an array item by item. The error for an invalid item contains the index of the item.
    package mutating func readList<Item>(
        maxItems: Int? = nil,
        _ item: (inout MessagePackReader) throws(PayloadError) -> Item
    ) throws(PayloadError) -> [Item] {
        let count = try readArrayHeader()
        if let maxItems, count > maxItems {
            throw .tooManyItems(count, limit: maxItems)
        }
        var items: [Item] = []
        items.reserveCapacity(min(count, Self.reservedItems))
        for index in 0..<count {
            do throws(PayloadError) {
                items.append(try item(&self))
            } catch {
                throw error.within(index: index)
            }
        }
        endContainer()
        return items
    }

    /// Reads an array and handles repeated items as `duplicates` says.
    package mutating func readList<Item: Hashable>(
        maxItems: Int? = nil,
        duplicates: Duplicates,
        _ item: (inout MessagePackReader) throws(PayloadError) -> Item
    ) throws(PayloadError) -> [Item] {
        let items = try readList(maxItems: maxItems, item)
        guard duplicates != .kept, items.count > 1 else { return items }
        let compares = items.count <= SeenKeys<Item>.comparedKeys
        var seen = SeenKeys<Item>()
        // The items without repetitions. Nil until a repeated item is found, which is rare.
        var kept: [Item]?
        for (index, item) in items.enumerated() {
            let isRepeated =
                compares ? items[..<index].contains(item) : seen.place(of: item) != nil
            guard isRepeated else {
                kept?.append(item)
                continue
            }
            guard duplicates == .merged else {
                throw PayloadError.duplicateItem().within(index: index)
            }
            if kept == nil { kept = Array(items[..<index]) }
        }
        return kept ?? items
    }

    mutating func enter(_ count: Int, bytesAnElement: Int) throws(PayloadError) {
        // An item takes at least one byte. A header that claims more items than the number of bytes
        // after it is therefore rejected before memory is reserved.
        guard count &* bytesAnElement <= end &- position else { throw truncated() }
        depth &+= 1
        guard depth <= limits.maxDepth else { throw tooDeep() }
        elements &+= count
        guard elements <= limits.maxElements else { throw tooManyElements() }
    }

    // MARK: Keys

    /// Reads the key of a map entry.
    @inline(__always)
    package mutating func readKey() throws(PayloadError) -> Key {
        guard position < end else { throw truncated() }
        let first = byte(at: position)
        guard first & 0xE0 == 0xA0 else { return try readLongKey() }
        let range = try run(header: 1, length: Int(first & 0x1F))
        return .name(UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count))
    }

    @inline(never)
    private mutating func readLongKey() throws(PayloadError) -> Key {
        if let range = try stringRange() {
            return .name(UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count))
        }
        if let int = try intIfPresent() { return .int(int) }
        try skip()
        return .other
    }

    /// Returns whether the key is this name.
    @inline(__always)
    package func matches(_ key: Key, _ name: StaticString) -> Bool {
        guard case .name(let bytes) = key, bytes.count == name.utf8CodeUnitCount,
            let base = bytes.baseAddress
        else { return false }
        // The compiler knows the length, so it compares words instead of calling `memcmp`.
        return memcmp(base, name.utf8Start, name.utf8CodeUnitCount) == 0
    }

    // MARK: Scalars

    /// The type of the next value; nil at the end.
    package var kind: MessagePackKind? {
        position < end ? MessagePackKind(firstByte: byte(at: position)) : nil
    }

    /// Whether the next value is nil.
    package var isNil: Bool { position < end && byte(at: position) == 0xC0 }

    /// Skips the next value if it is nil, and returns whether it was nil.
    package mutating func readNilIfPresent() -> Bool {
        guard isNil else { return false }
        position &+= 1
        return true
    }

    /// Reads a boolean.
    package mutating func readBool() throws(PayloadError) -> Bool {
        guard position < end else { throw truncated() }
        let first = byte(at: position)
        guard first & 0xFE == 0xC2 else { throw mismatch("a boolean") }
        position &+= 1
        return first == 0xC3
    }

    /// Reads an integer of any width; rejects floats.
    package mutating func readInt() throws(PayloadError) -> Int64 {
        guard position < end else { throw truncated() }
        let first = byte(at: position)
        if first < 0x80 {
            position &+= 1
            return Int64(first)
        }
        guard let int = try intIfPresent() else {
            throw first == 0xCF ? Self.aboveInt64() : mismatch("an integer")
        }
        return int
    }

    /// Reads an id, which may be negative: an integer of any width, or a string of decimal digits.
    package mutating func readID() throws(PayloadError) -> Int64 {
        guard position < end else { throw truncated() }
        if let int = try intIfPresent() { return int }
        let first = byte(at: position)
        let before = position
        guard let range = try stringRange() else {
            throw first == 0xCF ? Self.aboveInt64() : mismatch("an id")
        }
        guard let id = decimal(in: range) else {
            position = before
            throw Self.notAnID()
        }
        return id
    }

    /// Reads a float or an integer.
    package mutating func readDouble() throws(PayloadError) -> Double {
        guard position < end else { throw truncated() }
        switch byte(at: position) {
        case 0xCA: return Double(Float(bitPattern: try fixed(UInt32.self)))
        case 0xCB: return Double(bitPattern: try fixed(UInt64.self))
        case 0xCF: return Double(try fixed(UInt64.self))
        default: break
        }
        guard let int = try intIfPresent() else { throw mismatch("a number") }
        return Double(int)
    }

    // MARK: Strings and bytes

    /// Reads a string without copying it. A maximum of nil means no limit.
    /// - Throws: `PayloadError`, also for invalid UTF-8.
    package mutating func readText(
        maxUTF16: Int? = nil,
        maxBytes: Int? = nil
    ) throws(PayloadError) -> Text {
        let range = try validString(maxUTF16: maxUTF16, maxBytes: maxBytes)
        return Text(unchecked: Bytes(owner, range: range))
    }

    /// Reads a string. A maximum of nil means no limit.
    /// - Throws: `PayloadError`, also for invalid UTF-8.
    package mutating func readString(maxBytes: Int? = nil) throws(PayloadError) -> String {
        let range = try validString(maxUTF16: nil, maxBytes: maxBytes)
        return String(
            decoding: UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count),
            as: UTF8.self
        )
    }

    /// Reads a binary value, or the bytes of a string, without copying them. A maximum of nil means
    /// no limit.
    package mutating func readBytes(maxBytes: Int? = nil) throws(PayloadError) -> Bytes {
        guard position < end else { throw truncated() }
        let range: Range<Int>
        switch byte(at: position) {
        case 0xC4: range = try run(header: 2, length: Int(try peek(UInt8.self)))
        case 0xC5: range = try run(header: 3, length: Int(try peek(UInt16.self)))
        case 0xC6: range = try run(header: 5, length: Int(try peek(UInt32.self)))
        default:
            guard let string = try stringRange() else { throw mismatch("bytes") }
            range = string
        }
        if let maxBytes, range.count > maxBytes {
            throw .tooManyBytes(range.count, limit: maxBytes)
        }
        return Bytes(owner, range: range)
    }

    /// Reads a value and returns it with its encoded bytes.
    ///
    /// Skipped strings must be UTF-8 here, because the bytes are forwarded to peers that require
    /// UTF-8.
    package mutating func readKeepingBytes<Value>(
        _ body: (inout MessagePackReader) throws(PayloadError) -> Value
    ) throws(PayloadError) -> (value: Value, bytes: Bytes) {
        let before = position
        let checked = checksSkippedText
        checksSkippedText = true
        let value = try body(&self)
        checksSkippedText = checked
        return (value, Bytes(owner, range: before..<position))
    }

    private mutating func validString(
        maxUTF16: Int?,
        maxBytes: Int?
    ) throws(PayloadError) -> Range<Int> {
        guard position < end else { throw truncated() }
        guard let range = try stringRange() else { throw mismatch("a string") }
        if let maxBytes, range.count > maxBytes {
            throw .tooManyBytes(range.count, limit: maxBytes)
        }
        let bytes = UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count)
        guard let units = UTF8Scan.utf16Count(validating: bytes) else { throw Self.notUTF8() }
        if let maxUTF16, units > maxUTF16 {
            throw .tooManyUnits(units, limit: maxUTF16)
        }
        return range
    }

    // MARK: Bytes under the cursor

    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        base.load(fromByteOffset: offset, as: UInt8.self)
    }

    /// Returns the big-endian number after the first byte of a value.
    @inline(__always)
    private func peek<Number: FixedWidthInteger & BitwiseCopyable>(
        _ type: Number.Type
    ) throws(PayloadError) -> Number {
        guard end &- position > MemoryLayout<Number>.size else { throw truncated() }
        return Number(
            bigEndian: base.loadUnaligned(fromByteOffset: position &+ 1, as: Number.self)
        )
    }

    /// Reads a value that consists of a first byte and a big-endian number.
    @inline(__always)
    private mutating func fixed<Number: FixedWidthInteger & BitwiseCopyable>(
        _ type: Number.Type
    ) throws(PayloadError) -> Number {
        let number = try peek(type)
        position &+= 1 &+ MemoryLayout<Number>.size
        return number
    }

    /// Skips a header and the `length` bytes after the header. Returns the range of these bytes.
    @inline(__always)
    private mutating func run(header: Int, length: Int) throws(PayloadError) -> Range<Int> {
        let first = position &+ header
        guard length <= end &- first else { throw truncated() }
        position = first &+ length
        return Range(uncheckedBounds: (first, position))
    }

    /// Skips a string and returns the range of its bytes; nil for other values. The cursor must not
    /// be at the end.
    @inline(__always)
    private mutating func stringRange() throws(PayloadError) -> Range<Int>? {
        let first = byte(at: position)
        if first & 0xE0 == 0xA0 { return try run(header: 1, length: Int(first & 0x1F)) }
        switch first {
        case 0xD9: return try run(header: 2, length: Int(try peek(UInt8.self)))
        case 0xDA: return try run(header: 3, length: Int(try peek(UInt16.self)))
        case 0xDB: return try run(header: 5, length: Int(try peek(UInt32.self)))
        default: return nil
        }
    }

    /// Reads an integer that fits `Int64`; nil for other values. The cursor must not be at the end.
    @inline(__always)
    private mutating func intIfPresent() throws(PayloadError) -> Int64? {
        let first = byte(at: position)
        switch first {
        case 0x00...0x7F, 0xE0...0xFF:
            position &+= 1
            return Int64(Int8(bitPattern: first))
        case 0xCC: return Int64(try fixed(UInt8.self))
        case 0xCD: return Int64(try fixed(UInt16.self))
        case 0xCE: return Int64(try fixed(UInt32.self))
        case 0xCF:
            let number = try peek(UInt64.self)
            guard let int = Int64(exactly: number) else { return nil }
            position &+= 9
            return int
        case 0xD0: return Int64(try fixed(Int8.self))
        case 0xD1: return Int64(try fixed(Int16.self))
        case 0xD2: return Int64(try fixed(Int32.self))
        case 0xD3: return try fixed(Int64.self)
        default: return nil
        }
    }

    /// Parses a string of digits with an optional minus sign.
    private func decimal(in range: Range<Int>) -> Int64? {
        var index = range.lowerBound
        let isNegative = index < range.upperBound && byte(at: index) == UInt8(ascii: "-")
        if isNegative { index &+= 1 }
        // 19 digits suffice for every `Int64`.
        guard range.upperBound &- index >= 1, range.upperBound &- index <= 19 else { return nil }
        var number: Int64 = 0
        while index < range.upperBound {
            let digit = Int64(byte(at: index)) &- Int64(UInt8(ascii: "0"))
            guard digit >= 0, digit <= 9 else { return nil }
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            // The magnitude of `Int64.min` exceeds `Int64.max`. The number is therefore computed as
            // a negative number.
            let (sum, overflow2) = tens.subtractingReportingOverflow(digit)
            guard !overflow, !overflow2 else { return nil }
            number = sum
            index &+= 1
        }
        if isNegative { return number }
        return number == .min ? nil : -number
    }

    /// Enters the next value if it is an extension of type 1, which contains MessagePack. Such an
    /// extension must end at the end of the input.
    mutating func unwrapExtension() throws(PayloadError) {
        guard position < end else { return }
        let header: Int
        let length: Int
        switch byte(at: position) {
        case 0xC7: (header, length) = (3, Int(try peek(UInt8.self)))
        case 0xC8: (header, length) = (4, Int(try peek(UInt16.self)))
        case 0xC9: (header, length) = (6, Int(try peek(UInt32.self)))
        case 0xD4...0xD8: (header, length) = (2, 1 << Int(byte(at: position) &- 0xD4))
        default: return
        }
        guard end &- position >= header else { throw truncated() }
        guard byte(at: position &+ header &- 1) == 1 else { return }
        let content = try run(header: header, length: length)
        guard position == end else { throw trailing() }
        position = content.lowerBound
    }

    // MARK: Errors, made out of line

    @inline(never)
    func truncated() -> PayloadError { Self.truncated(after: end - start) }

    private static func truncated(after count: Int) -> PayloadError {
        PayloadError(reason: count == 1 ? "ends after 1 byte" : "ends after \(count) bytes")
    }

    @inline(never)
    private func trailing() -> PayloadError {
        let count = end - position
        return PayloadError(
            reason: count == 1 ? "1 byte after the payload" : "\(count) bytes after the payload"
        )
    }

    /// Returns the error for a missing value, or for a value whose type is not `expected`.
    @inline(never)
    private func mismatch(_ expected: StaticString) -> PayloadError {
        guard let kind else { return truncated() }
        return PayloadError(
            reason: "expected \(expected), found \(kind.description)"
        )
    }

    @inline(never)
    private static func aboveInt64() -> PayloadError {
        PayloadError(reason: "an integer above \(Int64.max)")
    }

    @inline(never)
    private static func notAnID() -> PayloadError {
        PayloadError(reason: "expected an id, found a string that is not one")
    }

    @inline(never)
    static func notUTF8() -> PayloadError { PayloadError(reason: "not valid UTF-8") }

    @inline(never)
    func tooDeep() -> PayloadError {
        PayloadError(reason: "nested deeper than \(limits.maxDepth)")
    }

    @inline(never)
    func tooManyElements() -> PayloadError {
        PayloadError(reason: "more than \(limits.maxElements) elements")
    }
}
