import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that the keys of readline work as users expect, on whole clusters and within the limit.
struct LineEditorTests {
    /// Types a text. Keys in the text stand in angle brackets, such as `<C-a>`, `<M-f>` and `<up>`.
    private func play(_ script: String, on editor: inout LineEditor) -> [LineEditor.Outcome] {
        var outcomes: [LineEditor.Outcome] = []
        var rest = script[...]
        while let character = rest.popFirst() {
            guard character == "<" else {
                for scalar in character.unicodeScalars {
                    outcomes.append(editor.handle(KeyPress(.character(scalar))))
                }
                continue
            }
            let name = rest.prefix { $0 != ">" }
            rest = rest.dropFirst(name.count + 1)
            outcomes.append(editor.handle(Self.press(String(name))))
        }
        return outcomes
    }

    private static func press(_ name: String) -> KeyPress {
        let named: [String: KeyPress.Key] = [
            "up": .up, "down": .down, "left": .left, "right": .right, "enter": .enter,
            "backspace": .backspace, "delete": .delete, "home": .home, "end": .end,
        ]
        var modifiers: KeyPress.Modifiers = []
        var rest = name[...]
        while rest.count > 2, rest.dropFirst().first == "-" {
            modifiers.insert(rest.first == "C" ? .control : .alt)
            rest = rest.dropFirst(2)
        }
        if let key = named[String(rest)] { return KeyPress(key, modifiers) }
        return KeyPress(.character(rest.unicodeScalars.first ?? "?"), modifiers)
    }

    private func edited(_ script: String) -> String {
        var editor = LineEditor()
        _ = play(script, on: &editor)
        var text = editor.text
        text.insert("|", at: text.index(text.startIndex, offsetBy: editor.cursor))
        return text
    }

