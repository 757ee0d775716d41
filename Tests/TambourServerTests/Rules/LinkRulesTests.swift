import TambourMessenger
import TambourProtocol
import Testing

@Suite("Links in texts")
struct LinkRulesTests {
    @Test(
        "the first link is found, without what stands around it",
        arguments: [
            ("https://example.org", "https://example.org"),
            ("HTTP://Example.ORG/A", "HTTP://Example.ORG/A"),
            ("see http://a.b/c?d=e&f#g.", "http://a.b/c?d=e&f#g"),
            ("one https://a.b/1, two https://a.b/2", "https://a.b/1"),
            ("(https://a.b/)", "https://a.b/"),
            ("(https://a.b/c_(d))", "https://a.b/c_(d)"),
            ("[text](https://a.b/c)", "https://a.b/c"),
            ("«https://a.b/c»!", "https://a.b/c"),
            ("“https://a.b/c”…", "https://a.b/c"),
            ("**https://a.b/c**", "https://a.b/c"),
            ("<a href=\"https://a.b/c\">", "https://a.b/c"),
            ("https://a.b/c\u{A0}d", "https://a.b/c"),
            ("https://a.b/c\u{3000}d", "https://a.b/c"),
            ("https://a.b/\u{202E}cod.exe", "https://a.b/"),
            ("https://a.b/c\nd", "https://a.b/c"),
            ("https://пример.рф/ёж?", "https://пример.рф/ёж"),
            ("https://[::1]:80/x", "https://[::1]:80/x"),
            ("https:// https:/// https://-a https://a.b", "https://a.b"),
            ("😀https://a.b/", "https://a.b/"),
            ("https://a.b/" + String(repeating: ")", count: 3_900), "https://a.b/"),
        ]
    )
    func links(text: String, link: String) {
        #expect(LinkRules.firstLink(in: Text(text), maxBytes: 2048) == link)
        #expect(LinkRules.isLink(link, maxBytes: 2048))
    }

    @Test(
        "what is no link is none",
        arguments: [
            "", "a text", "ftp://a.b/", "a.b/c", "xhttps://a.b", "йhttps://a.b", "1http://a.b",
            "https://", "https:///a", "https://.a", "htt", "https:/a.b", "http\u{1A}//a.b",
            "https://aaaaaaaaa.b",
        ]
    )
    func noLinks(text: String) {
        #expect(LinkRules.firstLink(in: Text(text), maxBytes: 18) == nil)
    }

    @Test("a link is as long as it may be, and one that is longer is none")
    func length() {
        #expect(LinkRules.firstLink(in: "https://a.b/ёё", maxBytes: 16) == "https://a.b/ёё")
        #expect(LinkRules.firstLink(in: "https://a.b/ёё", maxBytes: 15) == nil)
        #expect(LinkRules.firstLink(in: "https://a.b/ёё http://c", maxBytes: 15) == "http://c")
    }

    @Test(
        "addresses of pages are links and nothing else",
        arguments: [
            "https://a.b/c d", "https://a.b/\n", " https://a.b", "javascript:alert(1)",
            "data:text/html,x", "//a.b/c", "file:///etc/passwd", "https://a.b/\"onload=x",
        ]
    )
    func noAddresses(url: String) {
        #expect(!LinkRules.isLink(url, maxBytes: 2048))
    }

    @Test("words of a page are one line, cut at the end of a character")
    func lines() {
        #expect(
            LinkRules.line("  A\n\t page\u{0}of\r\n hedgehogs ", maxUnits: 99)
                == "A page of hedgehogs"
        )
        #expect(LinkRules.line("abcd", maxUnits: 3) == "abc")
        #expect(LinkRules.line("ab cd", maxUnits: 3) == "ab")
        #expect(LinkRules.line("a🦔🦔", maxUnits: 4) == "a🦔")
        #expect(LinkRules.line("👨‍👩‍👧", maxUnits: 7) == nil)
        #expect(LinkRules.line("👨‍👩‍👧", maxUnits: 8) == "👨‍👩‍👧")
        #expect(LinkRules.line(" \n\u{7}", maxUnits: 9) == nil)
    }
}
