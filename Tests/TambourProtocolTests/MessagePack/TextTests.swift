import TambourProtocol
import TambourTesting
import Testing

@Suite("text")
struct TextTests {
    @Test("a text is its string, by value")
    func strings() {
        let text: Text = "привет, 🌍"
        #expect(String(text) == "привет, 🌍" && text.description == "привет, 🌍")
        #expect(text == Text("привет, 🌍") && text != "привет, 🌎" && text != "")
        #expect(text.hashValue == Text("привет, 🌍").hashValue)
        #expect(text.equals("привет, 🌍") && !text.equals("привет"))
        #expect(Text.empty.isEmpty && Text.empty == "" && Text.empty.equals(""))
        #expect(Text.empty.utf16Count == 0)
    }

    @Test(
        "its length is that of UTF-16",
        arguments: ["", "a", "ыы", "漢字", "🌍a🌍", "e\u{301}", "\u{10FFFF}\u{FFFF}\0"]
    )
    func units(string: String) {
        #expect(Text(string).utf16Count == string.utf16.count)
        #expect(Text(validating: Bytes(Array(string.utf8)))?.utf16Count == string.utf16.count)
    }

    @Test(
        "what is not UTF-8 is refused, at every place in a longer text",
        arguments: [
            "80", "bf", "c0", "c080", "c1bf", "c2", "c241", "e0", "e080", "e08080", "e09fbf",
            "d0c0", "d041d0b0d0b0d0b0", "d0b0d041d0b0d0b0", "d0b0d0b0d0c0d0b0",
            "d0b0d0b0d0b0d0f0", "c0b0d0b0d0b0d0b0", "d0b0d0b0d0b0c1b0", "e18041", "e1", "e180",
            "eda080", "edbfbf", "ed9f", "f0", "f08080", "f0808080",
            "f08fbfbf", "f0908041", "f4908080", "f5808080", "f8888080", "fe", "ff", "c2c2",
            "e2e2e2",
        ]
    )
    func invalid(encoding: String) {
        let bad = hex(encoding)
        for before in 0...17 {
            for after in [0, 1, 8] {
                let bytes =
                    [UInt8](repeating: 0x61, count: before) + bad
                    + [UInt8](repeating: 0x61, count: after)
                #expect(Text(validating: Bytes(bytes)) == nil, "\(hexText(bytes))")
                let payload = [0xD9, UInt8(bytes.count)] + bytes
                #expect(
                    complaint { () throws(PayloadError) in try decode(Text.self, payload) }
                        == "not valid UTF-8"
                )
                #expect(
                    complaint { () throws(PayloadError) in try decode(String.self, payload) }
                        == "not valid UTF-8"
                )
            }
        }
    }

    @Test("the standard library agrees about all that two bytes can begin")
    func exhaustive() {
        for first in 0x7E...0xFF {
            for second in stride(from: 0, through: 0xFF, by: 1) {
                for rest in [[], [0x80], [0xBF, 0x80], [0x80, 0xBF, 0x41]] as [[UInt8]] {
                    agree([UInt8(first), UInt8(second)] + rest)
                }
            }
        }
    }

    @Test("the standard library agrees about random bytes and damaged texts")
    func random() {
        var run = RandomRun("text", count: 3000, soak: 500_000)
        for _ in 0..<run.count {
            var bytes = Array(Tree.randomString(using: &run.random).utf8)
            for _ in 0..<run.random.below(3) where !bytes.isEmpty {
                bytes[run.random.below(bytes.count)] = UInt8(run.random.below(256))
            }
            agree(bytes)
        }
    }

    private func agree(_ bytes: [UInt8]) {
        let text = Text(validating: Bytes(bytes))
        let string = String(validating: bytes, as: UTF8.self)
        guard (text == nil) == (string == nil), text?.utf16Count == string?.utf16.count else {
            Issue.record("the standard library does not agree about \(hexText(bytes))")
            return
        }
        // The reader counts UTF-16 units while it validates.
        guard let units = string?.utf16.count, units > 0 else { return }
        let payload = [0xDA, UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
        for (limit, isLegal) in [(units, true), (units - 1, false)] {
            let text = try? MessagePackReader.read(Bytes(payload), limits: .standard) {
                (reader: inout MessagePackReader) throws(PayloadError) in
                try reader.readText(maxUTF16: limit)
            }
            guard (text != nil) == isLegal else {
                Issue.record("\(units) units of \(hexText(bytes)) and a limit of \(limit)")
                return
            }
        }
    }
}
