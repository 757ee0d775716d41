/// Converts surfaces into terminal output. Small changes need few bytes.
///
/// The renderer stores the last frame and writes only the difference: cursor moves, runs of text,
/// SGR where the style changes, erasing to the end of the line, scrolled regions, hyperlinks (OSC
/// 8). A frame of more than one run is wrapped in synchronised output (mode 2026). The terminal
/// therefore shows all its runs at the same moment.
///
/// The bytes of every rendered frame must reach the terminal, in order. To skip a frame, the caller
/// does not render it. The terminal must not wrap lines automatically (`TerminalModes` turns this
/// off).
package struct Renderer: Sendable {
    package struct Options: Sendable {
        package var depth = ColorDepth.trueColor
        /// Whether to write hyperlinks. Most terminals without OSC 8 ignore hyperlinks, but a few
        /// old ones print the sequences.
        var hyperlinks = true
        var synchronizedOutput = true
        /// Whether the terminal supports ASCII only. Other characters then become question marks.
        var isASCIIOnly = false
    }

    private let options: Options
    private var shown: Surface?
    private var bytes: [UInt8] = []

    // The state of the terminal; nil for a part that is unknown.
    private var row: Int?
    private var column: Int?
    private var isCursorVisible: Bool?
    private var pen: Style?
    /// The style of `pen` before its colours are reduced to the terminal's depth.
    private var fullPen: Style?
    /// The link that is currently open, as an id of the surface that is being drawn; none between
    /// frames.
    private var penLink = Surface.LinkID.none

    /// The number of cursor moves in this frame; a scroll or a clear counts as two.
    private var moves = 0

    package init(options: Options = Options()) { self.options = options }

    /// Forgets what the terminal shows. The next frame therefore repaints everything.
    mutating func forget() {
        shown = nil
        row = nil
        column = nil
        isCursorVisible = nil
        pen = nil
        fullPen = nil
        penLink = .none
    }

    /// Returns the bytes that show `surface`; empty if the terminal already shows it.
    ///
    /// A surface whose size has changed is painted in full.
    mutating func render(_ surface: Surface) -> [UInt8] {
        bytes.removeAll(keepingCapacity: true)
        moves = 0
        var old = beginFrame(for: surface)
        var changes = changes(of: surface, over: old)
        let finder = ScrollFinder(old: old, new: surface)
        if let scroll = finder.best(changed: changes.map(\.columns)) {
            old = scrolled(old, rows: scroll.rows, by: scroll.count)
            changes = self.changes(of: surface, over: old)
        }
        for row in changes.indices where !changes[row].isEmpty {
            changes[row].widenToGlyphs(of: surface.cells(ofRow: row))
            renderRow(row, of: surface, changes[row])
        }
        setLink(.none, of: surface)
        let drawn = bytes.count
        placeCursor(surface.cursor, in: surface)
        shown = surface
        return framed(drawnCount: drawn)
    }

    /// Returns the surface that the terminal shows. If this surface is unknown or has another size
    /// than the new one, clears the terminal and returns a blank surface.
    private mutating func beginFrame(for surface: Surface) -> Surface {
        if let shown, shown.size == surface.size { return shown }
        forget()
        write("\u{1B}[m\u{1B}]8;;\u{1B}\\\u{1B}[H\u{1B}[2J")
        pen = .plain
        fullPen = .plain
        row = 0
        column = 0
        moves = 2
        return Surface(size: surface.size)
    }

    private mutating func scrolled(
        _ surface: Surface,
        rows: Range<Int>,
        by count: Int
    ) -> Surface {
        setPen(.plain)
        let isWhole = rows.count == surface.size.rows
        if !isWhole { write("\u{1B}[\(rows.lowerBound + 1);\(rows.upperBound)r") }
        write("\u{1B}[\(abs(count))\(count > 0 ? "S" : "T")")
        if !isWhole {
            // Setting margins moves the cursor to the upper left corner.
            write("\u{1B}[r")
            row = 0
            column = 0
        }
        moves = 2
        var moved = surface
        moved.scroll(rows: rows, by: count)
        return moved
    }

    // MARK: Rows

    /// Returns, for each row, the columns in which the surfaces differ.
    private func changes(of new: Surface, over old: Surface) -> [ChangedColumns] {
        // For each link of the new surface, the index of its address in the old surface; -1 if the
        // old surface does not contain the address.
        let oldLinks = new.links.map { address in old.index(ofLink: address) ?? -1 }
        let columns = new.size.columns
        var changes = Array(repeating: ChangedColumns(), count: new.size.rows)
        new.cells.withUnsafeBufferPointer { newCells in
            old.cells.withUnsafeBufferPointer { oldCells in
                for row in changes.indices {
                    for column in 0..<columns {
                        let index = row * columns + column
                        let isSame =
                            newCells[index].looksLike(oldCells[index])
                            && oldLinks[Int(newCells[index].link.index)]
                                == Int(oldCells[index].link.index)
                        if !isSame { changes[row].insert(column) }
                    }
                }
            }
        }
        return changes
    }

    private mutating func renderRow(_ row: Int, of new: Surface, _ dirty: ChangedColumns) {
        let columns = new.size.columns
        let start = row * columns
        let eraseFrom = columnToEraseFrom(in: new.cells(ofRow: row), dirty)
        var column = 0
        while column < eraseFrom {
            let cell = new.cells[start + column]
            let width = max(1, Int(cell.width))
            if dirty.contains(column) {
                approach(row: row, column: column, in: new)
                write(cell, at: column, of: new)
            }
            column += width
        }
        if eraseFrom < columns {
            approach(row: row, column: eraseFrom, in: new)
            setPen(.plain)
            setLink(.none, of: new)
            write("\u{1B}[K")
        }
    }

    /// Returns the column from which the renderer should erase to the end of the line instead of
    /// writing spaces. If erasing is not correct or not shorter, returns the number of columns.
    ///
    /// Erasing is used for the standard background only, because some terminals do not erase with
    /// the background colour.
    private func columnToEraseFrom(
        in cells: ArraySlice<Surface.Cell>,
        _ dirty: ChangedColumns
    ) -> Int {
        var blankFrom = cells.endIndex
        while blankFrom > cells.startIndex, cells[blankFrom - 1].isPlainBlank { blankFrom -= 1 }
        let first = dirty.first(from: blankFrom - cells.startIndex)
        guard let first, let last = dirty.last else { return cells.count }
        let eraseBytes = pen?.background == .standard ? 3 : 6
        return last - first + 1 > eraseBytes ? first : cells.count
    }

    // MARK: Text and style

    private mutating func write(_ cell: Surface.Cell, at column: Int, of surface: Surface) {
        if cell.style != fullPen || cell.link != penLink,
            !cell.isBlankIgnoringColor || !penSuitsBlank(cell) || penLink != .none
        {
            setLink(cell.link, of: surface)
            setPen(cell.style)
        }
        if options.isASCIIOnly, !cell.text.isASCII {
            bytes.append(
                contentsOf: repeatElement(UInt8(ascii: "?"), count: Int(cell.width))
            )
        } else if cell.isDoubtful {
            // Blanks the columns first. A terminal may draw the glyph narrower than measured, and
            // would then keep old text in the remaining columns.
            bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: Int(cell.width)))
            self.column = nil
            move(toRow: row ?? 0, column: column)
            write(cell.text)
            self.column = nil
            return
        } else {
            write(cell.text)
        }
        let next = column + Int(cell.width)
        // After the last column, the cursor position depends on the terminal.
        self.column = next < surface.size.columns ? next : nil
    }

    /// Returns whether a blank cell can be written with the current pen, because its foreground
    /// colour is invisible.
    private func penSuitsBlank(_ cell: Surface.Cell) -> Bool {
        guard let pen, pen.attributes.isDisjoint(with: .visibleOnSpace) else { return false }
        return pen.background == cell.style.reduced(to: options.depth).background
    }

    private mutating func setLink(_ link: Surface.LinkID, of surface: Surface) {
        guard options.hyperlinks, link != penLink else { return }
        penLink = link
        let address = surface.links[Int(link.index)]
        // The parts of a wrapped link have the same id, so the terminal treats them as one link.
        let parameters = address.isEmpty ? "" : "id=\(Self.linkName(address))"
        write("\u{1B}]8;\(parameters);\(address)\u{1B}\\")
    }

    /// Returns the FNV-1a hash of the address, which is the same in every frame.
    private static func linkName(_ address: String) -> String {
        var hash: UInt32 = 2_166_136_261
        for byte in address.utf8 { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return String(hash, radix: 36)
    }

    private mutating func setPen(_ style: Style) {
        guard style != fullPen else { return }
        fullPen = style
        let reduced = style.reduced(to: options.depth)
        guard reduced != pen else { return }
        write(SelectGraphicRendition.sequence(from: pen, to: reduced))
        pen = reduced
    }

    // MARK: Cursor

    private mutating func placeCursor(_ position: Position?, in surface: Surface) {
        if let position, surface.bounds.contains(position) {
            move(toRow: position.row, column: position.column)
            if isCursorVisible != true { write("\u{1B}[?25h") }
            isCursorVisible = true
        } else {
            if isCursorVisible != false { write("\u{1B}[?25l") }
            isCursorVisible = false
        }
    }

    /// Moves the cursor to a cell. If the cell is at most three columns to the right, writes the
    /// cells between again, because this takes no more bytes than a cursor move. The cells must be
    /// ASCII in the current style.
    private mutating func approach(row: Int, column: Int, in surface: Surface) {
        if row == self.row, let here = self.column, here < column, column - here <= 3 {
            let start = row * surface.size.columns
            let gap = surface.cells[start + here..<start + column]
            let isEasy = gap.allSatisfy { cell in
                cell.width == 1 && cell.text.isASCII && cell.link == penLink
                    && cell.style == fullPen
            }
            if isEasy {
                for cell in gap { write(cell.text) }
                self.column = column
                return
            }
        }
        move(toRow: row, column: column)
    }

    private mutating func move(toRow row: Int, column: Int) {
        guard row != self.row || column != self.column else { return }
        moves += 1
        bytes.append(
            contentsOf: CursorMove.shortest(
                from: (self.row, self.column),
                to: (row, column)
            ).utf8
        )
        self.row = row
        self.column = column
    }

    // MARK: Bytes

    /// Wraps the frame in synchronised output, unless it is a single run.
    private mutating func framed(drawnCount: Int) -> [UInt8] {
        guard drawnCount > 0, moves > 2, options.synchronizedOutput else { return bytes }
        return Array("\u{1B}[?2026h".utf8) + bytes + Array("\u{1B}[?2026l".utf8)
    }

    private mutating func write(_ text: String) { bytes.append(contentsOf: text.utf8) }

    private mutating func write(_ character: Character) {
        let utf8 = character.utf8
        if utf8.count == 1, let byte = utf8.first {
            bytes.append(byte)
        } else {
            bytes.append(contentsOf: utf8)
        }
    }
}

