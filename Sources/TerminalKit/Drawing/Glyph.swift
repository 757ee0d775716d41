/// The display form of one grapheme cluster: text that is safe to print, and its width in columns.
///
/// Text of other users must not control the terminal. A control character becomes its picture
/// (`␛`). Direction controls and other invisible format characters are removed. Unknown scalars
/// become `�`. A combining mark without a base letter gets a dotted circle as its base. It then
/// does not combine with the text before it. `text` never contains a control character.
package struct Glyph: Hashable, Sendable {
    /// One grapheme cluster; meaningless when `width` is zero.
    package let text: Character
    /// The number of columns; zero for an invisible cluster.
    package let width: Int
    /// Whether terminals disagree on the width, as they do for emoji sequences, flags and spacing
    /// marks.
    let isDoubtful: Bool

    package static let space = Glyph(text: " ", width: 1, isDoubtful: false)

    package init(_ cluster: Character) {
        let bytes = cluster.utf8
        if bytes.count == 1, let byte = bytes.first, byte >= 0x20, byte < 0x7F {
            self.init(text: cluster, width: 1, isDoubtful: false)
        } else {
            self = Self.measured(cluster)
        }
    }

    private init(text: Character, width: Int, isDoubtful: Bool) {
        self.text = text
        self.width = width
        self.isDoubtful = isDoubtful
    }

    /// The number of columns in a terminal that adds up the widths of the scalars. Never less than
    /// `width`.
    var widestWidth: Int {
        guard isDoubtful else { return width }
        return max(width, text.unicodeScalars.reduce(0) { $0 + max(0, Width.ofScalar($1)) })
    }

    // MARK: Measuring

    private static let nothing = Glyph(text: " ", width: 0, isDoubtful: false)
    private static let unknown = Glyph(text: "\u{FFFD}", width: 1, isDoubtful: false)

    /// The maximum number of scalars that a glyph keeps. Emoji sequences have at most ten, but a
    /// cluster may have thousands of combining marks.
    private static let maxScalars = 16

    private static func measured(_ cluster: Character) -> Glyph {
        let scalars = cluster.unicodeScalars
        guard let first = scalars.first else { return nothing }
        if let picture = picture(of: first) {
            return Glyph(text: picture, width: 1, isDoubtful: false)
        }
        // Fast path: most non-ASCII clusters are a single ordinary scalar that libc knows.
        let firstWidth = Width.ofScalar(first)
        if firstWidth > 0, first.value < 0x1_0000 ? first.isPlainLetter : first.isIdeograph,
            scalars.index(after: scalars.startIndex) == scalars.endIndex
        {
            return Glyph(text: cluster, width: firstWidth, isDoubtful: false)
        }
        return assembled(from: cluster)
    }

    private static func picture(of scalar: Unicode.Scalar) -> Character? {
        switch scalar.value {
        case 0..<0x20: Unicode.Scalar(0x2400 + scalar.value).map { Character($0) }
        case 0x7F: "\u{2421}"
        case 0x80..<0xA0: "\u{B7}"
        case 0x2028, 0x2029: "\u{2424}"
        default: nil
        }
    }

    private static func assembled(from cluster: Character) -> Glyph {
        var kept = String.UnicodeScalarView()
        var columns = 0
        var wideScalars = 0
        var isDoubtful = false
        var isEmojiSequence = false
        var count = 0
        for scalar in cluster.unicodeScalars {
            let properties = scalar.properties
            var width = Width.ofScalar(scalar)
            if width < 0 {
                guard let known = self.width(ofUnknownToLibc: properties) else { return unknown }
                width = known
                isDoubtful = true
            }
            let category = properties.generalCategory
            if kept.isEmpty, isInvisible(properties, category, width: width) { continue }
            if kept.isEmpty, width == 0 {
                kept.append("\u{25CC}")
                columns = 1
                wideScalars = 1
            }
            count += 1
            if count > maxScalars { break }
            kept.append(scalar)
            columns += width
            if width > 0 { wideScalars += 1 }
            // Some terminals draw an emoji in text style in one column.
            if scalar == "\u{FE0E}" { isDoubtful = true }
            if makesEmoji(scalar, at: count, after: kept.first), columns <= 2 || count == 2 {
                isEmojiSequence = true
            }
        }
        guard let last = kept.last, let first = kept.first else { return nothing }
        let text = String(kept)
        // After scalars are removed or a base is added, the text may form more than one cluster.
        guard text.dropFirst().isEmpty else { return unknown }
        isDoubtful =
            isDoubtful || isEmojiSequence || wideScalars > 1 || last.clingsToFollower
            || first.clingsToPredecessor || first.properties.isDefaultIgnorableCodePoint
        return Glyph(
            text: Character(text),
            width: isEmojiSequence ? 2 : max(1, columns),
            isDoubtful: isDoubtful
        )
    }

    /// Returns whether `scalar`, which is number `count` in its cluster, turns the cluster into an
    /// emoji of two columns. The widths of the scalars do not matter then.
    private static func makesEmoji(
        _ scalar: Unicode.Scalar,
        at count: Int,
        after first: Unicode.Scalar?
    ) -> Bool {
        guard let first, first.properties.isEmoji else { return false }
        return switch scalar.value {
        case 0xFE0F, 0x1F3FB...0x1F3FF, 0x1F1E6...0x1F1FF: count == 2
        case 0x200D: count > 1
        default: false
        }
    }

    /// Returns whether a scalar is invisible. Format characters and default-ignorable characters
    /// are invisible if they have no width. Characters that are both are always invisible. Hangul
    /// fillers have a width and stay.
    private static func isInvisible(
        _ properties: Unicode.Scalar.Properties,
        _ category: Unicode.GeneralCategory,
        width: Int
    ) -> Bool {
        if category == .format { return width == 0 || properties.isDefaultIgnorableCodePoint }
        return properties.isDefaultIgnorableCodePoint && width == 0
    }

    /// Returns the columns of a scalar that is missing in libc's tables but known to the standard
    /// library; nil if both do not know the scalar.
    private static func width(
        ofUnknownToLibc properties: Unicode.Scalar.Properties
    ) -> Int? {
        switch properties.generalCategory {
        case .unassigned, .control, .surrogate, .lineSeparator, .paragraphSeparator: nil
        case .nonspacingMark, .enclosingMark, .format: 0
        default: properties.isEmojiPresentation ? 2 : 1
        }
    }
}

