import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import tambour

@Suite("Markdown")
struct MarkdownTests {
    private func spans(_ source: String) -> [String] {
        let read = Markdown(source)
        let units = Array(read.text.utf16)
        return read.spans.map { span in
            "\(span.style):\(String(decoding: units[span.range], as: UTF16.self))"
        }
    }

    @Test(
        "is read as formatting",
        arguments: [
            ("**bold** text", "bold text", ["strong:bold"]),
            (
                "a _b_ *c* __d__ ~~e~~", "a b c d e",
                ["emphasized:b", "emphasized:c", "underlined:d", "struckThrough:e"]
            ),
            ("**a _b_ c**", "a b c", ["strong:a b c", "emphasized:b"]),
            ("`a *b* _c_`", "a *b* _c_", ["monospaced:a *b* _c_"]),
            (
                "see [the page](https://e.org/a_b_c)!", "see the page!",
                ["link(\"https://e.org/a_b_c\"):the page"]
            ),
            ("> one\n> two\nthree", "one\ntwo\nthree", ["quote:one\ntwo"]),
            ("# Title\ntext", "Title\ntext", ["heading:Title"]),
            ("```swift\nlet a = **b\n```\nend", "let a = **b\nend", ["monospaced:let a = **b"]),
            ("👋 **b** 👩‍💻", "👋 b 👩‍💻", ["strong:b"]),
            ("привет, **мир**", "привет, мир", ["strong:мир"]),
        ]
    )
    func formatting(source: String, text: String, expected: [String]) {
        #expect(Markdown(source).text == text)
        #expect(spans(source) == expected)
    }

    @Test(
        "leaves texts alone that only look similar",
        arguments: [
            "2 * 3 * 4", "2*3*4", "snake_case_name", "a_b", "**", "****", "* item\n* item", "``",
            "`",
            "~~", "[1](note)", "[a] (https://e.org)", "f(x)[i]", "https://e.org/_a_*b*_c_", "#tag",
            ">_<",
            "a ** b ** c", "**not closed", "_not\n\nclosed_", "```\nno end", "> ", "¯_(ツ)_/¯",
        ]
    )
    func plain(source: String) {
        #expect(Markdown(source) == Markdown(text: source))
    }

    @Test("a backslash shows the mark itself")
    func escaped() {
        #expect(Markdown("\\*\\*a\\*\\* \\\\ \\x") == Markdown(text: "**a** \\ \\x"))
    }

    @Test("an edit begins with a source that reads as the message", arguments: 0..<20)
    func random(block: UInt64) throws {
        for seed in block * 100..<(block + 1) * 100 {
            var random = SeededGenerator(seed: seed)
            let letters = Array("ab **__~~`[]()>#\\\n:/*_ж👋")
            let text = String(
                (0..<Int.random(in: 1...24, using: &random)).map { _ in
                    letters.randomElement(using: &random) ?? "a"
                }
            )
            // The spans of any source must lie within its text. Any text must have a source whose
            // parsed text is the same text again.
            let read = Markdown(text)
            for span in read.spans {
                try #require(
                    span.range.upperBound <= read.text.utf16.count,
                    "seed \(seed): \(text)"
                )
                try #require(!span.range.isEmpty, "seed \(seed)")
            }
            let again = Markdown(Markdown.source(of: text, []))
            try #require(again == Markdown(text: text), "seed \(seed): \(text)")
        }
    }

    @Test("formatted words survive an edit", arguments: 0..<20)
    func formatted(block: UInt64) throws {
        let styles: [MessageSpan.Style] = [
            .strong, .emphasized, .underlined, .struckThrough, .monospaced, .link("https://e.org/"),
        ]
        let words = ["a", "b*c", "snake_case", "2 * 3", "[x]", "\\", "#", "ж", "👋", "~~", "d`e"]
        for seed in block * 100..<(block + 1) * 100 {
            var random = SeededGenerator(seed: seed)
            var text = ""
            var spans: [MessageSpan] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let word = words.randomElement(using: &random) ?? "a"
                let start = text.utf16.count
                text += word
                if Bool.random(using: &random), !word.contains("`"),
                    let style = styles.randomElement(using: &random)
                {
                    spans.append(MessageSpan(style, start..<text.utf16.count))
                }
                text += " "
            }
            text += "."
            let read = Markdown(Markdown.source(of: text, spans))
            try #require(read.text == text, "seed \(seed)")
            try #require(Set(read.spans) == Set(spans), "seed \(seed): \(text) \(spans)")
        }
    }

    @Test(
        "of any size takes time in proportion",
        arguments: ["*a ", "[", "](", "`", "``", "```\n", "> a\n", "_a*b~~", "\\"]
    )
    func large(part: String) {
        // An algorithm with quadratic time would take minutes.
        #expect(!Markdown(String(repeating: part, count: 200_000)).text.isEmpty)
    }
}

extension Markdown {
    /// A text without formatting.
    fileprivate init(text: String) {
        self.init("")
        self.text = text
    }
}
