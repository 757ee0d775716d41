extension MessagePackReader {
    /// Skips one value of any type, within the limits of depth and elements.
    package mutating func skip() throws(PayloadError) {
        let values = try stepInto()
        guard values >= 0 else { return }
        try skipValues(values)
        depth &-= 1
    }

    /// Skips the values in a container. Records the open containers in a small array instead of on
    /// the call stack, so each level costs only eight bytes.
    private mutating func skipValues(_ count: Int) throws(PayloadError) {
        // Each level takes at least one byte of input, so a short input never needs a large array,
        // even under a large limit.
        let levels = 1 + min(limits.maxDepth &- depth, end &- position)
        try withUnsafeTemporaryAllocation(of: Int.self, capacity: levels) {
            (outer) throws(PayloadError) in
            var level = 0
            var left = count
            while true {
                if left == 0 {
                    if level == 0 { return }
                    level &-= 1
                    depth &-= 1
                    left = outer[level]
                    continue
                }
                left &-= 1
                let inner = try stepInto()
                if inner >= 0 {
                    outer[level] = left
                    level &+= 1
                    left = inner
                }
            }
        }
    }

    /// Skips a value, or only the header of a container.
    ///
    /// Returns the number of values in a container; an entry of a map counts as two values. Returns
    /// -1 for a value that is not a container.
    @inline(__always)
    private mutating func stepInto() throws(PayloadError) -> Int {
        guard position < end else { throw truncated() }
        let first = byte(at: position)
        switch first {
        case 0x00...0x7F, 0xE0...0xFF, 0xC0, 0xC2, 0xC3: position &+= 1
        case 0xA0...0xBF: try skipText(header: 1, Int(first & 0x1F))
        case 0x80...0x8F: return try open(header: 1, Int(first & 0x0F), values: 2)
        case 0x90...0x9F: return try open(header: 1, Int(first & 0x0F), values: 1)
        default: return try stepIntoLong(first)
        }
        return -1
    }

    private mutating func stepIntoLong(_ first: UInt8) throws(PayloadError) -> Int {
        switch first {
        case 0xC4: try advance(2 + length(1))
        case 0xC5: try advance(3 + length(2))
        case 0xC6: try advance(5 + length(4))
        case 0xC7: try advance(3 + length(1))
        case 0xC8: try advance(4 + length(2))
        case 0xC9: try advance(6 + length(4))
        case 0xCA, 0xCE, 0xD2: try advance(5)
        case 0xCB, 0xCF, 0xD3: try advance(9)
        case 0xCC, 0xD0: try advance(2)
        case 0xCD, 0xD1: try advance(3)
        case 0xD4...0xD8: try advance(2 + 1 << Int(first &- 0xD4))
        case 0xD9: try skipText(header: 2, length(1))
        case 0xDA: try skipText(header: 3, length(2))
        case 0xDB: try skipText(header: 5, length(4))
        case 0xDC: return try open(header: 3, length(2), values: 1)
        case 0xDD: return try open(header: 5, length(4), values: 1)
        case 0xDE: return try open(header: 3, length(2), values: 2)
        case 0xDF: return try open(header: 5, length(4), values: 2)
        default: throw Self.neverUsed()
        }
        return -1
    }

    /// Enters a container and returns the number of values in it.
    private mutating func open(
        header: Int,
        _ count: Int,
        values: Int
    ) throws(PayloadError) -> Int {
        position &+= header
        try enter(count, bytesAnElement: values)
        return count &* values
    }

    private mutating func skipText(header: Int, _ count: Int) throws(PayloadError) {
        try advance(header &+ count)
        guard checksSkippedText else { return }
        let bytes = UnsafeRawBufferPointer(start: base + position - count, count: count)
        guard UTF8Scan.utf16Count(validating: bytes) != nil else { throw Self.notUTF8() }
    }

    private mutating func advance(_ count: Int) throws(PayloadError) {
        guard count <= end &- position else { throw truncated() }
        position &+= count
    }

    /// Returns the big-endian number of `size` bytes after the first byte.
    private func length(_ size: Int) throws(PayloadError) -> Int {
        guard size < end &- position else { throw truncated() }
        var number = 0
        for offset in 1...size { number = number << 8 | Int(byte(at: position &+ offset)) }
        return number
    }

    @inline(never)
    private static func neverUsed() -> PayloadError {
        PayloadError(reason: "the byte 0xc1 is not MessagePack")
    }
}
