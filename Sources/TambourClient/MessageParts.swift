import TambourProtocol

/// A part of a text, short enough for one message.
public struct MessagePart: Hashable, Sendable {
    public let text: String
    /// The formatting and the mentions in the part.
    public let spans: [MessageSpan]
}

extension Client {
    /// The maximum number of UTF-16 units in one message.
    public static let maxMessageUnits = Limits.standard.maxTextUnits

    /// Whether a text fits into one message.
    public static func fitsMessage(_ text: String) -> Bool {
        // A UTF-16 unit takes at most three bytes in UTF-8, so the text never exceeds
        // `maxTextBytes`.
        text.utf16.count <= maxMessageUnits
    }

    /// Cuts a text into parts that each fit into a message.
    ///
    /// A text that fits is not changed. A longer text is cut after a paragraph, otherwise after a
    /// line, otherwise between words, otherwise between characters. A mention is cut only if it is
    /// longer than `limit`, and is then dropped. White space at the cuts and at the end is removed,
    /// but the indentation of a line stays. No part is empty.
    ///
    /// - Parameters:
    ///   - text: a text of any length.
    ///   - spans: the formatting and the mentions in the text. Each part gets the formatting of its
    ///     text.
    ///   - limit: the maximum number of UTF-16 units in a part, at least 2.
    /// - Returns: the parts in order; none for an empty text, or for a text longer than `limit`
    ///   that contains only white space.
    public static func parts(
        of text: String,
        formatted spans: [MessageSpan] = [],
        limit: Int = maxMessageUnits
    ) -> [MessagePart] {
        guard text.utf16.count > limit else {
            return text.isEmpty ? [] : [MessagePart(text: text, spans: spans)]
        }
        return TextCutter(text, spans, limit).parts()
    }
}

/// Cuts a long text. Indices count characters.
private struct TextCutter {
    private let characters: [Character]
    /// The start of each character and the end of the text, in UTF-16 units.
    private let offsets: [Int]
    private let spans: [MessageSpan]
    private let mentions: [Range<Int>]
    private let limit: Int

    init(_ text: String, _ spans: [MessageSpan], _ limit: Int) {
        // A character with very many combining marks may exceed the limit.
        characters = text.flatMap { character in
            character.utf16.count <= limit
                ? [character] : character.unicodeScalars.map { Character($0) }
        }
        var offset = 0
        offsets =
            characters.map { character in
                defer { offset += character.utf16.count }
                return offset
            } + [text.utf16.count]
        self.spans = spans
        mentions = spans.filter(\.style.isMention).map(\.range)
        self.limit = limit
    }

    func parts() -> [MessagePart] {
        var parts: [MessagePart] = []
        var start = 0
        while start < characters.count {
            let cut = cut(after: start)
            if let part = part(start..<cut) { parts.append(part) }
            start = next(after: cut)
        }
        return parts
    }

    /// Returns the end of the part that begins at `start`.
    private func cut(after start: Int) -> Int {
        guard offsets[characters.count] - offsets[start] > limit else { return characters.count }
        var end = start + 1
        while offsets[end + 1] - offsets[start] <= limit { end += 1 }
        // The cut uses a paragraph or line break only if the part is then at least half full.
        let half = offsets[start] + limit / 2
        var line: Int?
        var word: Int?
        for place in stride(from: end, to: start, by: -1) where isOutsideOfNames(place) {
            let isLong = offsets[place] >= half
            if isLong, isAfterParagraph(place) { return place }
            if isLong, line == nil, characters[place - 1].isNewline { line = place }
            if word == nil, isBetweenWords(place) { word = place }
            if !isLong, line != nil || word != nil { break }
        }
        if let place = line ?? word { return place }
        return stride(from: end, to: start, by: -1).first(where: isOutsideOfNames) ?? end
    }

    private func isAfterParagraph(_ place: Int) -> Bool {
        place > 1 && characters[place - 1].isNewline && characters[place - 2].isNewline
    }

    private func isBetweenWords(_ place: Int) -> Bool {
        characters[place - 1].isBlank || place < characters.count && characters[place].isBlank
    }

    private func isOutsideOfNames(_ place: Int) -> Bool {
        let offset = offsets[place]
        return !mentions.contains { $0.lowerBound < offset && offset < $0.upperBound }
    }

    /// Returns the start of the part that follows a cut. Skips white space, except the indentation
    /// of the part's first line.
    private func next(after cut: Int) -> Int {
        guard cut < characters.count else { return cut }
        let text = characters[cut...].firstIndex { !$0.isBlank } ?? characters.count
        guard text < characters.count else { return text }
        let isAfterLine = characters[cut - 1].isNewline
        let line = characters[cut..<text].lastIndex(where: \.isNewline).map { $0 + 1 }
        return line ?? (isAfterLine ? cut : text)
    }

    /// Returns the part without trailing white space; nil when only white space remains.
    private func part(_ range: Range<Int>) -> MessagePart? {
        guard let last = characters[range].lastIndex(where: { !$0.isBlank }) else {
            return nil
        }
        let units = offsets[range.lowerBound]..<offsets[last + 1]
        let text = String(characters[range.lowerBound...last])
        return MessagePart(text: text, spans: spans.compactMap { $0.within(units) })
    }
}

extension Character {
    /// Whether the character is white space. A space with a combining mark is not white space.
    fileprivate var isBlank: Bool { unicodeScalars.allSatisfy(\.properties.isWhitespace) }
}