extension Surface.Cell {
    /// Whether the cell is a space that shows only its background.
    fileprivate var isBlankIgnoringColor: Bool {
        width == 1 && link == .none && style.attributes.isDisjoint(with: .visibleOnSpace)
            && text == " "
    }

    fileprivate var isPlainBlank: Bool {
        isBlankIgnoringColor && style.background == .standard
    }

    /// Returns whether both cells look the same. Ignores their links.
    func looksLike(_ other: Surface.Cell) -> Bool {
        guard text == other.text, width == other.width else { return false }
        return style == other.style
            || (isBlankIgnoringColor && other.isBlankIgnoringColor
                && style.background == other.style.background)
    }
}

/// The columns of one row that must be written again.
private struct ChangedColumns {
    private var flags: [Bool] = []
    private var first: Int?
    package private(set) var last: Int?

    /// The range from the first to the last changed column.
    var columns: ClosedRange<Int>? {
        guard let first, let last else { return nil }
        return first...last
    }

    var isEmpty: Bool { last == nil }

    func contains(_ column: Int) -> Bool { column < flags.count && flags[column] }

    func first(from column: Int) -> Int? {
        guard let last, column <= last else { return nil }
        return (column...last).first { flags[$0] }
    }

    mutating func insert(_ column: Int) {
        while flags.count <= column { flags.append(false) }
        flags[column] = true
        first = min(first ?? column, column)
        last = max(last ?? 0, column)
    }

    /// Adds the remaining columns of partly changed glyphs. Also adds the columns that a wider
    /// drawing of a doubtful glyph may cover.
    mutating func widenToGlyphs(of cells: ArraySlice<Surface.Cell>) {
        var column = 0
        while column < cells.count, column <= last ?? -1 {
            let cell = cells[cells.startIndex + column]
            let end = column + max(1, Int(cell.width))
            if (column..<end).contains(where: contains) {
                let widest = cell.isDoubtful ? column + Glyph(cell.text).widestWidth : end
                for covered in column..<min(max(end, widest), cells.count) { insert(covered) }
            }
            column = end
        }
    }
}
