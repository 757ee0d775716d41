/// The places where lines may break: the part of UAX #14 that messages need.
package enum LineBreaking {
    /// Returns whether the cluster is white space at which a line may break. Such white space may
    /// extend beyond the end of the line.
    static func isSpace(_ cluster: Character) -> Bool {
        guard cluster.isWhitespace else { return false }
        return cluster != "\u{A0}" && cluster != "\u{2007}" && cluster != "\u{202F}"
    }

    /// - Parameter following: The cluster before `last`; nil if `last` is the first cluster.
    static func isAllowed(
        after last: Character,
        before next: Character,
        following: Character?
    ) -> Bool {
        if isSpace(next) { return false }
        if isSpace(last) || last == "\u{200B}" { return true }
        if last.isASCII, next.isASCII {
            switch last {
            case "-": return following?.isLetter == true && next.isLetter
            case "/": return following?.isASCII == true && (next.isLetter || next.isNumber)
            default: return false
            }
        }
        if neverLast.contains(last) || neverFirst.contains(next) { return false }
        switch last {
        case "‐", "–", "—": return following.map { !isSpace($0) } == true && next.isLetter
        default: return isIdeographic(last) || isIdeographic(next)
        }
    }

    /// Returns whether a line may break before and after the cluster, as at ideographs, syllables
    /// and emoji.
    private static func isIdeographic(_ cluster: Character) -> Bool {
        guard let first = cluster.unicodeScalars.first else { return false }
        switch first.value {
        case 0x2E80..<0x3000, 0x3003..<0x3008, 0x3012..<0x3014, 0x3020..<0x3030: return true
        case 0x3041..<0x3250, 0x3400..<0x4DC0, 0x4E00..<0xA4D0, 0xAC00..<0xD7A4: return true
        case 0xF900..<0xFB00, 0xFF10..<0xFF1A, 0xFF21..<0xFF3B, 0xFF41..<0xFF5B: return true
        case 0xFF66..<0xFFA0, 0x2_0000..<0x3_FFFE: return true
        case ..<0x2190: return false
        default:
            return first.properties.isEmojiPresentation
                || (first.properties.isEmoji && cluster.unicodeScalars.contains("\u{FE0F}"))
        }
    }

    private static let neverFirst: Set<Character> = Set(
        "、。，．・：；？！」』】〕〗〙〛）］｝〉》”’…‥ーゝゞヽヾ々〻ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ％)]}!?,.:;»›%"
    )

    private static let neverLast: Set<Character> = Set("「『【〔〖〘〚（［｛〈《“‘([{«‹＄￥£$#@")
}
