import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Texts that are longer than a message.
@Suite("Long texts in parts")
struct MessagePartsTests {
    private static func texts(_ text: String, limit: Int) -> [String] {
        Client.parts(of: text, limit: limit).map(\.text)
    }

    @Test("what fits stays as it is, and of nothing there is nothing")
    func fitting() {
        #expect(Self.texts("", limit: 5).isEmpty)
        #expect(Self.texts("  a\n\n", limit: 5) == ["  a\n\n"])
        #expect(Self.texts("      ", limit: 5).isEmpty)
    }

    @Test("paragraphs are kept together before lines, lines before words, words before letters")
    func boundaries() {
        #expect(Self.texts("aa bb\n\ncc\ndd ee", limit: 12) == ["aa bb", "cc\ndd ee"])
        #expect(Self.texts("aa bb\ncc dd ee", limit: 10) == ["aa bb", "cc dd ee"])
        #expect(Self.texts("aa bb cc", limit: 6) == ["aa bb", "cc"])
        #expect(Self.texts("a bbbbbbbbbbbb", limit: 6) == ["a", "bbbbbb", "bbbbbb"])
        // The function does not cut at the end of a paragraph if the cut would leave a small part.
        #expect(Self.texts("a\n\nbb cc dd ee ff", limit: 14) == ["a\n\nbb cc dd ee", "ff"])
    }

    @Test("lines keep their indentation, and other white space at a cut goes")
    func whiteSpace() {
        #expect(Self.texts("if a {\n    b\n}\n", limit: 8) == ["if a {", "    b\n}"])
        #expect(Self.texts("aaaa    bbbb", limit: 6) == ["aaaa", "bbbb"])
        #expect(Self.texts("aaaa  \n \n  bbbb", limit: 6) == ["aaaa", "  bbbb"])
    }

    @Test("no character is cut unless it is longer than a message")
    func characters() {
        #expect(Self.texts("😀😀😀", limit: 3) == ["😀", "😀", "😀"])
        #expect(Self.texts("👨‍👩‍👧a👨‍👩‍👧", limit: 9) == ["👨‍👩‍👧a", "👨‍👩‍👧"])
        let pile = "e" + String(repeating: "\u{301}", count: 9)
        let parts = Self.texts(pile, limit: 4)
        #expect(parts.map { $0.unicodeScalars.count } == [4, 4, 2])
        #expect(parts.flatMap { Array($0.unicodeScalars) } == Array(pile.unicodeScalars))
    }

    @Test("names stay whole, and where they are")
    func names() {
        let text = "hello @Anna Lee and @Bob"
        let mentions = [
            MessageSpan(.mention(UserID(1)), 6..<15),
            MessageSpan(.mention(UserID(2)), 20..<24),
        ]
        let parts = Client.parts(of: text, formatted: mentions, limit: 12)
        #expect(parts.map(\.text) == ["hello", "@Anna Lee", "and @Bob"])
        #expect(parts[0].spans.isEmpty)
        #expect(parts[1].spans == [MessageSpan(.mention(UserID(1)), 0..<9)])
        #expect(parts[2].spans == [MessageSpan(.mention(UserID(2)), 4..<8)])
    }

    private static let pieces: [String] = [
        "a", "word", "longer_than_a_part_is", " ", "  ", "\n", "\n\n", "\r\n", "\t", "    x", "é",
        "e\u{301}", "😀", "👨‍👩‍👧", "🇩🇪", "日本", "שלום", "\u{200D}", "\u{301}\u{301}\u{301}", "@Bob",
    ]

    @Test("the parts of any text give it back but for white space, fit, and are not empty")
    func anyText() {
        Property<String>(cases: 20_000) { random in
            let count = random.below(40)
            return (0..<count).map { _ in Self.pieces[random.below(Self.pieces.count)] }
        } check: { pieces in
            let text = pieces.joined()
            // The shortest limit still fits one surrogate pair.
            for limit in [2, 3, 7, 16, 30] {
                try Self.check(text, limit)
            }
        }.hold()
    }

    private static func check(_ text: String, _ limit: Int) throws {
        let mentions = Self.mentions(in: text)
        let parts = Client.parts(of: text, formatted: mentions, limit: limit)
        func visible(_ text: String) -> [Unicode.Scalar] {
            text.unicodeScalars.filter { !$0.properties.isWhitespace }
        }
        let joined = parts.map(\.text).joined()
        guard visible(joined) == visible(text) else {
            throw Violation("\(limit): \(parts.map(\.text)) of \(text.debugDescription)")
        }
        guard text.utf16.count > limit else {
            return try require(parts.map(\.text) == (text.isEmpty ? [] : [text]), "changed")
        }
        for part in parts {
            try require(part.text.utf16.count <= limit, "\(part.text.debugDescription) is too long")
            try require(!visible(part.text).isEmpty, "an empty part of \(text.debugDescription)")
            for mention in part.spans {
                let units = Array(part.text.utf16)[mention.range]
                try require(String(decoding: units, as: UTF16.self) == "@Bob", "another name")
            }
        }
        let named = parts.reduce(0) { $0 + $1.spans.count }
        // A name whose last letter carries many combining marks may be longer than a short part.
        try require(limit < 16 || named == mentions.count, "names are lost at \(limit)")
        // White space may be missing only at the cuts.
        var rest = Substring(text).unicodeScalars
        for part in parts {
            while !rest.starts(with: part.text.unicodeScalars) {
                guard let first = rest.popFirst(), first.properties.isWhitespace else {
                    throw Violation("\(part.text.debugDescription) is not in the rest")
                }
            }
            rest.removeFirst(part.text.unicodeScalars.count)
        }
    }

    private static func mentions(in text: String) -> [MessageSpan] {
        let (units, name) = (Array(text.utf16), Array("@Bob".utf16))
        return units.indices.compactMap { start in
            guard units[start...].starts(with: name) else { return nil }
            return MessageSpan(.mention(UserID(2)), start..<start + name.count)
        }
    }

    private static func require(_ holds: Bool, _ what: String) throws {
        if !holds { throw Violation(what) }
    }
}
