import Foundation
import TambourClient
import Testing

@testable import tambour

@Suite("Text of others on the command line")
struct OutputTests {
    @Test("begins no line and no column, and commands nothing")
    func oneLine() {
        #expect(printable("Bob\n14:05  Alice: yes") == "Bob␤14:05  Alice: yes")
        #expect(printable("a\tb\r\nc\u{2028}d\u{85}e") == "a b␤c␤d␤e")
        let harmful = "\u{1B}[2J \u{9B}2J \u{7F} \u{202E}abc\u{2066}"
        #expect(printable(harmful) == "\u{FFFD}[2J \u{FFFD}2J \u{FFFD} \u{FFFD}abc\u{FFFD}")
        #expect(printable("👩\u{200D}💻 ок") == "👩\u{200D}💻 ок")
    }

    @Test("keeps its lines in a message, each behind a mark")
    func lines() {
        #expect(printableLines("one\ntwo\r\n\u{1B}three") == "one\n    │ two\n    │ \u{FFFD}three")
        #expect(printableLines("one") == "one")
    }

    @Test("is harmless in JSON, and the same when it is read")
    func json() throws {
        let text = "\u{1B}\u{7F}\u{80}\u{9F}\u{202E}\u{2066}\u{2028}\u{E0041}\n👩\u{200D}💻"
        let data = try JSONEncoder().encode([text])
        let line = jsonLine(data)
        for scalar in "\u{1B}\u{7F}\u{80}\u{9F}\u{202E}\u{2066}\u{2028}\u{E0041}\n".unicodeScalars {
            #expect(!line.unicodeScalars.contains(scalar))
        }
        #expect(line.contains("\\u007f") && line.contains("\\u202e"))
        #expect(line.contains("👩\u{200D}💻"))
        #expect(try JSONDecoder().decode([String].self, from: Data(line.utf8)) == [text])
    }

    @Test("is harmless in what a command says when it fails")
    func failures() {
        let failure = Failure("“Bob” may be 7 \u{1B}]0;Bob\nError")
        #expect(failure.description == "“Bob” may be 7 \u{FFFD}]0;Bob␤Error")
    }
}
