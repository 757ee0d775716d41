/// Finds rows that can be scrolled, so that most of them need not be written again.
package struct ScrollFinder {
    package struct Scroll: Equatable {
        /// The rows that move. They move in their full width, because few terminals support left
        /// and right margins.
        package var rows: Range<Int>
        /// The number of rows to move up; negative to move down.
        package var count: Int
    }

    private let old: Surface
    private let new: Surface

    /// - Precondition: Both surfaces have the same size.
    package init(old: Surface, new: Surface) {
        self.old = old
        self.new = new
    }

    /// Returns a scroll of the changed rows by the likeliest shift; nil if this scroll does not
    /// save enough cells.
    ///
    /// - Parameter changed: For each row, the range of columns that changed.
    func best(changed: [ClosedRange<Int>?]) -> Scroll? {
        guard let area = area(of: changed), area.rows >= 3 else { return nil }
        let rows = area.row..<area.endRow
        let count = likeliestShift(of: area)
        guard count != 0 else { return nil }
        let before = rows.reduce(0) { $0 + changedCells(ofRow: $1, over: $1) }
        let after = rows.reduce(0) { sum, row in
            sum + changedCells(ofRow: row, over: rows.contains(row + count) ? row + count : nil)
        }
        return after + Self.worthwhileCells < before ? Scroll(rows: rows, count: count) : nil
    }

    /// The number of cells that a scroll must save. A scroll costs about fifteen bytes, and rows
    /// that move distract the user.
    private static let worthwhileCells = 40

    /// Returns the smallest rectangle around all changes.
    private func area(of changed: [ClosedRange<Int>?]) -> Rect? {
        let columns = changed.compactMap(\.self)
        guard let first = columns.map(\.lowerBound).min(),
            let last = columns.map(\.upperBound).max(),
            let top = changed.firstIndex(where: { $0 != nil }),
            let bottom = changed.lastIndex(where: { $0 != nil })
        else { return nil }
        return Rect(column: first, row: top, columns: last - first + 1, rows: bottom - top + 1)
    }

    /// Returns the shift that matches the most non-blank rows; zero if few match.
    private func likeliestShift(of area: Rect) -> Int {
        let oldPrints = fingerprints(of: old, in: area)
        let newPrints = fingerprints(of: new, in: area)
        let written = newPrints.indices.filter { newPrints[$0] != nil }
        var best = (count: 0, matches: max(1, written.count / 3))
        for distance in 1..<area.rows {
            for count in [distance, -distance] {
                var matches = 0
                for row in written where oldPrints.indices.contains(row + count) {
                    if newPrints[row] == oldPrints[row + count] { matches += 1 }
                }
                if matches > best.matches { best = (count, matches) }
            }
        }
        return best.count
    }

    /// Returns a hash of the text of each row of `area`; nil for blank rows.
    ///
    /// If two texts have the same hash, the output may be longer, but it stays correct.
    private func fingerprints(of surface: Surface, in area: Rect) -> [UInt64?] {
        surface.cells.withUnsafeBufferPointer { cells in
            (area.row..<area.endRow).map { row in
                let start = row * surface.size.columns
                var isBlank = true
                var print: UInt64 = 14_695_981_039_346_656_037
                for index in start + area.column..<start + area.endColumn {
                    let scalar = cells[index].text.unicodeScalars.first?.value ?? 0
                    if scalar != 0x20 { isBlank = false }
                    print = (print ^ UInt64(scalar)) &* 1_099_511_628_211
                }
                return isBlank ? nil : print
            }
        }
    }

    /// Returns the number of cells in a new row that differ from the old row `oldRow`; from a blank
    /// row if `oldRow` is nil.
    private func changedCells(ofRow row: Int, over oldRow: Int?) -> Int {
        let columns = new.size.columns
        return new.cells.withUnsafeBufferPointer { newCells in
            old.cells.withUnsafeBufferPointer { oldCells in
                (0..<columns).count { column in
                    let before = oldRow.map { oldCells[$0 * columns + column] } ?? .blank
                    return !newCells[row * columns + column].looksLike(before)
                }
            }
        }
    }
}
