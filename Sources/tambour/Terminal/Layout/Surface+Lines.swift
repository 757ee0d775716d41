extension Surface {
    /// Draws one line as people read it: shortened in the order of the text, with "…" where
    /// something is missing, and then in visual order (`BidiParagraph`).
    ///
    /// The line begins at the left of `rect`, whatever its direction, and nothing in it moves what
    /// is drawn beside it.
    /// - Parameters:
    ///   - parts: Stand one behind the other from left to right. Each is a paragraph of its own, so
    ///     that a name in Hebrew does not turn the words around it.
    ///   - rect: Its first row is drawn on.
    ///   - direction: Of every part.
    ///   - style: Of a cluster, by its number in all parts together.
    /// - Returns: The column after the line.
    @discardableResult
    mutating func drawLine(
        _ parts: [String],
        in rect: Rect,
        direction: BidiParagraph.Direction = .automatic,
        style: (Int) -> Style
    ) -> Int {
        let clusters = Array(Width.shortened(parts.joined(), to: rect.columns))
        var column = rect.column
        var start = 0
        for (number, part) in parts.enumerated() {
            let rest = clusters[start...]
            let own = number == parts.count - 1 ? rest : rest.prefix(part.count)
            let paragraph = BidiParagraph(Array(own), direction: direction)
            for (index, level) in paragraph.visualOrder(ofLine: 0..<own.count) {
                let cluster = clusters[start + index]
                let glyph = Glyph(level % 2 == 1 ? BidiMirroring.mirrored(cluster) : cluster)
                let place = Position(column: column, row: rect.row)
                draw(glyph, at: place, style: style(start + index), in: rect)
                column += glyph.width
            }
            start += own.count
        }
        return column
    }

    @discardableResult
    mutating func drawLine(
        _ parts: [String],
        in rect: Rect,
        direction: BidiParagraph.Direction = .automatic,
        style: Style = .plain
    ) -> Int {
        drawLine(parts, in: rect, direction: direction) { _ in style }
    }

    @discardableResult
    mutating func drawLine(
        _ text: String,
        in rect: Rect,
        direction: BidiParagraph.Direction = .automatic,
        style: Style = .plain
    ) -> Int {
        drawLine([text], in: rect, direction: direction, style: style)
    }
}
