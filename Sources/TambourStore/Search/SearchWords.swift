package import TambourProtocol

/// Splits texts into words for search. A word consists of letters and digits, in lower case, and
/// with `е` instead of `ё`.
///
/// Any other character ends a word. Combining accents are omitted. The exception is the breve of
/// `й`: both encodings of `й` give the same word. Of a long word, only the first `maxWordBytes`
/// bytes count.
///
/// Messages, names and queries all use this code. SQLite and PostgreSQL therefore find the same
/// results. The index contains these words. If these rules change, the index must be built again.
package enum SearchWords {
    /// The maximum length of a word in bytes of UTF-8. This is 32 Russian letters.
    package static let maxWordBytes = 64

    /// Calls `body` with each word in turn until it returns false.
    ///
    /// - Parameters:
    ///   - utf8: Valid UTF-8; an invalid byte ends a word.
    ///   - word: The buffer in which each word is built.
    package static func scan(
        _ utf8: UnsafeRawBufferPointer,
        into word: inout [UInt8],
        _ body: ([UInt8]) -> Bool
    ) {
        word.removeAll(keepingCapacity: true)
        var index = 0
        while index < utf8.count {
            let byte = utf8[index]
            if byte < 0x80 {
                index += 1
                switch byte {
                case 0x30...0x39, 0x61...0x7a: append(byte, to: &word)
                case 0x41...0x5a: append(byte | 0x20, to: &word)
                default:
                    if !word.isEmpty {
                        guard body(word) else { return }
                        word.removeAll(keepingCapacity: true)
                    }
                }
                continue
            }
            if byte == 0xd0 || byte == 0xd1, index + 1 < utf8.count {
                let code = UInt32(byte & 0x1f) << 6 | UInt32(utf8[index + 1] & 0x3f)
                if let letter = cyrillic(code) {
                    index += 2
                    append(UInt8(0xc0 | letter >> 6), UInt8(0x80 | letter & 0x3f), to: &word)
                    continue
                }
            }
            let (scalar, length) = decode(utf8, at: index)
            index += length
            guard !add(scalar, to: &word), !word.isEmpty else { continue }
            guard body(word) else { return }
            word.removeAll(keepingCapacity: true)
        }
        if !word.isEmpty { _ = body(word) }
    }

    /// Returns the distinct words of a text.
    package static func words(of text: Text) -> Set<[UInt8]> {
        var words: Set<[UInt8]> = []
        collect(text, into: &words)
        return words
    }

    static func collect(_ text: Text, into words: inout Set<[UInt8]>) {
        var word: [UInt8] = []
        text.bytes.withUnsafeBytes { utf8 in
            scan(utf8, into: &word) {
                words.insert($0)
                return true
            }
        }
    }

    /// Returns the lower case of a letter from U+0400 to U+045F; nil for any other character of two
    /// bytes.
    private static func cyrillic(_ code: UInt32) -> UInt32? {
        switch code {
        case 0x401, 0x451: 0x435
        case 0x400...0x40f: code + 0x50
        case 0x410...0x42f: code + 0x20
        case 0x430...0x45f: code
        default: nil
        }
    }

    /// - Returns: false if the character is not part of a word.
    private static func add(_ scalar: Unicode.Scalar, to word: inout [UInt8]) -> Bool {
        switch scalar.value {
        case 0x300...0x36f:
            // `и` followed by a combining breve is `й`.
            if scalar.value == 0x306, word.suffix(2) == [0xd0, 0xb8] {
                word[word.count - 1] = 0xb9
            }
            return true
        default: break
        }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .nonspacingMark, .spacingMark, .decimalNumber, .letterNumber, .otherNumber:
            for lower in scalar.properties.lowercaseMapping.unicodeScalars
            where !(0x300...0x36f).contains(lower.value) {
                let bytes = Array(String(lower).utf8)
                if word.count + bytes.count <= maxWordBytes { word += bytes }
            }
            return true
        case .format:
            // A soft hyphen and similar characters are invisible and do not end a word.
            return true
        default:
            return false
        }
    }

    private static func append(_ byte: UInt8, to word: inout [UInt8]) {
        if word.count < maxWordBytes { word.append(byte) }
    }

    private static func append(_ first: UInt8, _ second: UInt8, to word: inout [UInt8]) {
        if word.count + 2 <= maxWordBytes {
            word.append(first)
            word.append(second)
        }
    }

    /// Returns the character at `index` and its length in bytes. For an invalid byte, returns
    /// U+FFFD and the length 1.
    private static func decode(
        _ utf8: UnsafeRawBufferPointer,
        at index: Int
    ) -> (Unicode.Scalar, Int) {
        let lead = utf8[index]
        let length =
            switch lead {
            case 0xc2...0xdf: 2
            case 0xe0...0xef: 3
            case 0xf0...0xf4: 4
            default: 1
            }
        guard length > 1, index + length <= utf8.count else { return ("\u{FFFD}", 1) }
        var value = UInt32(lead) & (0xff >> UInt32(length + 1))
        for offset in 1..<length {
            value = value << 6 | UInt32(utf8[index + offset] & 0x3f)
        }
        return (Unicode.Scalar(value) ?? "\u{FFFD}", length)
    }
}

