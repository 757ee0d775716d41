import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that lines appear in visual order, and that the text beside a line stays in its place.
@Suite("A line")
struct SurfaceLineTests {
    private func drawn(
        _ parts: String...,
        columns: Int = 30,
        direction: BidiParagraph.Direction = .automatic
    ) -> String {
        var surface = Surface(size: Size(columns: columns, rows: 1))
        surface.drawLine(parts, in: surface.bounds, direction: direction)
        var text = surface.text(ofRow: 0)
        while text.last == " " { text.removeLast() }
        return text
    }

    @Test(
        "runs from right to left, numbers and brackets stand as they are read",
        arguments: [
            ("hello", "hello"), ("משפחה", "החפשמ"), ("משפחה 12", "12 החפשמ"),
            ("פרויקט 2 (beta)", "(beta) 2 טקיורפ"), ("Project שלום 3!", "Project 3 םולש!"),
            ("مرحبا", "ابحرم"), ("\u{202E}abc", "abc"), ("", ""),
        ]
    )
    func visualOrder(text: String, shown: String) {
        #expect(drawn(text) == shown)
    }

    @Test("what does not fit is left out at the end of the text, wherever that stands")
    func shortening() {
        #expect(drawn("שלום עולם", columns: 6) == "… םולש")
        #expect(drawn("abc שלום", columns: 6) == "abc ש…")
        #expect(drawn("hello", columns: 4) == "hel…")
        #expect(drawn("hello", columns: 0) == "")
        #expect(drawn("ab", "cd", columns: 2) == "a…")
        #expect(drawn("ab", "cd", columns: 3) == "ab…")
        #expect(drawn("שר", "אב", columns: 3) == "רש…")
    }

    @Test("no part turns another one")
    func parts() {
        #expect(drawn("▌^", "שרה") == "▌^הרש")
        #expect(drawn("שרה", ": ", "hello!") == "הרש: hello!")
        #expect(drawn("you: ", "שלום!") == "you: !םולש")
        #expect(drawn("שרה", " is typing…") == "הרש is typing…")
        #expect(drawn("שרה is a contact now", direction: .leftToRight) == "הרש is a contact now")
    }

    @Test("styles go with their clusters")
    func styles() {
        var surface = Surface(size: Size(columns: 8, rows: 1))
        let bold = Style(.standard, on: .standard, .bold)
        surface.drawLine(["x", "אבג"], in: surface.bounds) { $0 == 1 ? bold : .plain }
        #expect(surface.text(ofRow: 0) == "xגבא    ")
        #expect((0..<4).map { surface[$0, 0].style == bold } == [false, false, false, true])
    }

    @Test("nothing is drawn beside the rectangle, and the end is told")
    func bounds() {
        Property<String>(plays: 300, soak: 10_000) { random in
            (0..<random.int(1..<5)).map { _ in random.pick(HardText.samples) }
        } failure: { parts, seed in
            var random = SeededGenerator(seed: seed)
            let rect = Rect(column: 3, row: 1, columns: random.int(0..<30), rows: 1)
            var surface = Surface(size: Size(columns: 40, rows: 3))
            surface.fill(surface.bounds, with: "#")
            let before = surface
            let end = surface.drawLine(parts, in: rect)
            if end > rect.endColumn { return "it ends in column \(end)" }
            for row in 0..<3 {
                for column in 0..<40 where !(row == 1 && (3..<end).contains(column)) {
                    if surface[column, row] != before[column, row] {
                        return "column \(column) of row \(row) is drawn on"
                    }
                }
            }
            let whole = Width.of(parts.joined())
            if whole <= rect.columns, end != rect.column + whole { return "it ends in \(end)" }
            return nil
        }.check()
    }
}
