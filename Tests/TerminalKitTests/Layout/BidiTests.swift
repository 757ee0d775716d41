import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that right-to-left text appears in the order that UAX #9 defines.
struct BidiTests {
    private func visual(_ text: String, mirroring: Bool = true) -> String {
        let clusters = Array(text)
        let paragraph = BidiParagraph(clusters)
        let order = paragraph.visualOrder(ofLine: 0..<clusters.count)
        return String(
            order.map { entry in
                entry.level % 2 == 1 && mirroring
                    ? BidiMirroring.mirrored(clusters[entry.index]) : clusters[entry.index]
            }
        )
    }

    @Test(
        "the first strong character decides the direction",
        arguments: [
            ("", false), ("123 .", false), ("hello שלום", false), ("שלום hello", true),
            ("- (12) مرحبا", true), ("\u{200F}abc", true), ("\u{200E}שלום", false),
            ("\u{202E}abc", false), ("\u{2067}abc", false),
        ]
    )
    func direction(text: String, isRightToLeft: Bool) {
        #expect(BidiParagraph(Array(text)).isRightToLeft == isRightToLeft)
    }

    @Test(
        "numbers keep their order and brackets look the right way",
        arguments: [
            ("שלום 123", "123 םולש"), ("car (שלום) car", "car (םולש) car"),
            ("שלום (abc) עולם", "םלוע (abc) םולש"), ("א [ב]", "[ב] א"),
            ("מחיר: 12.50€!", "!12.50€ :ריחמ"), ("א<ב", "ב>א"), ("a א(ב)c", "a (ב)אc"),
            ("hello", "hello"),
            ("الساعة 10:30", "10:30 ةعاسلا"), ("e\u{301}שִׁ", "e\u{301}שִׁ"),
        ]
    )
    func implicitRules(text: String, shown: String) {
        #expect(visual(text) == shown)
    }

    @Test("explicit embeddings and overrides have no effect")
    func noOverrides() {
        for control in [
            "\u{202A}", "\u{202B}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}", "\u{2068}",
        ] {
            #expect(visual("ab\(control)cd") == "ab\(control)cd")
        }
    }

    @Test("trailing space goes to the end of its line")
    func trailingSpace() {
        let clusters = Array("abc שלום   ")
        let paragraph = BidiParagraph(clusters)
        #expect(visual("abc שלום   ") == "abc םולש   ")
        #expect(visual("שלום   ") == "   םולש")
        #expect(paragraph.visualOrder(ofLine: 0..<6).map(\.index) == [0, 1, 2, 3, 5, 4])
    }

    @Test("every order has every cluster once")
    func permutation() {
        Property<String>(plays: 300, soak: 10_000) { random in
            (0..<random.int(1..<8)).map { _ in random.pick(HardText.samples) }
        } failure: { texts, seed in
            let clusters = Array(texts.joined(separator: " "))
            let paragraph = BidiParagraph(clusters)
            var random = SeededGenerator(seed: seed)
            let start = random.int(0..<clusters.count)
            let line = start..<random.int(start..<clusters.count + 1)
            let order = paragraph.visualOrder(ofLine: line)
            return order.map(\.index).sorted() == Array(line) ? nil : "\(order) for \(line)"
        }.check()
    }