    @Test(
        "every key does its work",
        arguments: [
            ("hello", "hello|"), ("hello<C-a>X", "X|hello"), ("ab<C-b>X", "aX|b"),
            ("ab<C-a><C-f>X", "aX|b"), ("ab<C-a><C-e>X", "abX|"), ("ab<C-a><C-d>", "|b"),
            ("ab<C-h>", "a|"), ("ab<backspace>", "a|"), ("ab<left><delete>", "a|"),
            ("one two<M-b><C-k>", "one |"), ("one two<M-b><C-u>", "|two"),
            ("one two.x<C-w>", "one |"), ("one two.x<M-backspace>", "one two.|"),
            ("one two<C-a><M-d>", "| two"), ("one two<C-a><M-f>", "one| two"),
            ("one two<C-w><C-y><C-y>", "one twotwo|"),
            ("one two<C-w><C-w><C-y>", "one two|"), ("ab<C-a><M-d><C-y>", "ab|"),
            ("one two<C-w>x<C-w><C-y>", "one x|"), ("one two<C-w>x<C-w><C-y><M-y>", "one two|"),
            ("one two<C-w>x<C-w><C-y><M-y><M-y>", "one x|"),
            ("ab<C-t>", "ba|"), ("abc<C-b><C-t>", "acb|"), ("a<C-t>", "a|"),
            ("hello<C-_>", "|"), ("one two<C-_>", "one|"), ("one two<C-w><C-_>", "one two|"),
            ("ab<C-j>cd<C-a>X", "ab\nX|cd"), ("ab<M-enter>cd<C-u>", "ab\n|"),
            ("ab<C-j>cd<C-u><C-h>", "ab|"), ("ab<C-j>cd<C-a><C-b><C-k>", "ab|cd"),
            ("e\u{301}x<C-b><C-h>", "|x"), ("👩\u{200D}👧x<left><left>y", "y|👩\u{200D}👧x"),
            ("🇩🇪<backspace>", "|"), ("ab<C-j>cd<C-home>", "|ab\ncd"),
            ("ab<C-j>cd<up>X", "abX|\ncd"), ("abc<C-j>d<up>X", "aX|bc\nd"),
            ("abc<C-j>d<C-j>efg<up><up>X", "abcX|\nd\nefg"), ("ab<C-j>cd<M-<>X", "X|ab\ncd"),
            ("ok<tab>", "ok|"), ("привет мир<M-b>", "привет |мир"),
        ]
    )
    func keys(script: String, result: String) {
        #expect(
            edited(script.replacing("<M-<>", with: "<C-home>").replacing("<tab>", with: ""))
                == result
        )
    }

    @Test("Enter submits and keeps the text in the history; blank text stays")
    func submitting() {
        var editor = LineEditor()
        #expect(play("hi<enter>", on: &editor).last == .submitted("hi"))
        #expect(editor.isEmpty)
        #expect(play(" <enter>", on: &editor).last == .handled)
        #expect(editor.text == " ")
    }

    @Test("history is walked through at the first and last line, and what was written comes back")
    func history() {
        var editor = LineEditor()
        _ = play("one<enter>two<enter>two<enter>dra<C-j>ft<up><up>", on: &editor)
        #expect(editor.text == "two")
        _ = play("<C-p>", on: &editor)
        #expect(editor.text == "one")
        #expect(play("<up>", on: &editor) == [.ignored])
        _ = play("!<down>", on: &editor)
        #expect(editor.text == "two")
        _ = play("<C-n>", on: &editor)
        #expect(editor.text == "dra\nft")
        #expect(editor.cursor == 2)
        _ = play("<down>", on: &editor)
        #expect(play("<down>", on: &editor) == [.ignored])
    }

    @Test("pasted line breaks stay in the text, and one undo takes all of it back")
    func paste() {
        var editor = LineEditor()
        _ = play("ab<left>", on: &editor)
        #expect(editor.paste("1\r\n2\u{1B}\u{202E}\n") == .handled)
        #expect(editor.text == "a1\n2\u{202E}\nb")
        _ = play("<C-_>", on: &editor)
        #expect(editor.text == "ab")
    }

    @Test("what would go beyond the limit of UTF-16 units is refused whole")
    func limit() {
        var editor = LineEditor(limit: 5)
        #expect(play("abcd", on: &editor).last == .handled)
        #expect(editor.paste("😀") == .limitReached)
        #expect(editor.text == "abcd")
        #expect(play("ef", on: &editor).last == .limitReached)
        #expect(editor.text == "abcde")
        #expect(editor.remainingUnits == 0)
        let isWhole = editor.setText("😀😀😀")
        #expect(!isWhole)
        #expect(editor.text == "abcde")
        editor.load(LineEditor.Draft(text: "😀😀", cursor: 2))
        #expect(editor.paste("ab") == .limitReached)
        #expect(editor.text == "😀😀")
        _ = play("<C-_>", on: &editor)
        #expect(editor.text == "😀😀")
        // A stored draft may be longer than the limit. The editor shows the whole draft, and the
        // user can shorten it.
        editor.load(LineEditor.Draft(text: "1234567", cursor: 99))
        #expect(editor.draft == LineEditor.Draft(text: "1234567", cursor: 7))
        #expect(play("8", on: &editor) == [.limitReached])
        _ = play("<backspace>", on: &editor)
        #expect(editor.text == "123456")
    }

    @Test("a mark that is typed joins the cluster before the cursor")
    func joining() {
        var editor = LineEditor()
        _ = play("ae<C-b>", on: &editor)
        _ = editor.handle(KeyPress(.character("\u{301}")))
        #expect(editor.cursor == 1)
        #expect(editor.text == "a\u{301}e")
    }

    @Test("the token before the cursor can be completed")
    func completion() throws {
        var editor = LineEditor()
        #expect(editor.tokenBeforeCursor == nil)
        _ = play("/jo", on: &editor)
        #expect(editor.tokenBeforeCursor == .init(text: "/jo", range: 0..<3, isFirst: true))
        _ = play(" @al rest<M-b><left>", on: &editor)
        let token = try #require(editor.tokenBeforeCursor)
        #expect(token == .init(text: "@al", range: 4..<7, isFirst: false))
        #expect(editor.complete(token, with: "@alice") == .handled)
        #expect(editor.text == "/jo @alice rest")
        #expect(editor.cursor == 10)
    }

    @Test("the wrapped text shows the cursor, and as many rows as there is room for")
    func display() {
        var editor = LineEditor()
        editor.width = 6
        editor.load(LineEditor.Draft(text: "one two three", cursor: 13))
        let layout = editor.layout()
        #expect(layout.lines.count == 3)
        #expect(layout.position(of: editor.cursor) == Position(column: 5, row: 2))
        #expect(LineEditor.visibleRows(of: layout, cursorRow: 2, height: 2) == 1..<3)
        #expect(LineEditor.visibleRows(of: layout, cursorRow: 0, height: 2) == 0..<2)
        #expect(LineEditor.visibleRows(of: layout, cursorRow: 0, height: 9) == 0..<3)
    }

    // MARK: Random keys

    private static let presses: [KeyPress] =
        "abefdhkuwytpnj_".unicodeScalars.map { .control($0) }
        + "bfdy".unicodeScalars.map { .alt($0) }
        + [KeyPress(.backspace, .alt), KeyPress(.enter, .alt), KeyPress(.up), KeyPress(.down)]
        + "ab .é\u{301}\u{200D}👩שx".unicodeScalars.map { KeyPress(.character($0)) }
        + [KeyPress(.left), KeyPress(.right), KeyPress(.delete), KeyPress(.enter)]

    @Test("after any keys the cursor is between clusters, the text is within its limit and clean")
    func invariants() {
        Property<KeyPress>(plays: 200, soak: 10_000) { random in
            (0..<120).map { _ in random.pick(Self.presses) }
        } failure: { presses, seed in
            var editor = LineEditor(limit: 12)
            editor.width = 3 + Int(seed % 20)
            for press in presses {
                let before = editor.text
                let outcome = editor.handle(press)
                let text = editor.text
                if text.utf16.count > 12 { return "\(text.utf16.count) units" }
                if !(0...text.count).contains(editor.cursor) { return "cursor \(editor.cursor)" }
                if Array(text) != editor.clusters { return "not clusters: \(editor.clusters)" }
                if case .submitted = outcome, !editor.isEmpty { return "submitted and kept" }
                if outcome == .ignored, text != before { return "ignored and changed" }
            }
            return nil
        }.check()
    }

    @Test("undo goes back to the beginning, through every text that was there")
    func undo() {
        Property<KeyPress>(plays: 150, soak: 5000) { random in
            (0..<60).map { _ in random.pick(Self.presses) }
        } failure: { presses, _ in
            var editor = LineEditor()
            editor.load(LineEditor.Draft(text: "the beginning", cursor: 3))
            var seen = ["the beginning"]
            for press in presses where press != .control("_") && press.key != .enter {
                _ = editor.handle(press)
                seen.append(editor.text)
            }
            for _ in 0..<presses.count {
                if editor.handle(.control("_")) == .ignored { break }
                if !seen.contains(editor.text) { return "undo invented \(editor.text)" }
            }
            return editor.text == "the beginning" ? nil : "undo ended at \(editor.text)"
        }.check()
    }

    @Test("plain keys do what they do to a simple list of characters")
    func model() {
        let presses: [KeyPress] =
            "abefdhkuy".unicodeScalars.map { .control($0) }
            + "xyz".unicodeScalars.map { KeyPress(.character($0)) } + [.control("j")]
        Property<KeyPress>(plays: 200, soak: 10_000) { random in
            (0..<100).map { _ in random.pick(presses) }
        } failure: { presses, _ in
            var editor = LineEditor()
            var model = ModelEditor()
            for press in presses {
                _ = editor.handle(press)
                model.handle(press)
                if editor.text != String(model.before + model.after) {
                    return "\(editor.text) instead of \(model.before + model.after)"
                }
                if editor.cursor != model.before.count { return "cursor \(editor.cursor)" }
            }
            return nil
        }.check()
    }
}

