extension Surface {
    /// Draws one line in visual order (`BidiParagraph`). The text is shortened with "…" before
    /// reordering.
    ///
    /// Even a right-to-left line is aligned to the left edge of `rect`. The text beside the line
    /// therefore stays in place.
    /// - Parameters:
    ///   - parts: The parts, from left to right. Each part is a separate paragraph, so a Hebrew
    ///     name in one part does not reorder the words in the others.
    ///   - rect: Only its first row is used.
    ///   - direction: The direction of every part.
    ///   - style: Returns the style of a cluster. The argument is the cluster's index in the joined
    ///     parts.
    /// - Returns: The column after the line.
    @discardableResult
    package mutating func drawLine(
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
    package mutating func drawLine(
        _ parts: [String],
        in rect: Rect,
        direction: BidiParagraph.Direction = .automatic,
        style: Style = .plain
    ) -> Int {
        drawLine(parts, in: rect, direction: direction) { _ in style }
    }

    @discardableResult
    package mutating func drawLine(
        _ text: String,
        in rect: Rect,
        direction: BidiParagraph.Direction = .automatic,
        style: Style = .plain
    ) -> Int {
        drawLine([text], in: rect, direction: direction, style: style)
    }
}
