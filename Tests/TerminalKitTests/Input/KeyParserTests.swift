import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that bytes result in the same keys, wherever the input splits them. Invalid bytes result
/// in no keys.
struct KeyParserTests {
    private func keys(_ text: String) -> [InputEvent] { keys(Array(text.utf8)) }

    private func keys(_ bytes: [UInt8]) -> [InputEvent] {
        var parser = KeyParser()
        return parser.parse(bytes) + parser.flush()
    }

    private static let keySequences: [(String, KeyPress)] =
        [
            ("a", .init(.character("a"))), ("é", .init(.character("é"))),
            ("😀", .init(.character("😀"))), ("\r", .init(.enter)), ("\t", .init(.tab)),
            ("\u{7F}", .init(.backspace)), ("\u{8}", .control("h")), ("\u{1}", .control("a")),
            ("\n", .control("j")), ("\u{1F}", .control("_")), ("\u{0}", .control(" ")),
            ("\u{1B}", .init(.escape)), ("\u{1B}b", .alt("b")), ("\u{1B}é", .alt("é")),
            ("\u{1B}\r", .init(.enter, .alt)), ("\u{1B}\u{7F}", .init(.backspace, .alt)),
            ("\u{1B}\u{1}", .init(.character("a"), [.alt, .control])),
            ("\u{1B}[", .alt("[")), ("\u{1B}O", .alt("O")), ("\u{1B}]", .alt("]")),
            ("\u{1B}[A", .init(.up)), ("\u{1B}OB", .init(.down)), ("\u{1B}[C", .init(.right)),
            ("\u{1B}[D", .init(.left)), ("\u{1B}[H", .init(.home)), ("\u{1B}OF", .init(.end)),
            ("\u{1B}[1;5C", .init(.right, .control)), ("\u{1B}[1;2A", .init(.up, .shift)),
            ("\u{1B}[1;3D", .init(.left, .alt)), ("\u{1B}[1;9D", .init(.left, .alt)),
            ("\u{1B}[1;8D", .init(.left, [.shift, .alt, .control])),
            ("\u{1B}\u{1B}[A", .init(.up, .alt)), ("\u{1B}\u{1B}OA", .init(.up, .alt)),
            ("\u{1B}[3~", .init(.delete)), ("\u{1B}[3;5~", .init(.delete, .control)),
            ("\u{1B}[5~", .init(.pageUp)), ("\u{1B}[6~", .init(.pageDown)),
            ("\u{1B}[1~", .init(.home)), ("\u{1B}[8~", .init(.end)), ("\u{1B}[2~", .init(.insert)),
            ("\u{1B}OP", .init(.function(1))), ("\u{1B}[15~", .init(.function(5))),
            ("\u{1B}[24;2~", .init(.function(12), .shift)), ("\u{1B}[[A", .init(.function(1))),
            ("\u{1B}[1;2R", .init(.function(3), .shift)),
            ("\u{1B}O5P", .init(.function(1), .control)),
            ("\u{1B}[Z", .init(.tab, .shift)), ("\u{1B}[3^", .init(.delete, .control)),
            ("\u{1B}[a", .init(.up, .shift)), ("\u{1B}OM", .init(.enter)),
            ("\u{1B}Oq", .init(.character("1"))),
            ("\u{1B}[97;5u", .control("a")), ("\u{1B}[13;2u", .init(.enter, .shift)),
            ("\u{1B}[27;5;13~", .init(.enter, .control)),
        ]

    @Test("terminals' sequences are known", arguments: keySequences)
    func known(bytes: String, press: KeyPress) {
        #expect(keys(bytes) == [.key(press)])
    }

    /// The beginnings of sequences. If no further byte arrives for a while, each counts as the key
    /// that it maps to.
    private static let typedBeginnings: [[UInt8]: KeyPress] = [
        Array("\u{1B}".utf8): .init(.escape), Array("\u{1B}\u{1B}".utf8): .init(.escape, .alt),
        Array("\u{1B}[".utf8): .alt("["), Array("\u{1B}O".utf8): .alt("O"),
        Array("\u{1B}\u{1B}[".utf8): .alt("["), Array("\u{1B}\u{1B}O".utf8): .alt("O"),
    ]

    @Test(
        "a sequence whose rest comes late is the same key, wherever it is torn",
        arguments: keySequences
    )
    func torn(bytes: String, press: KeyPress) {
        let whole = Array(bytes.utf8)
        for cut in whole.indices.dropFirst() {
            let (head, rest) = (Array(whole[..<cut]), Array(whole[cut...]))
            var parser = KeyParser()
            #expect(parser.parse(head).isEmpty)
            let early = Self.typedBeginnings[head].map { [InputEvent.key($0)] } ?? []
            #expect(parser.flush() == early)
            let found = parser.parse(rest) + parser.flush()
            // After a single ESC, a lone byte counts as a typed key. The same is true for any byte
            // that starts no sequence.
            let isTyped = head == [0x1B] && (rest.count == 1 || !"[O".utf8.contains(rest[0]))
            #expect(found == (isTyped ? keys(rest) : [.key(press)]), "torn after \(cut)")
        }
    }

