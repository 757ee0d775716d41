/// The meaning of a stretch of a message's text; `Theme` defines its look.
package struct TextTraits: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let bold = TextTraits(rawValue: 1 << 0)
    package static let italic = TextTraits(rawValue: 1 << 1)
    package static let underline = TextTraits(rawValue: 1 << 2)
    package static let strikethrough = TextTraits(rawValue: 1 << 3)
    package static let monospace = TextTraits(rawValue: 1 << 4)
    package static let quote = TextTraits(rawValue: 1 << 5)
    package static let mention = TextTraits(rawValue: 1 << 6)
    package static let link = TextTraits(rawValue: 1 << 7)
    /// The number in brackets that `TextLayout` adds after a link.
    static let linkNumber = TextTraits(rawValue: 1 << 8)
    /// A search match.
    package static let match = TextTraits(rawValue: 1 << 9)
}

/// The traits of a range of a text. Ranges may overlap. The part of a range that is outside the
/// text is ignored.
package struct TextSpan: Hashable, Sendable {
    /// The range in UTF-16 code units from the beginning of the text, as in the protocol.
    package var range: Range<Int>
    var traits: TextTraits
    /// The target of a link.
    package var address: String?

    package init(_ range: Range<Int>, _ traits: TextTraits, address: String? = nil) {
        self.range = range
        self.traits = traits
        self.address = address
    }
}