/// A model of the editor, as simple as possible: two lists of characters.
private struct ModelEditor {
    var before: [Character] = []
    var after: [Character] = []
    var killed: [Character] = []
    var isKilling = false

    mutating func handle(_ press: KeyPress) {
        let wasKilling = isKilling
        isKilling = false
        guard case .character(let scalar) = press.key else { return }
        if press.modifiers.isEmpty { return before.append(Character(scalar)) }
        switch scalar {
        case "a":
            while let last = before.last, last != "\n" { after.insert(before.removeLast(), at: 0) }
        case "e":
            while let first = after.first, first != "\n" { before.append(after.removeFirst()) }
        case "b": if !before.isEmpty { after.insert(before.removeLast(), at: 0) }
        case "f": if !after.isEmpty { before.append(after.removeFirst()) }
        case "d": if !after.isEmpty { after.removeFirst() } else { isKilling = wasKilling }
        case "h": if !before.isEmpty { before.removeLast() } else { isKilling = wasKilling }
        case "j": before.append("\n")
        case "y": before += killed
        case "k":
            var cut = Array(after.prefix { $0 != "\n" })
            if cut.isEmpty { cut = Array(after.prefix(1)) }
            after.removeFirst(cut.count)
            if !cut.isEmpty { killed = wasKilling ? killed + cut : cut }
            isKilling = wasKilling || !cut.isEmpty
        case "u":
            let cut = Array(before.reversed().prefix { $0 != "\n" }.reversed())
            before.removeLast(cut.count)
            if !cut.isEmpty { killed = wasKilling ? cut + killed : cut }
            isKilling = wasKilling || !cut.isEmpty
        default: break
        }
    }
}
