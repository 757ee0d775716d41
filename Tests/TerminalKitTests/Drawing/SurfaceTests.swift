import Testing

@testable import TerminalKit

/// Tests that cells hold whole glyphs. A glyph that is clipped or partly covered becomes blank.
struct SurfaceTests {
    private func surface(_ columns: Int, _ rows: Int = 1) -> Surface {
        Surface(size: Size(columns: columns, rows: rows))
    }

    @Test("text is drawn cell by cell, and the column behind it is told")
    func text() {
        var surface = surface(10)
        let end = surface.draw("a漢e\u{301}", at: Position(column: 1, row: 0))
        #expect(end == 5)
        #expect(surface.text(ofRow: 0) == " a漢e\u{301}     ")
        #expect(surface[2, 0].width == 2)
        #expect(surface[3, 0].width == 0)
    }

    @Test("a wide character is never half drawn")
    func clipping() {
        var surface = surface(6)
        surface.fill(surface.bounds, with: ".")
        surface.draw("漢字漢字", at: Position(column: -1, row: 0))
        #expect(surface.text(ofRow: 0) == " 字漢 ")
        surface.fill(surface.bounds, with: ".")
        surface.draw(
            "漢字漢字",
            at: Position(column: 0, row: 0),
            in: Rect(column: 1, row: 0, columns: 4, rows: 1)
        )
        #expect(surface.text(ofRow: 0) == ". 字 .")
    }

    @Test("covering a part of a wide character blanks the rest")
    func covering() {
        var surface = surface(6)
        surface.draw("漢字漢", at: Position(column: 0, row: 0))
        surface.draw("x", at: Position(column: 1, row: 0))
        #expect(surface.text(ofRow: 0) == " x字漢")
        surface.fill(Rect(column: 3, row: 0, columns: 2, rows: 1), with: "-")
        #expect(surface.text(ofRow: 0) == " x -- ")
        surface.draw("字", at: Position(column: 0, row: 0))
        #expect(surface.text(ofRow: 0) == "字 -- ")
    }

    @Test("nothing is drawn outside")
    func outside() {
        var surface = surface(3, 2)
        let blank = surface.cells
        surface.draw("hello", at: Position(column: 0, row: -1))
        surface.draw("hello", at: Position(column: 0, row: 2))
        surface.draw("hello", at: Position(column: 3, row: 0))
        surface.draw("hello", at: Position(column: -5, row: 0))
        surface.fill(Rect(column: 5, row: 5, columns: 9, rows: 9), with: "x")
        #expect(surface.cells == blank)
    }

    @Test("boxes have a title, and an ASCII form")
    func boxes() {
        var surface = surface(12, 3)
        surface.drawBox(surface.bounds, title: "Chat list")
        #expect(surface.text(ofRow: 0) == "┌─ Chat … ─┐")
        #expect(surface.text(ofRow: 1) == "│          │")
        #expect(surface.text(ofRow: 2) == "└──────────┘")
        surface.drawBox(surface.bounds, lines: .ascii)
        #expect(surface.text(ofRow: 0) == "+----------+")
        #expect(surface.text(ofRow: 1) == "|          |")
    }

    @Test("only harmless addresses become links, escaped")
    func links() {
        var surface = surface(1)
        #expect(surface.link(to: "javascript:alert(1)") == .none)
        #expect(surface.link(to: "file:///etc/passwd") == .none)
        #expect(surface.link(to: "no scheme") == .none)
        #expect(surface.link(to: "https://" + String(repeating: "a", count: 3000)) == .none)
        let first = surface.link(to: "HTTPS://example.org/\u{1B}\\ é")
        #expect(first != .none)
        #expect(surface.links.last == "HTTPS://example.org/%1B\\%20%C3%A9")
        #expect(surface.link(to: "HTTPS://example.org/\u{1B}\\ é") == first)
    }

    @Test("after any drawing every glyph is whole")
    func wholeness() {
        Property<ScreenStep>(plays: 150, soak: 5000) { random in
            let size = ScreenStep.size(&random)
            return [.resize(size)] + (0..<60).map { _ in ScreenStep.random(&random, size) }
        } failure: { steps, _ in
            var screen = Screen()
            for step in steps {
                screen.draw(step)
                let surface = screen.surface
                for row in 0..<surface.size.rows {
                    var column = 0
                    while column < surface.size.columns {
                        let cell = surface[column, row]
                        let width = Int(cell.width)
                        if width == 0 { return "a rest at \(column), \(row)" }
                        if column + width > surface.size.columns { return "\(cell) sticks out" }
                        if Glyph(cell.text).width != width { return "\(cell) has another width" }
                        for rest in column + 1..<column + width where surface[rest, row].width > 0 {
                            return "\(cell) is cut"
                        }
                        column += width
                    }
                }
            }
            return nil
        }.check()
    }
}
