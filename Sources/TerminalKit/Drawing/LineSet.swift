/// The characters for lines and boxes.
package struct LineSet: Sendable {
    let horizontal: Character
    let vertical: Character
    let topLeft: Character
    let topRight: Character
    let bottomLeft: Character
    let bottomRight: Character

    package static let light = LineSet(
        horizontal: "─",
        vertical: "│",
        topLeft: "┌",
        topRight: "┐",
        bottomLeft: "└",
        bottomRight: "┘"
    )

    /// For terminals and fonts without box-drawing characters.
    package static let ascii = LineSet(
        horizontal: "-",
        vertical: "|",
        topLeft: "+",
        topRight: "+",
        bottomLeft: "+",
        bottomRight: "+"
    )
}

extension Surface {
    package mutating func drawHorizontalLine(
        at position: Position,
        columns: Int,
        style: Style = .plain,
        lines: LineSet = .light
    ) {
        let line = Rect(column: position.column, row: position.row, columns: columns, rows: 1)
        fill(line, style: style, with: lines.horizontal)
    }

    package mutating func drawVerticalLine(
        at position: Position,
        rows: Int,
        style: Style = .plain,
        lines: LineSet = .light
    ) {
        let line = Rect(column: position.column, row: position.row, columns: 1, rows: rows)
        fill(line, style: style, with: lines.vertical)
    }

    /// Draws a border along the inside of `rect`, with a title in the top edge.
    package mutating func drawBox(
        _ rect: Rect,
        title: String = "",
        style: Style = .plain,
        titleStyle: Style? = nil,
        lines: LineSet = .light
    ) {
        guard rect.columns >= 2, rect.rows >= 2 else { return }
        let right = rect.endColumn - 1
        let bottom = rect.endRow - 1
        for row in [rect.row, bottom] {
            let start = Position(column: rect.column, row: row)
            drawHorizontalLine(at: start, columns: rect.columns, style: style, lines: lines)
        }
        for column in [rect.column, right] {
            let start = Position(column: column, row: rect.row)
            drawVerticalLine(at: start, rows: rect.rows, style: style, lines: lines)
        }
        let corners = [
            (rect.column, rect.row, lines.topLeft), (right, rect.row, lines.topRight),
            (rect.column, bottom, lines.bottomLeft), (right, bottom, lines.bottomRight),
        ]
        for (column, row, corner) in corners {
            draw(Glyph(corner), at: Position(column: column, row: row), style: style)
        }
        guard !title.isEmpty, rect.columns >= 7 else { return }
        drawLine(
            [" ", Width.shortened(title, to: rect.columns - 6), " "],
            in: Rect(column: rect.column + 2, row: rect.row, columns: rect.columns - 4, rows: 1),
            style: titleStyle ?? style
        )
    }
}
