/// A grid of cells to draw on: the contents of one frame.
///
/// Every cell holds safe text (`Glyph`). A wide character is either complete or absent. If a part
/// of it is covered or clipped, its other part becomes blank.
package struct Surface: Sendable {
    /// A hyperlink of this surface; `link(to:)` returns it.
    package struct LinkID: Hashable, Sendable {
        package let index: UInt16

        package static let none = LinkID(index: 0)
    }

    package struct Cell: Hashable, Sendable {
        /// The number of columns of the glyph that begins here; zero in a cell that the glyph to
        /// the left covers.
        fileprivate(set) var width: UInt8 = 1
        fileprivate(set) var isDoubtful = false
        fileprivate(set) var link = LinkID.none
        fileprivate(set) var style = Style.plain
        /// One grapheme cluster; a space in the other columns of a wide glyph.
        fileprivate(set) var text: Character = " "

        static let blank = Cell()
    }

    package let size: Size
    /// The cells, row by row.
    private(set) var cells: [Cell]
    /// The position of the terminal's cursor; nil hides the cursor.
    package var cursor: Position?

    /// The addresses. The index of a `LinkID` is an index into this array. The first entry stands
    /// for no link.
    package private(set) var links = [""]
    private var linkIndices = ["": 0]

    package init(size: Size) {
        self.size = Size(columns: max(0, size.columns), rows: max(0, size.rows))
        cells = Array(repeating: .blank, count: self.size.columns * self.size.rows)
    }

    var bounds: Rect { Rect(size) }

    package subscript(column: Int, row: Int) -> Cell { cells[row * size.columns + column] }

    func cells(ofRow row: Int) -> ArraySlice<Cell> {
        cells[row * size.columns..<(row + 1) * size.columns]
    }

    /// Returns the text of a row, including blanks at its end.
    package func text(ofRow row: Int) -> String {
        String(cells(ofRow: row).lazy.filter { $0.width > 0 }.map(\.text))
    }

    // MARK: Drawing

    /// Draws `text` in one row, from `position` to the right, within `clip`.
    ///
    /// - Returns: The column after the text, even if the clip hides the beginning of the text. If
    ///   the text reaches the right end of the clip: the column at which drawing stopped.
    @discardableResult
    package mutating func draw(
        _ text: some StringProtocol,
        at position: Position,
        style: Style = .plain,
        link: LinkID = .none,
        in clip: Rect? = nil
    ) -> Int {
        let clip = clip?.intersection(bounds) ?? bounds
        var column = position.column
        for cluster in text {
            guard column < clip.endColumn else { break }
            let glyph = Glyph(cluster)
            put(
                glyph,
                at: Position(column: column, row: position.row),
                style: style,
                link: link,
                clip: clip
            )
            column += glyph.width
        }
        return column
    }

    /// Draws one glyph. If `clip` cuts the glyph, its visible columns become blank.
    package mutating func draw(
        _ glyph: Glyph,
        at position: Position,
        style: Style = .plain,
        link: LinkID = .none,
        in clip: Rect? = nil
    ) {
        put(
            glyph,
            at: position,
            style: style,
            link: link,
            clip: clip?.intersection(bounds) ?? bounds
        )
    }

    /// Fills a rectangle with a glyph. Does nothing if the glyph does not have exactly one column.
    package mutating func fill(_ rect: Rect, style: Style = .plain, with character: Character = " ")
    {
        let rect = rect.intersection(bounds)
        let glyph = Glyph(character)
        guard !rect.isEmpty, glyph.width == 1 else { return }
        let cell = Cell(
            isDoubtful: glyph.isDoubtful,
            style: style,
            text: glyph.text
        )
        for row in rect.row..<rect.endRow {
            let start = row * size.columns
            separate(start + rect.column, rowEnd: start + size.columns)
            separate(start + rect.endColumn, rowEnd: start + size.columns)
            for index in start + rect.column..<start + rect.endColumn { cells[index] = cell }
        }
    }

    /// Overlays a style on existing cells, for example for a selected row or a match.
    package mutating func restyle(_ rect: Rect, with style: Style) {
        let rect = rect.intersection(bounds)
        guard !rect.isEmpty else { return }
        for row in rect.row..<rect.endRow {
            let start = row * size.columns
            for index in start + rect.column..<start + rect.endColumn {
                cells[index].style = cells[index].style.overlaid(with: style)
            }
        }
    }

    /// Returns a hyperlink for `draw`. Returns `.none` if the address does not meet the conditions
    /// below, or if the surface has too many links.
    ///
    /// - Parameter address: Must have one of `schemes` and at most 2,083 bytes, which is VTE's
    ///   limit. This function percent-encodes all characters other than printable ASCII.
    package mutating func link(
        to address: String,
        schemes: Set<String> = ["http", "https", "mailto"]
    ) -> LinkID {
        guard address.utf8.count <= 2083, let colon = address.firstIndex(of: ":"),
            schemes.contains(address[..<colon].lowercased())
        else { return .none }
        var escaped: [UInt8] = []
        for byte in address.utf8 {
            if byte > 0x20, byte < 0x7F {
                escaped.append(byte)
            } else {
                escaped += [UInt8(ascii: "%"), hexadecimal(byte >> 4), hexadecimal(byte & 15)]
            }
        }
        guard escaped.count <= 2083 else { return .none }
        let safe = String(decoding: escaped, as: UTF8.self)
        if let index = index(ofLink: safe) { return LinkID(index: UInt16(index)) }
        guard links.count <= Int(UInt16.max) else { return .none }
        linkIndices[safe] = links.count
        links.append(safe)
        return LinkID(index: UInt16(links.count - 1))
    }

    /// Returns the index of an address in `links`; nil for an unknown address.
    package func index(ofLink address: String) -> Int? { linkIndices[address] }

    // MARK: Cells

    private mutating func put(
        _ glyph: Glyph,
        at position: Position,
        style: Style,
        link: LinkID,
        clip: Rect
    ) {
        guard glyph.width > 0, position.row >= clip.row, position.row < clip.endRow else { return }
        let first = max(position.column, clip.column)
        let end = min(position.column + glyph.width, clip.endColumn)
        guard first < end else { return }
        let start = position.row * size.columns
        separate(start + first, rowEnd: start + size.columns)
        separate(start + end, rowEnd: start + size.columns)
        if end - first == glyph.width {
            cells[start + first] = Cell(
                width: UInt8(glyph.width),
                isDoubtful: glyph.isDoubtful,
                link: link,
                style: style,
                text: glyph.text
            )
            guard glyph.width > 1 else { return }
            for index in start + first + 1..<start + end {
                cells[index] = Cell(width: 0, link: link, style: style)
            }
        } else {
            for index in start + first..<start + end { cells[index] = Cell(style: style) }
        }
    }

    /// Ensures that no glyph extends across the left edge of the cell at `index`. Such a glyph
    /// becomes blank.
    private mutating func separate(_ index: Int, rowEnd: Int) {
        guard index < rowEnd, cells[index].width == 0 else { return }
        var lead = index
        while cells[lead].width == 0 { lead -= 1 }
        for covered in lead..<lead + Int(cells[lead].width) {
            cells[covered] = Cell(style: cells[covered].style)
        }
    }

    private func hexadecimal(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }

    // MARK: Scrolling

    /// Moves the rows of `rows` up by `count`, or down if `count` is negative. Rows that receive no
    /// other row become blank.
    package mutating func scroll(rows: Range<Int>, by count: Int) {
        let old = cells
        for row in rows {
            let start = row * size.columns
            let source = (row + count) * size.columns
            if rows.contains(row + count) {
                cells.replaceSubrange(
                    start..<start + size.columns,
                    with: old[source..<source + size.columns]
                )
            } else {
                for index in start..<start + size.columns { cells[index] = .blank }
            }
        }
    }
}
