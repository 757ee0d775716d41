/// A text wrapped to a width: its lines, and the mapping between text and cells in both directions.
///
/// Lines break at white space, after hyphens and between ideographs. A word that is longer than a
/// line may break between any two clusters. White space beyond the width is not drawn. A paragraph
/// whose first strong character runs from right to left is aligned to the right. Within a line,
/// runs are in visual order (`BidiParagraph`), and brackets are mirrored where needed.
///
/// Positions in the text count grapheme clusters. The cursor is drawn on the cluster that follows
/// it in the text. At the end of a line, it is drawn on the next free cell in the paragraph's
/// direction.
package struct TextLayout: Sendable {
    package struct Options: Sendable {
        /// The width in columns, at least one.
        package var width: Int
        /// The number of free columns before the first line. In a right-to-left paragraph, they are
        /// at the right end of the line.
        var firstIndent = 0
        /// The number of free columns before every other line.
        package var indent = 0
        /// The number of the first link; nil if links are not numbered.
        package var firstLinkNumber: Int?
        /// Whether every line leaves a free column for a cursor at its end.
        package var hasCursor = false
        var tabWidth = 4

        package init(
            width: Int,
            firstIndent: Int = 0,
            indent: Int = 0,
            firstLinkNumber: Int? = nil,
            hasCursor: Bool = false,
            tabWidth: Int = 4
        ) {
            self.width = width
            self.firstIndent = firstIndent
            self.indent = indent
            self.firstLinkNumber = firstLinkNumber
            self.hasCursor = hasCursor
            self.tabWidth = tabWidth
        }
    }

    /// A glyph with its column.
    package struct Placed: Sendable {
        var glyph: Glyph
        /// The distance from the left edge of the layout, in columns.
        package var column: Int
        /// The index of the glyph's cluster in the text; nil for glyphs added by the layout.
        package var offset: Int?
        var traits: TextTraits
        /// An index into `links`.
        package var link: Int?
    }

    package struct Line: Sendable {
        /// The glyphs from left to right, without gaps.
        let glyphs: [Placed]
        /// The clusters of the text in this line. Includes white space beyond the width, but not
        /// the line break.
        package let range: Range<Int>
        let isRightToLeft: Bool
        /// The column of the cursor when it is after the last cluster.
        package let endColumn: Int
        /// Whether the next line continues the same paragraph.
        let isContinued: Bool
    }

    package struct Link: Hashable, Sendable {
        /// The number shown after the link; nil if links are not numbered.
        package let number: Int?
        package let address: String
    }

    /// The lines, at least one.
    package let lines: [Line]
    package let links: [Link]
    /// The number of clusters in the text.
    package let count: Int

    package init(_ text: String, spans: [TextSpan] = [], options: Options) {
        var builder = TextLayoutBuilder(spans: spans, options: options)
        builder.add(text)
        lines = builder.lines
        links = builder.links
        count = builder.count
    }

    /// The number of columns up to the end of the longest line.
    var usedColumns: Int {
        lines.reduce(0) { widest, line in
            max(widest, line.glyphs.last.map { $0.column + $0.glyph.width } ?? 0)
        }
    }

    // MARK: Cursor

    /// Returns the cell in which the cursor is drawn when it is before cluster number `offset`. The
    /// row is the index of a line of the layout.
    package func position(of offset: Int) -> Position {
        let offset = min(max(0, offset), count)
        let row = lines.lastIndex { $0.range.lowerBound <= offset } ?? 0
        let line = lines[row]
        // Searches for the next visible cluster, because invisible ones have no cell.
        let next = line.glyphs.lazy.filter { ($0.offset ?? -1) >= offset }
            .min { ($0.offset ?? 0) < ($1.offset ?? 0) }
        return Position(column: next?.column ?? line.endColumn, row: row)
    }

    /// Returns the index of the cluster at a cell. For a cell beside the text, returns the
    /// beginning or the end of the line.
    package func offset(at position: Position) -> Int {
        let line = lines[min(max(0, position.row), lines.count - 1)]
        let before = line.glyphs.prefix { $0.column <= position.column }
        if let hit = before.last, position.column < hit.column + hit.glyph.width {
            // A glyph that the layout has added, such as a link number, stands for the cluster
            // before it.
            return before.last { $0.offset != nil }?.offset ?? line.range.lowerBound
        }
        let isLeft = before.isEmpty && !line.glyphs.isEmpty
        if isLeft != line.isRightToLeft { return line.range.lowerBound }
        // The position after the last cluster of a continued line belongs to the next line.
        return line.isContinued ? line.range.upperBound - 1 : line.range.upperBound
    }

    // MARK: Drawing

    /// Draws the lines from top to bottom, clipped to `clip`. If `rows` is not nil, draws only the
    /// lines with these indices.
    package func draw(
        on surface: inout Surface,
        at position: Position,
        rows: Range<Int>? = nil,
        style: Style = .plain,
        theme: Theme,
        in clip: Rect? = nil
    ) {
        // Creates links for the drawn lines only, because a message may have hundreds of links.
        var linkIDs: [Int: Surface.LinkID] = [:]
        for (index, row) in (rows ?? lines.indices).clamped(to: lines.indices).enumerated() {
            for placed in lines[row].glyphs {
                if let link = placed.link, linkIDs[link] == nil {
                    linkIDs[link] = surface.link(to: links[link].address)
                }
                surface.draw(
                    placed.glyph,
                    at: Position(
                        column: position.column + placed.column,
                        row: position.row + index
                    ),
                    style: theme.style(of: placed.traits, on: style),
                    link: placed.link.flatMap { linkIDs[$0] } ?? .none,
                    in: clip
                )
            }
        }
    }
}
