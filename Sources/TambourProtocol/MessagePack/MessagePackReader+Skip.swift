extension MessagePackReader {
    /// Steps over one value of any type, however deep, within the limits of depth and elements.
    package mutating func skip() throws(PayloadError) {
        let children = try stepOver()
        guard let children else { return }
        try enterSkipped(children)
        try skipChildren(of: children)
        depth &-= 1
    }

    /// Steps over what is in a container. Keeps the open ones in a small array, not on the call stack, so depth
    /// costs eight bytes a level whatever the limit is.
    private mutating func skipChildren(of first: Children) throws(PayloadError) {
        guard first.values > 0 else { return }
        // A level takes at least a byte, so a large limit does not make a large array.
        let levels = 1 + min(limits.maxDepth &- depth, end &- position)
        try withUnsafeTemporaryAllocation(of: Int.self, capacity: levels) {
            (left) throws(PayloadError) in
            var level = 0
            left[0] = first.values
            while true {
                if left[level] == 0 {
                    if level == 0 { return }
                    level &-= 1
                    depth &-= 1
                    continue
                }
                left[level] &-= 1
                if let inner = try stepOver() {
                    try enterSkipped(inner)
                    level &+= 1
                    left[level] = inner.values
                }
            }
        }
    }

    /// How much is in a container.
    private struct Children {
        /// Items or entries: what the limit counts.
        var elements: Int
        /// Values to step over: an entry is two.
        var values: Int
    }

    private mutating func enterSkipped(_ children: Children) throws(PayloadError) {
        guard children.values <= end &- position else { throw truncated() }
        depth &+= 1
        guard depth <= limits.maxDepth else { throw tooDeep() }
        elements &+= children.elements
        guard elements <= limits.maxElements else { throw tooManyElements() }
    }

    /// Steps over a value, but only over the header of a container.
    private mutating func stepOver() throws(PayloadError) -> Children? {
        guard position < end else { throw truncated() }
        let first = byte(at: position)
        switch first {
        case 0x00...0x7F, 0xE0...0xFF, 0xC0, 0xC2, 0xC3: try advance(1)
        case 0x80...0x8F: return try container(header: 1, Int(first & 0x0F), values: 2)
        case 0x90...0x9F: return try container(header: 1, Int(first & 0x0F), values: 1)
        case 0xA0...0xBF: try text(header: 1, Int(first & 0x1F))
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
        case 0xD9: try text(header: 2, length(1))
        case 0xDA: try text(header: 3, length(2))
        case 0xDB: try text(header: 5, length(4))
        case 0xDC: return try container(header: 3, length(2), values: 1)
        case 0xDD: return try container(header: 5, length(4), values: 1)
        case 0xDE: return try container(header: 3, length(2), values: 2)
        case 0xDF: return try container(header: 5, length(4), values: 2)
        default: throw PayloadError(reason: "the byte 0xc1 is not MessagePack")
        }
        return nil
    }

    private mutating func advance(_ count: Int) throws(PayloadError) {
        guard count <= end &- position else { throw truncated() }
        position &+= count
    }

    /// The big-endian number of `size` bytes behind the first byte.
    private func length(_ size: Int) throws(PayloadError) -> Int {
        guard size < end &- position else { throw truncated() }
        var number = 0
        for offset in 1...size { number = number << 8 | Int(byte(at: position &+ offset)) }
        return number
    }

    private mutating func container(
        header: Int, _ count: Int, values: Int
    ) throws(PayloadError) -> Children {
        try advance(header)
        return Children(elements: count, values: count &* values)
    }

    private mutating func text(header: Int, _ count: Int) throws(PayloadError) {
        let first = position &+ header
        try advance(header &+ count)
        guard checksSkippedText else { return }
        let bytes = UnsafeRawBufferPointer(start: base + first, count: count)
        guard UTF8Scan.utf16Count(validating: bytes) != nil else { throw Self.notUTF8() }
    }
}
