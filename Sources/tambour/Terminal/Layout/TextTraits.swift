/// The meaning of a stretch of a message's text; `Theme` defines its look.
struct TextTraits: OptionSet, Hashable, Sendable {
    let rawValue: UInt16

    static let bold = TextTraits(rawValue: 1 << 0)
    static let italic = TextTraits(rawValue: 1 << 1)
    static let underline = TextTraits(rawValue: 1 << 2)
    static let strikethrough = TextTraits(rawValue: 1 << 3)
    static let monospace = TextTraits(rawValue: 1 << 4)
    static let quote = TextTraits(rawValue: 1 << 5)
    static let mention = TextTraits(rawValue: 1 << 6)
    static let link = TextTraits(rawValue: 1 << 7)
    /// The number in brackets that `TextLayout` puts after a link.
    static let linkNumber = TextTraits(rawValue: 1 << 8)
    /// A search match.
    static let match = TextTraits(rawValue: 1 << 9)
}

/// Traits of a range of a text. Ranges may overlap; what lies outside the text is ignored.
struct TextSpan: Hashable, Sendable {
    /// UTF-16 code units from the beginning, as the protocol counts.
    var range: Range<Int>
    var traits: TextTraits
    /// The target of a link.
    var address: String?

    init(_ range: Range<Int>, _ traits: TextTraits, address: String? = nil) {
        self.range = range
        self.traits = traits
        self.address = address
    }
}
