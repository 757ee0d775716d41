import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that text wraps within its width and loses nothing, and that every cell maps back to a
/// cluster of the text.
struct TextLayoutTests {
    private func lines(
        _ text: String,
        _ spans: [TextSpan] = [],
        _ options: TextLayout.Options
    ) -> [String] {
        let layout = TextLayout(text, spans: spans, options: options)
        var surface = Surface(size: Size(columns: options.width, rows: layout.lines.count))
        layout.draw(on: &surface, at: Position(column: 0, row: 0), theme: .none)
        return (0..<layout.lines.count).map { row in
            var line = surface.text(ofRow: row)
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    @Test(
        "lines break where they may",
        arguments: [
            ("", 5, [""]), ("one two", 7, ["one two"]), ("one two", 6, ["one", "two"]),
            ("one   two", 4, ["one", "two"]), ("abcdefgh", 3, ["abc", "def", "gh"]),
            ("a\nb\r\n\nc", 5, ["a", "b", "", "c"]),
            ("well-known fact", 6, ["well-", "known", "fact"]),
            ("2024-05-01", 6, ["2024-0", "5-01"]), ("a/b/cdef", 5, ["a/b/", "cdef"]),
            ("日本語。テスト", 6, ["日本", "語。テ", "スト"]), ("「日本」", 4, ["「日", "本」"]),
            ("ok 👍🏽👍🏽", 5, ["ok 👍🏽", "👍🏽"]), ("a\u{A0}b c", 3, ["a\u{A0}b", "c"]),
            ("ab\u{200B}cd", 3, ["ab", "cd"]), ("\tx", 9, ["    x"]), ("ab\tx", 9, ["ab  x"]),
            ("x\u{1B}[2J", 9, ["x␛[2J"]), ("trailing  ", 8, ["trailing"]),
            ("(tiny) (words)", 7, ["(tiny)", "(words)"]), ("漢", 1, [""]),
        ] as [(String, Int, [String])]
    )
    func wrapping(text: String, width: Int, expected: [String]) {
        #expect(lines(text, [], .init(width: width)) == expected)
    }

    @Test("following lines are indented")
    func indents() {
        let options = TextLayout.Options(width: 9, firstIndent: 0, indent: 3)
        #expect(lines("aaa bbb ccc\nddd", [], options) == ["aaa bbb", "   ccc", "   ddd"])
        #expect(lines("שלום עולם טוב", [], options) == ["םלוע םולש", "   בוט"])
    }

    @Test("a paragraph from right to left is aligned to the right, the next one is not")
    func alignment() {
        let options = TextLayout.Options(width: 12)
        #expect(lines("שלום!\nhi", [], options) == ["       !םולש", "hi"])
        #expect(lines("שלום עולם (1)", [], .init(width: 9)) == ["םלוע םולש", "      (1)"])
    }

    @Test("spans give traits, by UTF-16 offsets, and may overlap or lie outside")
    func spans() {
        let layout = TextLayout(
            "😀bold it",
            spans: [
                TextSpan(2..<6, .bold), TextSpan(4..<9, .italic), TextSpan(50..<60, .mention),
                TextSpan(-3..<1, .monospace),
            ],
            options: .init(width: 20)
        )
        let traits = layout.lines[0].glyphs.map(\.traits)
        #expect(traits[0] == .monospace)
        #expect(traits[1...2].allSatisfy { $0 == .bold })
        #expect(traits[3...4].allSatisfy { $0 == [.bold, .italic] })
        #expect(traits[5...].allSatisfy { $0 == .italic })
    }

    @Test("links are numbered behind their text and lead to their address")
    func links() {
        let text = "see here and there"
        let spans = [
            TextSpan(4..<8, .link, address: "https://a.example/"),
            TextSpan(13..<18, .link, address: "javascript:x"),
        ]
        let options = TextLayout.Options(width: 13, firstLinkNumber: 3)
        #expect(lines(text, spans, options) == ["see here[3]", "and there[4]"])
        let wide = [TextSpan(0..<2, .link, address: "https://a.example/")]
        #expect(lines("見る", wide, .init(width: 6, firstLinkNumber: 1)) == ["見", "る[1]"])
        let layout = TextLayout(text, spans: spans, options: options)
        #expect(layout.links.map(\.number) == [3, 4])
        var surface = Surface(size: Size(columns: 13, rows: 2))
        layout.draw(on: &surface, at: Position(column: 0, row: 0), theme: .dark)
        #expect(surface.links == ["", "https://a.example/"])
        #expect(surface[4, 0].link.index == 1)
        #expect(surface[4, 0].style.attributes.contains(.underline))
        #expect(surface[4, 1].link == .none)
        #expect(surface[0, 0].link == .none)
    }

    @Test("only links that are drawn become hyperlinks")
    func drawnLinks() {
        let spans = (0..<3).map { TextSpan($0 * 3..<$0 * 3 + 2, .link, address: "https://\($0)/") }
        let layout = TextLayout("aa bb cc", spans: spans, options: .init(width: 2))
        var surface = Surface(size: Size(columns: 2, rows: 2))
        layout.draw(on: &surface, at: Position(column: 0, row: 0), rows: 1..<2, theme: .none)
        #expect(surface.links == ["", "https://1/"])
        layout.draw(on: &surface, at: Position(column: 0, row: 1), rows: 1..<3, theme: .none)
        #expect(surface.links == ["", "https://1/", "https://2/"])
        #expect(surface[0, 0].link == surface[0, 1].link)
    }

    @Test("tabs lead to the next stop")
    func tabs() {
        Property<String>(plays: 200, soak: 5000) { random in
            (0..<random.int(1..<20)).map { _ in
                random.pick(["\t", "\t\t", "a", "bcd", "漢", "e\u{301}", "\u{200B}", " "])
            }
        } failure: { pieces, _ in
            let text = pieces.joined()
            let layout = TextLayout(text, options: .init(width: 1000))
            var column = 0
            for (offset, cluster) in text.enumerated() {
                let found = layout.position(of: offset).column
                if found != column { return "\(offset) is in column \(found), not \(column)" }
                column += cluster == "\t" ? 4 - column % 4 : Width.of(cluster)
            }
            let end = layout.lines[0].endColumn
            return layout.lines.count == 1 && end == column ? nil : "it ends in column \(end)"
        }.check()
    }

    @Test("every cluster has the traits of the spans that it touches")
    func overlaps() {
        Property<TextSpan>(plays: 200, soak: 5000) { random in
            let traits: [TextTraits] = [.bold, .italic, .quote, .link]
            return (0..<random.int(1..<8)).map { _ in
                let start = random.int(-2..<25)
                return TextSpan(start..<start + random.int(1..<12), random.pick(traits))
            }
        } failure: { spans, seed in
            var random = SeededGenerator(seed: seed)
            let text = (0..<12).map { _ in random.pick(["a", "😀", "e\u{301}", "漢", "\n"]) }.joined()
            var ranges: [Range<Int>] = []
            for cluster in text {
                let start = ranges.last?.upperBound ?? 0
                ranges.append(start..<start + cluster.utf16.count)
            }
            let layout = TextLayout(text, spans: spans, options: .init(width: 50))
            for placed in layout.lines.flatMap(\.glyphs) {
                guard let offset = placed.offset else { continue }
                let expected = spans.filter { $0.range.overlaps(ranges[offset]) }
                    .reduce(into: TextTraits()) { $0.formUnion($1.traits) }
                if placed.traits != expected { return "\(offset) has \(placed.traits)" }
            }
            return nil
        }.check()
    }

    @Test(
        "a text eight times as long costs eight times as much, whatever it is made of",
        arguments: [
            "\t", "a", "a ", "\ta", "漢", "\u{202E}", "\u{200B}", "\u{200B} ", "(", "(א)", "1,", "🇩🇪",
            "\n", "a-", " ",
        ]
    )
    func cost(piece: String) {
        func steps(_ count: Int, _ spans: [TextSpan] = []) -> Int {
            var builder = TextLayoutBuilder(spans: spans, options: .init(width: 40))
            builder.add(String(repeating: piece, count: count))
            return builder.steps
        }
        #expect(steps(4000) <= 8 * steps(500) + 200)
        // A span causes work at its beginning and at its end, but not at every cluster in between.
        let spans = (0..<100).map { TextSpan($0..<100_000, .bold) }
        #expect(steps(4000, spans) <= steps(4000) + 100 * 100)
    }

    @Test("of a pile of marks, layout looks at the first ones only")
    func marks() {
        let pile = (0..<4000).map { $0 % 2 == 0 ? "\u{301}" : "\u{323}" }.joined()
        #expect(Character("a" + pile).head.unicodeScalars.count == 16)
        #expect(Character("e\u{301}").head == "e\u{301}")
        #expect(Character("👩🏽‍❤️‍💋‍👨🏽").head == "👩🏽‍❤️‍💋‍👨🏽")
        let layout = TextLayout("a\(pile)b", options: .init(width: 9))
        #expect(layout.lines[0].glyphs.map(\.column) == [0, 1])
        #expect(layout.lines[0].glyphs[0].glyph == Glyph(Character("a" + pile)))
    }

    @Test("a part of the lines is drawn, clipped")
    func drawing() {
        let layout = TextLayout("aa bb cc dd", options: .init(width: 2))
        var surface = Surface(size: Size(columns: 4, rows: 3))
        layout.draw(on: &surface, at: Position(column: 1, row: 1), rows: 1..<3, theme: .none)
        #expect((0..<3).map(surface.text(ofRow:)) == ["    ", " bb ", " cc "])
    }

    @Test("the cursor stands on the cluster it is before, or behind the line's end")
    func cursor() {
        let options = TextLayout.Options(width: 8, hasCursor: true)
        let layout = TextLayout("ab 漢字 xyz\nשלום", options: options)
        #expect(layout.position(of: 0) == Position(column: 0, row: 0))
        #expect(layout.position(of: 4) == Position(column: 5, row: 0))
        #expect(layout.position(of: 5) == Position(column: 7, row: 0))
        #expect(layout.position(of: 6) == Position(column: 0, row: 1))
        #expect(layout.position(of: 9) == Position(column: 3, row: 1))
        #expect(layout.position(of: 10) == Position(column: 7, row: 2))
        #expect(layout.position(of: 13) == Position(column: 4, row: 2))
        #expect(layout.position(of: 14) == Position(column: 3, row: 2))
        #expect(layout.offset(at: Position(column: 4, row: 0)) == 3)
        #expect(layout.offset(at: Position(column: 99, row: 0)) == 5)
        #expect(layout.offset(at: Position(column: 99, row: 1)) == 9)
        #expect(layout.offset(at: Position(column: 0, row: 2)) == 14)
        #expect(layout.offset(at: Position(column: 99, row: 2)) == 10)
    }

    @Test("lines keep to their width, every cluster is there once, columns lead back")
    func properties() {
        Property<String>(plays: 300, soak: 10_000) { random in
            (0..<random.int(1..<12)).map { _ in
                random.pick(HardText.samples) + random.pick(["", " ", " ", "\n", "  "])
            }
        } failure: { texts, seed in
            var random = SeededGenerator(seed: seed)
            let text = texts.joined()
            let units = text.utf16.count
            var options = TextLayout.Options(width: random.int(4..<30))
            options.indent = random.int(0..<3)
            options.hasCursor = random.chance(1, in: 2)
            options.firstLinkNumber = random.chance(1, in: 2) ? 1 : nil
            let spans = (0..<random.int(0..<4)).map { _ in
                let start = random.int(0..<units + 1)
                let range = start..<random.int(start..<units + 2)
                return TextSpan(range, [.link, .bold], address: "https://a.example/")
            }
            return Self.fault(of: TextLayout(text, spans: spans, options: options), text, options)
        }.check()
    }

    private static func fault(
        of layout: TextLayout,
        _ text: String,
        _ options: TextLayout.Options
    ) -> String? {
        let clusters = Array(text)
        if layout.count != clusters.count { return "\(layout.count) clusters" }
        var seen: Set<Int> = []
        var expectedStart = 0
        for (row, line) in layout.lines.enumerated() {
            if line.range.lowerBound != expectedStart { return "line \(row) begins late" }
            expectedStart = line.range.upperBound + (line.isContinued ? 0 : 1)
            var column = line.glyphs.first?.column ?? 0
            for placed in line.glyphs {
                if placed.column != column { return "a gap in line \(row)" }
                column += placed.glyph.width
                guard let offset = placed.offset else { continue }
                if !line.range.contains(offset) { return "\(offset) is in line \(row)" }
                if !seen.insert(offset).inserted { return "\(offset) is there twice" }
                let position = Position(column: placed.column, row: row)
                if layout.position(of: offset) != position { return "\(offset) is elsewhere" }
                if layout.offset(at: position) != offset { return "\(offset) is not found" }
            }
            if column > options.width, line.glyphs.count > 1 { return "line \(row) is too long" }
        }
        if expectedStart != clusters.count + 1 { return "the end is missing" }
        for (offset, cluster) in clusters.enumerated() where !seen.contains(offset) {
            if !cluster.isWhitespace, Glyph(cluster).width > 0 { return "\(cluster) is lost" }
        }
        for offset in 0...clusters.count {
            let position = layout.position(of: offset)
            if !(0..<options.width).contains(position.column) { return "\(offset) at \(position)" }
        }
        return nil
    }
}
