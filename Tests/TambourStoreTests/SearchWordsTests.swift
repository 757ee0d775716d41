import TambourProtocol
import TambourStore
import Testing

@Suite("What a word is to search")
struct SearchWordsTests {
    private func words(_ text: String) -> [String] {
        var words: [String] = []
        var word: [UInt8] = []
        Array(text.utf8).withUnsafeBytes { utf8 in
            SearchWords.scan(utf8, into: &word) {
                words.append(String(decoding: $0, as: UTF8.self))
                return true
            }
        }
        return words
    }

    @Test(
        "letters and digits, in lower case, with е for ё",
        arguments: [
            ("", []), ("  …!?\u{0}", []), ("Hello, World", ["hello", "world"]),
            ("Ёлка-ёж ЁЖ", ["елка", "еж", "еж"]), ("АБЯабя ЙйЩщ", ["абяабя", "ййщщ"]),
            ("ЂЋЏ Ѐ", ["ђћџ", "ѐ"]), ("a1_b2", ["a1", "b2"]), ("don't", ["don", "t"]),
            ("Größe ÉCOLE", ["größe", "école"]), ("ΑΒΓ αβγ", ["αβγ", "αβγ"]),
            ("日本 語", ["日本", "語"]), ("кот🐈кит", ["кот", "кит"]), ("№5 x²", ["5", "x²"]),
            // The letters й and ё each have two encodings. The search ignores a soft hyphen.
            ("и\u{306}од е\u{308}ж", ["йод", "еж"]), ("пере\u{AD}нос", ["перенос"]),
            ("ѣ҂Ѵ", ["ѣ", "ѵ"]),
        ] as [(String, [String])]
    )
    func split(text: String, expected: [String]) {
        #expect(words(text) == expected)
    }

    @Test("of a long word the first bytes count, whole letters of them")
    func long() {
        #expect(words(String(repeating: "я", count: 50)) == [String(repeating: "я", count: 32)])
        #expect(
            words("a" + String(repeating: "я", count: 50)) == [
                "a" + String(repeating: "я", count: 31)
            ]
        )
        #expect(words(String(repeating: "x", count: 99)) == [String(repeating: "x", count: 64)])
        #expect(
            SearchQuery(Text(String(repeating: "я", count: 40)))?.matches(
                Text(String(repeating: "я", count: 50))
            ) == true
        )
    }

    @Test("bytes that are no UTF-8 end a word and nothing else")
    func broken() {
        var found: [[UInt8]] = []
        var word: [UInt8] = []
        let bytes: [UInt8] = [0x61, 0xd0, 0x62, 0xff, 0x63, 0xe2, 0x82, 0x64, 0xf0]
        bytes.withUnsafeBytes { utf8 in
            SearchWords.scan(utf8, into: &word) {
                found.append($0)
                return true
            }
        }
        #expect(found.first == [0x61] || found.joined().contains(0x61))
    }

    @Test("every word of a query begins one of the text")
    func query() throws {
        #expect(SearchQuery("… !") == nil)
        let query = try #require(SearchQuery("тум ЕЖ еж"))
        #expect(query.words.count == 2)
        #expect(query.matches("Ёжик в тумане"))
        #expect(query.matches("туман", "ежи"))
        #expect(!query.matches("Ёжик"))
        #expect(!query.matches("вежа в тумане"))
    }

    @Test("words of a query beyond the limit are not looked for")
    func limit() throws {
        let query = try #require(SearchQuery("one two one three four", maxWords: 3))
        #expect(query.words.count == 3)
        #expect(query.matches("three two one"))
        #expect(!query.matches("four three two"))
        let long = Text((0..<100).map { "word\($0)" }.joined(separator: " "))
        #expect(SearchQuery(long)?.words.count == 32)
    }
}