    @Test(
        "a paste, the mouse and the focus are known when they are torn, and an answer is swallowed"
    )
    func tornOthers() {
        let events: [(String, [InputEvent])] = [
            ("\u{1B}[200~x\ry\u{1B}[201~", [.paste("x\ny")]), ("\u{1B}[I", [.focusGained]),
            ("\u{1B}[<64;5;3M", keys("\u{1B}[<64;5;3M")), ("\u{1B}[?62;22c", []),
            ("\u{1B}[12;40R", []),
        ]
        for (bytes, expected) in events {
            let whole = Array(bytes.utf8)
            for cut in whole.indices.dropFirst() {
                let head = Array(whole[..<cut])
                var parser = KeyParser()
                var found = parser.parse(head) + parser.flush()
                found += parser.parse(whole[cut...]) + parser.flush()
                let early = Self.typedBeginnings[head].map { [InputEvent.key($0)] } ?? []
                #expect(found == early + expected, "\(bytes) torn after \(cut)")
            }
        }
    }

    @Test("an answer of the terminal that is torn is swallowed, one that never ends is given up")
    func tornAnswers() {
        var parser = KeyParser()
        #expect(parser.parse("\u{1B}]11;rgb:".utf8).isEmpty)
        #expect(parser.flush().isEmpty)
        #expect(parser.parse("0/0/0\u{7}x".utf8) == [.key(KeyPress(.character("x")))])
        #expect(parser.parse("\u{1B}]11;rgb:".utf8).isEmpty)
        #expect(parser.flush().isEmpty)
        #expect(parser.isLate)
        #expect(parser.flush().isEmpty)
        #expect(parser.parse("x".utf8) == [.key(KeyPress(.character("x")))])
    }

    @Test("what is too long is dropped to its end, however late that comes")
    func tornJunk() {
        var parser = KeyParser()
        #expect(parser.parse("\u{1B}[".utf8).isEmpty)
        for _ in 0..<1000 {
            #expect(parser.parse("1;".utf8).isEmpty)
            #expect(!parser.isWaiting)
            #expect(parser.flush().isEmpty)
        }
        #expect(parser.parse("5Dx".utf8) == [.key(KeyPress(.character("x")))])
    }

    @Test("behind ESC, what is typed is text, and what comes after a second is")
    func typedBehindEscape() {
        func text(_ chunks: String..., flushes: Int = 1) -> [InputEvent] {
            var parser = KeyParser()
            _ = parser.parse([0x1B])
            for _ in 0..<flushes { _ = parser.flush() }
            return chunks.flatMap { parser.parse($0.utf8) }
        }
        func letters(_ text: String) -> [InputEvent] {
            text.unicodeScalars.map { .key(KeyPress(.character($0))) }
        }
        #expect(text("[", "A") == letters("[A"))
        #expect(text("O", "P") == letters("OP"))
        #expect(text("OK") == letters("OK"))
        #expect(text("On my way") == letters("On my way"))
        #expect(text("[é") == letters("[é"))
        #expect(text("[A", flushes: 2) == letters("[A"))
        var parser = KeyParser()
        #expect(parser.parse("\u{1B}O".utf8) + parser.flush() == [.key(.alt("O"))])
        #expect(parser.flush().isEmpty)
        #expect(!parser.isWaiting)
        #expect(parser.parse("P".utf8) == letters("P"))
    }

    @Test(
        "what is no key is swallowed, and what follows is not",
        arguments: [
            "\u{1B}[?62;22c", "\u{1B}[12;40R", "\u{1B}[?2026;2$y", "\u{1B}]11;rgb:0/0/0\u{7}",
            "\u{1B}]11;rgb:0/0/0\u{1B}\\", "\u{1B}P1+r544e=1\u{1B}\\", "\u{1B}_Gi=1;OK\u{1B}\\",
            "\u{1B}[99~", "\u{1B}[<0;1M", "\u{1B}[1;1;1;1w", "\u{1B}[57399u",
            "\u{1B}[" + String(repeating: "1;", count: 500) + "A", "\u{85}", "\u{9B}",
        ]
    )
    func swallowed(bytes: String) {
        #expect(keys(bytes + "x") == [.key(KeyPress(.character("x")))])
    }

    @Test("broken UTF-8 is swallowed, and what follows is not")
    func brokenUTF8() {
        for bytes: [UInt8] in [
            [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98], [0x80], [0xFF], [0xC0, 0x80],
            [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE0, 0x80, 0x80],
        ] {
            var parser = KeyParser()
            #expect(parser.parse(bytes + [UInt8(ascii: "x")]) == [.key(KeyPress(.character("x")))])
        }
    }

    @Test("pasted text is one event without controls")
    func paste() {
        let events = keys("\u{1B}[200~rm -rf\r\nx\ry\u{1B}[31mz\u{3}\t\u{1B}[201~\r")
        #expect(events == [.paste("rm -rf\nx\ny[31mz\t"), .key(KeyPress(.enter))])
    }