extension Unicode.Scalar {
    /// Whether the scalar is in a block that contains only letters and punctuation: no combining
    /// characters, invisible characters or emoji.
    fileprivate var isPlainLetter: Bool {
        switch value {
        case 0xA1..<0xA9, 0xAA..<0xAD, 0xAF..<0x300, 0x370..<0x483, 0x48A..<0x530: true
        case 0x5D0..<0x5EB, 0x620..<0x64B: true
        case 0x3041..<0x3097, 0x30A0..<0x3100, 0x4E00..<0xA000, 0xAC00..<0xD7A4: true
        case 0x1E00..<0x2000, 0x2010..<0x2028, 0x2500..<0x25A0: true
        case 0x3001..<0x3021, 0xFF01..<0xFF61: true
        default: false
        }
    }

    fileprivate var isIdeograph: Bool { (0x2_0000..<0x3_FFFE).contains(value) }

    /// Whether the scalar joins the preceding cluster. Examples of such scalars with a width are
    /// spacing marks and skin tones.
    fileprivate var clingsToPredecessor: Bool { ("a" + String(self)).dropFirst().isEmpty }

    /// Whether a terminal that forms clusters may join the following output to this scalar. Such
    /// scalars are joiners, viramas, prepended signs, halves of flags, and conjoining jamo.
    fileprivate var clingsToFollower: Bool {
        switch value {
        case 0x200D, 0x1F1E6...0x1F1FF, 0x1100...0x11FF, 0xA960...0xA97C, 0xD7B0...0xD7FB: true
        case 0x600...0x605, 0x6DD, 0x70F, 0x890...0x891, 0x8E2, 0xD4E: true
        case 0x110BD, 0x110CD, 0x111C2...0x111C3, 0x113D1, 0x1193F, 0x11941, 0x11A3A: true
        case 0x11A84...0x11A89, 0x11D46, 0x11F02: true
        default: properties.canonicalCombiningClass.rawValue == 9
        }
    }
}
