/// The characters that are mirrored in right-to-left text (rule L4 of UAX #9). Some of them are
/// brackets (rule BD14).
package enum BidiMirroring {
    package enum Bracket: Equatable {
        /// An opening bracket, with its closing bracket.
        case opening(Unicode.Scalar)
        case closing(Unicode.Scalar)
    }

    /// Returns the mirror image of a character, or the character itself if it has none.
    static func mirrored(_ character: Character) -> Character {
        let scalars = character.unicodeScalars
        guard let first = scalars.first, let image = images[first] else { return character }
        var mirrored = String.UnicodeScalarView([image])
        mirrored.append(contentsOf: scalars.dropFirst())
        let text = String(mirrored)
        return text.count == 1 ? Character(text) : character
    }

    /// Returns the kind of a bracket; nil if the scalar is not a bracket. Canonically equivalent
    /// brackets are treated as equal.
    static func bracket(_ scalar: Unicode.Scalar) -> Bracket? {
        switch scalar {
        case "\u{2329}": .opening("\u{3009}")
        case "\u{232A}": .closing("\u{3009}")
        default: brackets[scalar]
        }
    }

    private static let bracketPairs: [Unicode.Scalar] =
        Array(
            "()[]{}\u{F3A}\u{F3B}\u{F3C}\u{F3D}\u{169B}\u{169C}⁅⁆⁽⁾₍₎⌈⌉⌊⌋❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟪⟫⟬⟭⟮⟯"
                .unicodeScalars
        )
        + Array(
            "⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦐⦏⦎⦑⦒⦓⦔⦕⦖⦗⦘⧘⧙⧚⧛⧼⧽⸢⸣⸤⸥⸦⸧⸨⸩⹕⹖⹗⹘⹙⹚⹛⹜〈〉《》「」『』【】〔〕〖〗〘〙〚〛﹙﹚﹛﹜﹝﹞（）［］｛｝｟｠｢｣"
                .unicodeScalars
        )

    private static let otherPairs = Array(
        "<>«»‹›≤≥≦≧≨≩≪≫≮≯≰≱≲≳≴≵≶≷≸≹≺≻≼≽≾≿⊀⊁⊂⊃⊄⊅⊆⊇⊈⊉⊊⊋⊏⊐⊑⊒∈∋∉∌∊∍⋖⋗⋘⋙⋚⋛⟕⟖⸂⸃⸄⸅⸉⸊⸌⸍⸜⸝⸠⸡＜＞"
            .unicodeScalars
    )

    private static let images = pairs(bracketPairs + otherPairs).reduce(
        into: ["\u{2329}": "\u{232A}", "\u{232A}": "\u{2329}"] as [Unicode.Scalar: Unicode.Scalar]
    ) {
        $0[$1.0] = $1.1
        $0[$1.1] = $1.0
    }

    private static let brackets = pairs(bracketPairs).reduce(into: [Unicode.Scalar: Bracket]()) {
        $0[$1.0] = .opening($1.1)
        $0[$1.1] = .closing($1.1)
    }

    private static func pairs(_ scalars: [Unicode.Scalar]) -> [(Unicode.Scalar, Unicode.Scalar)] {
        stride(from: 0, to: scalars.count - 1, by: 2).map { (scalars[$0], scalars[$0 + 1]) }
    }
}