    /// The expected orders are from an independent implementation, without mirroring and without
    /// direction marks.
    @Test(
        "the order is that of the reference",
        arguments: [
            ("\u{631}\u{639}\u{9}%:)(\u{9}\u{639}", "\u{639}\u{9}():%\u{9}\u{639}\u{631}"),
            (".\u{663}\u{5E9}\u{5D0}$", "$\u{5D0}\u{5E9}\u{663}."),
            ("(a\u{200E}%\u{5D0}b", "(a%\u{5D0}b"),
            ("\u{631}\u{20AC}1(a", "a(1\u{20AC}\u{631}"),
            (".+. \u{200E}\u{631}%1)\u{663}:", ".+. \u{663})1%\u{631}:"),
            ("[\u{5D0}.)2", "2).\u{5D0}["),
            ("$\u{200E}\u{5D0}]2+!1", "$1!+2]\u{5D0}"),
            ("\u{663}a\u{5D0} !\u{5D1}/\u{5D1}\u{200F}", "\u{663}a\u{5D1}/\u{5D1}! \u{5D0}"),
            ("/\u{5D0}a\u{200F}[a\u{631}", "\u{631}a[a\u{5D0}/"),
            (" )\u{631}![", "[!\u{631}) "),
            ("+\u{5D0}\u{663}+a,!", "!,a+\u{663}\u{5D0}+"),
            ("\u{5E9}1]\u{5D1}a", "a\u{5D1}]1\u{5E9}"),
            (".\u{9}:\u{639}[", "[\u{639}:\u{9}."),
            ("\u{631}.%\u{631}<!\u{5E9},)", "),\u{5E9}!<\u{631}%.\u{631}"),
            ("\u{5D1}/,\u{631}a2\u{200F}\u{9}", "\u{9}a2\u{631},/\u{5D1}"),
            ("\u{663}\u{20AC}a\u{631}\u{639}/\u{200F}()", "\u{663}\u{20AC}a/\u{639}\u{631}()"),
            ("\u{5D1}b\u{5E9}\u{631}.2a!(", "(!2a.\u{631}\u{5E9}b\u{5D1}"),
            (
                "\u{200E}\u{663}/\u{5D0}\u{5D0}\u{5D0}\u{631}",
                "\u{631}\u{5D0}\u{5D0}\u{5D0}/\u{663}"
            ),
            (":\u{200E} \u{5E9}\u{200F}/\u{639})\u{5E9}", ": \u{5E9})\u{639}/\u{5E9}"),
            ("1\u{200E}(1<\u{631}\u{639}", "1(1<\u{639}\u{631}"),
            (")$\u{631}[/\u{20AC}:(\u{5D0},", ",\u{5D0}(:\u{20AC}/[\u{631}$)"),
            ("\u{5D1}\u{5D1}b%2", "b%2\u{5D1}\u{5D1}"),
            (":\u{663}%\u{639}<\u{5D0}\u{5E9}1:", ":1\u{5E9}\u{5D0}<\u{639}%\u{663}:"),
            (")\u{200F}((\u{5D0}2\u{631}\u{631}<", "<\u{631}\u{631}2\u{5D0}(()"),
            ("\u{5D0}2,.1", "1.,2\u{5D0}"),
            ("b\u{639}\u{663}-%", "b\u{663}\u{639}-%"),
            ("\u{5E9}\u{5D0}-\u{5E9}\u{20AC}.+[<", "<[+.\u{20AC}\u{5E9}-\u{5D0}\u{5E9}"),
            ("% \u{5E9} ba:-]\u{663}", "\u{663}]-:ba \u{5E9} %"),
            ("<\u{663}+\u{5E9}\u{5D0}", "\u{5D0}\u{5E9}+\u{663}<"),
            ("<]\u{5E9}\u{9}+-\u{5D0}[:\u{20AC}", "\u{20AC}:[\u{5D0}-+\u{9}\u{5E9}]<"),
            ("\u{5D0})\u{5D1}2\u{20AC}", "2\u{20AC}\u{5D1})\u{5D0}"),
            ("\u{200E}$\u{5D0}%!%a\u{663}", "$\u{5D0}%!%a\u{663}"),
            ("\u{5D0}:a1]\u{5D1}:!(", "(!:\u{5D1}]a1:\u{5D0}"),
            (":2\u{20AC}a-\u{663}\u{5E9}[(\u{631}", ":2\u{20AC}a-\u{631}([\u{5E9}\u{663}"),
            ("\u{639}!\u{20AC}+[.:\u{20AC}1", "1\u{20AC}:.[+\u{20AC}!\u{639}"),
            ("/[2\u{631}),\u{9}", "\u{9},)\u{631}2[/"),
        ]
    )
    func vectors(text: String, shown: String) {
        let marks: Set<Character> = ["\u{200E}", "\u{200F}"]
        #expect(visual(text, mirroring: false).filter { !marks.contains($0) } == shown)
    }
}