    @Test("a paste outlasts timeouts, is bounded, and can be given up")
    func longPaste() {
        var parser = KeyParser(maxPasteBytes: 10)
        #expect(parser.parse("\u{1B}[200~0123456789".utf8).isEmpty)
        #expect(parser.isPasting)
        #expect(!parser.isWaiting)
        #expect(parser.flush().isEmpty)
        let more = String(repeating: "more", count: 100)
        #expect(
            parser.parse((more + "\u{1B}[201~a").utf8) == [
                .paste("0123456789"), .key(KeyPress(.character("a"))),
            ]
        )
        #expect(parser.parse("\u{1B}[200~left".utf8).isEmpty)
        #expect(parser.endPaste() == [.paste("left")])
        #expect(parser.parse("b".utf8) == [.key(KeyPress(.character("b")))])
    }

    @Test("focus and the mouse are events")
    func focusAndMouse() {
        #expect(keys("\u{1B}[I\u{1B}[O") == [.focusGained, .focusLost])
        let origin = Position(column: 4, row: 2)
        #expect(
            keys("\u{1B}[<0;5;3M\u{1B}[<0;5;3m\u{1B}[<64;5;3M\u{1B}[<36;5;3M") == [
                .mouse(MouseEvent(action: .press, button: 0, position: origin)),
                .mouse(MouseEvent(action: .release, button: 0, position: origin)),
                .mouse(MouseEvent(action: .wheelUp, button: 0, position: origin)),
                .mouse(MouseEvent(action: .drag, button: 0, position: origin, modifiers: .shift)),
            ]
        )
    }

    @Test("a lone ESC waits for the caller's timeout")
    func escape() {
        var parser = KeyParser()
        #expect(parser.parse([0x1B]).isEmpty)
        #expect(parser.isWaiting)
        #expect(parser.flush() == [.key(KeyPress(.escape))])
        #expect(parser.isLate)
        #expect(parser.flush().isEmpty)
        #expect(!parser.isWaiting)
        #expect(parser.parse([UInt8(ascii: "b")]) == [.key(KeyPress(.character("b")))])
    }

    @Test("any bytes, cut anywhere, give the same events, none of them a control character")
    func fuzz() {
        Property<[UInt8]>(plays: 1500, soak: 100_000) { random in
            (0..<random.int(1..<25)).map { _ in Self.chunk(&random) }
        } failure: { chunks, seed in
            let bytes = chunks.flatMap { $0 }
            var whole = KeyParser(maxPasteBytes: 40)
            var expected = whole.parse(bytes)
            expected += whole.flush() + whole.endPaste() + whole.flush()
            var random = SeededGenerator(seed: seed)
            var cut = KeyParser(maxPasteBytes: 40)
            var found: [InputEvent] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = min(rest.count, random.int(1..<4))
                found += cut.parse(rest.prefix(count))
                rest = rest.dropFirst(count)
            }
            found += cut.flush() + cut.endPaste() + cut.flush()
            if found != expected { return "\(found) instead of \(expected)" }
            if whole.isWaiting { return "something waits after two flushes" }
            for event in found {
                switch event {
                case .key(let press):
                    if case .character(let scalar) = press.key,
                        scalar.properties.generalCategory == .control
                    {
                        return "a control character: \(press)"
                    }
                case .paste(let text):
                    let isClean = text.unicodeScalars.allSatisfy {
                        $0 == "\n" || $0 == "\t" || $0.properties.generalCategory != .control
                    }
                    if !isClean { return "a control in a paste" }
                    if text.utf8.count > 130 { return "a paste of \(text.utf8.count) bytes" }
                default: break
                }
            }
            return nil
        }.check()
    }

    private static func chunk(_ random: inout SeededGenerator) -> [UInt8] {
        switch random.int(0..<6) {
        case 0: (0..<random.int(1..<6)).map { _ in UInt8(random.int(0..<256)) }
        case 1: Array(random.pick(HardText.samples).utf8)
        case 2: (0..<random.int(1..<5)).map { _ in UInt8(ascii: random.pick(syntax)) }
        case 3: Array("\u{1B}[200~".utf8)
        case 4: Array("\u{1B}[201~".utf8)
        default: Array(random.pick(sequences).utf8)
        }
    }

    private static let syntax: [Unicode.Scalar] = [
        "\u{1B}", "[", "O", "]", "P", ";", "1", "2", "~", "A", "u", "<", "M", "\\", "?", "\u{7}",
    ]

    private static let sequences = [
        "\u{1B}[A", "\u{1B}OA", "\u{1B}[1;5C", "\u{1B}[<0;5;3M", "\u{1B}[I", "\u{1B}]0;x\u{7}",
        "\u{1B}[3~", "\u{1B}[97;5u", "\u{1B}\u{1B}", "\u{1B}[[B", "\u{1B}P q\u{1B}\\", "hello",
    ]
}
