/// A text folded for searching: differences of case, accents and variant forms of letters are
/// removed.
package struct FoldedText: Hashable, Sendable {
    package let text: String
    /// The folded text.
    package let scalars: [Unicode.Scalar]
    /// For each folded scalar, the index of its cluster in `text`.
    package let clusters: [Int]
    /// For each folded scalar, whether it begins a word.
    package let wordStarts: [Bool]

    package init(_ text: String) {
        self.text = text
        var scalars: [Unicode.Scalar] = []
        var clusters: [Int] = []
        var wordStarts: [Bool] = []
        var last: Character?
        for (index, cluster) in text.enumerated() {
            let startsWord = Self.isWordStart(cluster, after: last)
            for (position, scalar) in Self.folded(cluster).enumerated() {
                scalars.append(scalar)
                clusters.append(index)
                wordStarts.append(startsWord && position == 0)
            }
            last = cluster
        }
        self.scalars = scalars
        self.clusters = clusters
        self.wordStarts = wordStarts
    }

    private static func isWordStart(_ cluster: Character, after last: Character?) -> Bool {
        guard cluster.isLetter || cluster.isNumber else { return false }
        guard let last else { return true }
        if !last.isLetter, !last.isNumber { return true }
        return (last.isLowercase && cluster.isUppercase) || (last.isLetter != cluster.isLetter)
    }

    private static func folded(_ cluster: Character) -> [Unicode.Scalar] {
        cluster.lowercased().unicodeScalars.flatMap { scalar -> [Unicode.Scalar] in
            if scalar.value < 0x80 { return [scalar] }
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format: return []
            default: return base(of: scalar)
            }
        }
    }

    /// Returns the base letters of a letter with diacritics or of a ligature. Returns any other
    /// scalar itself.
    private static func base(of scalar: Unicode.Scalar) -> [Unicode.Scalar] {
        if let known = letters[scalar] { return Array(known.unicodeScalars) }
        switch scalar.value {
        case 0xC0..<0x250, 0x1E00..<0x1F00: return latinBase(of: scalar) ?? [scalar]
        case 0x370..<0x400, 0x1F00..<0x2000: return [greekBase(of: scalar) ?? scalar]
        default: return [scalar]
        }
    }

    /// Derives the base letter from the scalar's name, such as "LATIN SMALL LETTER E WITH ACUTE",
    /// because the standard library exposes no decompositions.
    private static func latinBase(of scalar: Unicode.Scalar) -> [Unicode.Scalar]? {
        guard let name = scalar.properties.name, name.hasPrefix("LATIN SMALL L") else { return nil }
        let words = name.split(separator: " ")
        guard words.count > 3, words[3].utf8.count == 1, words.count == 4 || words[4] == "WITH"
        else { return nil }
        return Array(words[3].lowercased().unicodeScalars)
    }

    private static func greekBase(of scalar: Unicode.Scalar) -> Unicode.Scalar? {
        guard let words = scalar.properties.name?.split(separator: " "), words.count > 3 else {
            return nil
        }
        return greek[words.prefix(4).joined(separator: " ")]
    }

    private static let greek = (0x3B1...0x3C9).reduce(into: [String: Unicode.Scalar]()) {
        if let scalar = Unicode.Scalar(UInt32($1)), let name = scalar.properties.name {
            $0[name] = scalar
        }
    }

    private static let letters: [Unicode.Scalar: String] = [
        "ß": "ss", "æ": "ae", "œ": "oe", "ĳ": "ij", "ı": "i", "ſ": "s", "þ": "th",
        "ς": "σ",
        "ё": "е", "й": "и", "ї": "і", "ў": "у", "ѓ": "г", "ќ": "к", "ѐ": "е", "ѝ": "и",
        "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ؤ": "و", "ئ": "ي", "ى": "ي", "ک": "ك", "ی": "ي",
    ]
}