/// A search query. A text matches if every word of the query is the prefix of a word in the text.
package struct SearchQuery: Sendable {
    /// The distinct words in the order of the query.
    package let words: [[UInt8]]
    /// The words to search for, in the order of their bytes. If a query word is a prefix of another
    /// query word, the shorter word is omitted. Each word of a text that starts with the longer
    /// word also starts with the shorter word.
    private let sought: [[UInt8]]

    /// Creates a query from a text. Returns nil if the text contains no letters or digits; such a
    /// query has no results.
    ///
    /// - Parameter maxWords: the maximum number of words; further words are ignored.
    package init?(_ text: Text, maxWords: Int = 32) {
        var words: [[UInt8]] = []
        var word: [UInt8] = []
        text.bytes.withUnsafeBytes { utf8 in
            SearchWords.scan(utf8, into: &word) {
                if !words.contains($0) { words.append($0) }
                return words.count < maxWords
            }
        }
        guard !words.isEmpty else { return nil }
        self.words = words
        let sorted = words.sorted { $0.lexicographicallyPrecedes($1) }
        sought = zip(sorted, sorted.dropFirst() + [[]]).filter { !$1.starts(with: $0) }.map { $0.0 }
    }

    /// The words to search for. The longest word comes first, because long words usually occur in
    /// the fewest texts.
    var rarestFirst: [[UInt8]] { sought.sorted { $0.count > $1.count } }

    package func matches(_ texts: Text...) -> Bool {
        var match = Match(self)
        for text in texts { text.bytes.withUnsafeBytes { match.read($0) } }
        return match.isComplete
    }

    /// The words of a query that have been found so far. The value is reused for many texts,
    /// because matching must not allocate memory.
    struct Match {
        private let words: [[UInt8]]
        private var missing: [Bool]
        private var count: Int
        private var word: [UInt8] = []

        init(_ query: SearchQuery) {
            words = query.sought
            missing = Array(repeating: true, count: words.count)
            count = words.count
            word.reserveCapacity(SearchWords.maxWordBytes)
        }

        var isComplete: Bool { count == 0 }

        /// Forgets the words found so far. Call this function before another message.
        mutating func restart() {
            guard count < words.count else { return }
            for index in missing.indices { missing[index] = true }
            count = words.count
        }

        mutating func read(_ utf8: UnsafeRawBufferPointer) {
            guard count > 0 else { return }
            // Copy the fields, because the closure must not access `self` while `word` is borrowed.
            var (missing, count) = (missing, count)
            SearchWords.scan(utf8, into: &word) { [words] word in
                if let index = words.beginning(of: word), missing[index] {
                    missing[index] = false
                    count -= 1
                }
                return count > 0
            }
            (self.missing, self.count) = (missing, count)
        }
    }
}

extension [[UInt8]] {
    /// Returns the index of the entry that is a prefix of `word`. The list is sorted, and no entry
    /// is a prefix of another entry.
    ///
    /// If the prefix exists, it is the last entry that does not sort after `word`. An entry between
    /// the prefix and `word` would also start with the prefix, and the list contains no such entry.
    fileprivate func beginning(of word: [UInt8]) -> Int? {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if word.lexicographicallyPrecedes(self[middle]) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low > 0 && word.starts(with: self[low - 1]) ? low - 1 : nil
    }
}
