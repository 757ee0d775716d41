package import TambourProtocol

/// How search takes texts apart: words of letters and digits, in lower case, with `е` for `ё`.
///
/// Everything between letters and digits ends a word. Accents that stand as characters of their own
/// are left out, but for the one that makes `й`; so the two ways to write it are one word. Of a long
/// word the first bytes count.
/// Messages, names and queries all go through here, so both databases find the same.
/// Words of the index are stored: who changes what a word is has to have the index built again.
package enum SearchWords {
    /// Longest word, UTF-8 bytes: 32 Russian letters.
    package static let maxWordBytes = 64

    /// Calls `body` with one word after the other until it returns false.
    ///
    /// - Parameters:
    ///   - utf8: Valid UTF-8; what is not ends a word.
    ///   - word: Where the words are put together, one at a time.
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

    /// The words of a text, each once.
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

    /// A letter of U+0400 to U+045F in lower case; nil for what else these bytes can say.
    private static func cyrillic(_ code: UInt32) -> UInt32? {
        switch code {
        case 0x401, 0x451: 0x435
        case 0x400...0x40f: code + 0x50
        case 0x410...0x42f: code + 0x20
        case 0x430...0x45f: code
        default: nil
        }
    }

    /// - Returns: false when the character is no part of a word.
    private static func add(_ scalar: Unicode.Scalar, to word: inout [UInt8]) -> Bool {
        switch scalar.value {
        case 0x300...0x36f:
            // `и` with a breve is `й`.
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
            // A soft hyphen and its like are not seen.
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

    /// The character at `index` and its length; what is broken is one byte of U+FFFD.
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

/// What is looked for: words of which each must begin one of a text.
package struct SearchQuery: Sendable {
    /// In the order in which they were asked, each once.
    package let words: [[UInt8]]
    /// Those that have to be looked for, in the order of their bytes: none begins another, because
    /// whatever begins with the longer one begins with the shorter one too.
    private let sought: [[UInt8]]

    /// Nil when there is no letter and no digit in it: then nothing is found.
    ///
    /// - Parameter maxWords: how many words count; the others are not looked for.
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

    /// The longest words first: they are in the fewest texts, as a rule.
    var rarestFirst: [[UInt8]] { sought.sorted { $0.count > $1.count } }

    package func matches(_ texts: Text...) -> Bool {
        var match = Match(self)
        for text in texts { text.bytes.withUnsafeBytes { match.read($0) } }
        return match.isComplete
    }

    /// Which words were met; kept between texts, because looking must not allocate.
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

        /// Begins with another message.
        mutating func restart() {
            guard count < words.count else { return }
            for index in missing.indices { missing[index] = true }
            count = words.count
        }

        mutating func read(_ utf8: UnsafeRawBufferPointer) {
            guard count > 0 else { return }
            // Copies of the fields: the closure may not touch `self` while `word` is lent.
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
    /// The index of the one that begins a word; of a sorted list in which none begins another.
    ///
    /// It is the last one that is not after the word: whatever stands between it and the word would
    /// begin with it.
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
