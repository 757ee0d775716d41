/// Scans UTF-8 without creating a `String`.
enum UTF8Scan {
    private static let lowestBits: UInt64 = 0x0101_0101_0101_0101
    private static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// Returns the length in UTF-16 code units, or nil if the bytes are not valid UTF-8.
    ///
    /// Invalid are overlong forms, surrogates, code points above U+10FFFF, and unexpected or
    /// missing continuation bytes (The Unicode Standard, table 3-7).
    static func utf16Count(validating bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress else { return 0 }
        let end = bytes.count
        var index = 0
        var units = 0

        while index < end {
            let first = base.load(fromByteOffset: index, as: UInt8.self)
            let left = end &- index
            if first < 0x80 {
                if left >= 8,
                    base.loadUnaligned(fromByteOffset: index, as: UInt64.self) & highBits == 0
                {
                    index &+= 8
                    units &+= 8
                } else {
                    index &+= 1
                    units &+= 1
                }
                continue
            }
            if first < 0xE0 {
                // Checks four Cyrillic, Greek, Hebrew or Arabic letters at once. Sequences with the
                // lead bytes D0..DF are never overlong.
                if left >= 8,
                    isFourPairs(base.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                {
                    index &+= 8
                    units &+= 4
                    continue
                }
                guard first >= 0xC2, left >= 2, isContinuation(base, index &+ 1) else { return nil }
                index &+= 2
                units &+= 1
                continue
            }
            guard left >= 3, isContinuation(base, index &+ 2) else { return nil }
            let second = base.load(fromByteOffset: index &+ 1, as: UInt8.self)
            if first < 0xF0 {
                // E0 followed by 80..9F is an overlong form. ED followed by A0..BF is a surrogate.
                let low: UInt8 = first == 0xE0 ? 0xA0 : 0x80
                let high: UInt8 = first == 0xED ? 0x9F : 0xBF
                guard second >= low, second <= high else { return nil }
                index &+= 3
                units &+= 1
                continue
            }
            // F0 followed by 80..8F is an overlong form. F4 followed by 90 or more is beyond
            // U+10FFFF.
            let low: UInt8 = first == 0xF0 ? 0x90 : 0x80
            let high: UInt8 = first == 0xF4 ? 0x8F : 0xBF
            guard first <= 0xF4, left >= 4, second >= low, second <= high,
                isContinuation(base, index &+ 3)
            else { return nil }
            index &+= 4
            units &+= 2
        }
        return units
    }

    /// Returns the length in UTF-16 code units of valid UTF-8.
    static func utf16Count(ofValid bytes: UnsafeRawBufferPointer) -> Int {
        guard let base = bytes.baseAddress else { return 0 }
        // A character of four bytes counts as two units, any other character as one.
        var index = 0
        var units = 0
        while bytes.count &- index >= 8 {
            let word = base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let continuations = (word >> 7) & ~(word >> 6) & lowestBits
            let leadsOfFour = (word >> 7) & (word >> 6) & (word >> 5) & (word >> 4) & lowestBits
            units &+= 8 &- continuations.nonzeroBitCount &+ leadsOfFour.nonzeroBitCount
            index &+= 8
        }
        while index < bytes.count {
            let byte = base.load(fromByteOffset: index, as: UInt8.self)
            if byte & 0xC0 != 0x80 { units &+= 1 }
            if byte >= 0xF0 { units &+= 1 }
            index &+= 1
        }
        return units
    }

    /// Returns whether eight bytes are four pairs of a lead byte D0..DF and a continuation byte.
    @inline(__always)
    private static func isFourPairs(_ word: UInt64) -> Bool {
        UInt64(littleEndian: word) & 0xC0F0_C0F0_C0F0_C0F0 == 0x80D0_80D0_80D0_80D0
    }

    @inline(__always)
    private static func isContinuation(_ base: UnsafeRawPointer, _ index: Int) -> Bool {
        base.load(fromByteOffset: index, as: UInt8.self) & 0xC0 == 0x80
    }
}
