import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that clusters have the widths that terminals give them, and that harmful characters are
/// never printable.
struct WidthTests {
    @Test(
        "widths follow libc's tables and the rules for sequences",
        arguments: [
            ("a", 1), ("é", 1), ("e\u{301}", 1), ("漢", 2), ("ｱ", 1), ("한", 2),
            ("\u{1112}\u{1161}", 2),
            ("😀", 2), ("👍🏽", 2), ("👩‍👩‍👧‍👦", 2), ("❤", 1), ("❤️", 2), ("1️⃣", 2), ("🇩🇪", 2), ("🇩", 1),
            ("🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}", 2), ("q\u{FE0F}", 1),
            ("क्ष", 2), ("กำ", 2), ("\u{3164}", 2), ("\u{301}", 1), ("\u{E000}", 1),
            ("\u{1B}", 1), ("\n", 1), ("\r\n", 1), ("\u{9B}", 1), ("\u{378}", 1), ("\u{2028}", 1),
            ("\u{200B}", 0), ("\u{202E}", 0), ("\u{2069}", 0), ("\u{200F}", 0), ("\u{AD}", 0),
            ("\u{FEFF}", 0), ("\u{FFF9}", 0), ("\u{200D}", 0), ("\u{FE0F}", 0), ("\u{E0001}", 0),
        ]
    )
    func widths(text: String, columns: Int) {
        #expect(text.count == 1)
        #expect(Width.of(Character(text)) == columns)
    }

    @Test(
        "controls are shown as pictures",
        arguments: [
            ("\u{1B}", "␛"), ("\n", "␊"), ("\t", "␉"), ("\r\n", "␍"), ("\u{0}", "␀"),
            ("\u{7F}", "␡"), ("\u{9B}", "·"), ("\u{85}", "·"), ("\u{2029}", "␤"),
            ("\u{378}", "\u{FFFD}"), ("\u{301}", "\u{25CC}\u{301}"),
        ]
    )
    func pictures(text: String, shown: String) {
        #expect(String(Glyph(Character(text)).text) == shown)
    }

    @Test("a pile of combining marks is cut")
    func zalgo() {
        let pile = Character("a" + String(repeating: "\u{301}", count: 5000))
        #expect(Glyph(pile).text.unicodeScalars.count == 16)
        #expect(Glyph(pile).width == 1)
    }

    @Test("any scalars at all become safe glyphs")
    func safety() {
        Property<[UInt32]>(plays: 400, soak: 20_000) { random in
            (0..<20).map { _ in
                (0..<random.int(1..<6)).map { _ in Self.scalarValue(&random) }
            }
        } failure: { steps, _ in
            for values in steps {
                let text = String(String.UnicodeScalarView(values.compactMap(Unicode.Scalar.init)))
                for cluster in text {
                    let glyph = Glyph(cluster)
                    if glyph.width < 0 || glyph.widestWidth < glyph.width { return "\(glyph)" }
                    if String(glyph.text).count != 1 { return "not one cluster: \(values)" }
                    for scalar in glyph.text.unicodeScalars {
                        let properties = scalar.properties
                        if properties.generalCategory == .control || properties.isBidiControl
                            || properties.generalCategory == .lineSeparator
                            || properties.generalCategory == .paragraphSeparator
                        {
                            return "U+\(String(scalar.value, radix: 16)) is printable"
                        }
                    }
                    if Glyph(glyph.text) != glyph, glyph.width > 0 {
                        return "showing \(values) twice is different"
                    }
                }
            }
            return nil
        }.check()
    }

    private static func scalarValue(_ random: inout SeededGenerator) -> UInt32 {
        let ranges: [Range<UInt32>] = [
            0..<0xA0, 0x300..<0x370, 0x590..<0x700, 0x900..<0xA00, 0x1100..<0x1200,
            0x2000..<0x2070, 0x20D0..<0x2100, 0x2600..<0x2800, 0xFE00..<0xFE10, 0xFFF0..<0x1_0000,
            0x1_F1E6..<0x1_F200, 0x1_F300..<0x1_FB00, 0xE_0000..<0xE_0080, 0..<0x11_0000,
        ]
        return UInt32.random(in: random.pick(ranges), using: &random)
    }

    @Test("a text is shortened at the border of a cluster, with an ellipsis")
    func shortening() {
        #expect(Width.shortened("hello", to: 5) == "hello")
        #expect(Width.shortened("hello!", to: 5) == "hell…")
        #expect(Width.shortened("漢字漢字", to: 5) == "漢字…")
        #expect(Width.shortened("漢字漢字", to: 4) == "漢…")
        #expect(Width.shortened("漢", to: 1) == "…")
        #expect(Width.shortened("漢", to: 0) == "")
        #expect(Width.shortened("ab\u{200B}\u{200B}cd", to: 3) == "ab\u{200B}\u{200B}…")
        #expect(Width.shortened("abc\u{200B}", to: 3) == "abc\u{200B}")
        #expect(Width.shortened("abc\u{200B}d", to: 3) == "ab…")
    }
}
