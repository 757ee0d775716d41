/// A number of columns and rows of cells.
package struct Size: Hashable, Sendable {
    package var columns: Int
    package var rows: Int

    package init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }
}

/// A cell of the screen. Column and row count from zero at the upper left corner.
package struct Position: Hashable, Sendable {
    package var column: Int
    package var row: Int

    package init(column: Int, row: Int) {
        self.column = column
        self.row = row
    }
}

/// A rectangle of cells. A rectangle without columns or rows is empty.
package struct Rect: Hashable, Sendable {
    package var column: Int
    package var row: Int
    package var columns: Int
    package var rows: Int

    package init(column: Int, row: Int, columns: Int, rows: Int) {
        self.column = column
        self.row = row
        self.columns = max(0, columns)
        self.rows = max(0, rows)
    }

    package init(_ size: Size) {
        self.init(column: 0, row: 0, columns: size.columns, rows: size.rows)
    }

    package var origin: Position { Position(column: column, row: row) }
    package var size: Size { Size(columns: columns, rows: rows) }
    package var endColumn: Int { column + columns }
    package var endRow: Int { row + rows }
    package var isEmpty: Bool { columns == 0 || rows == 0 }

    package func contains(_ position: Position) -> Bool {
        (column..<endColumn).contains(position.column) && (row..<endRow).contains(position.row)
    }

    package func intersection(_ other: Rect) -> Rect {
        let column = max(column, other.column)
        let row = max(row, other.row)
        return Rect(
            column: column,
            row: row,
            columns: min(endColumn, other.endColumn) - column,
            rows: min(endRow, other.endRow) - row
        )
    }

    /// The rectangle within a border of one cell.
    package var inside: Rect {
        Rect(column: column + 1, row: row + 1, columns: columns - 2, rows: rows - 2)
    }

    /// Removes the upper `count` rows from this rectangle and returns them.
    package mutating func takeTop(_ count: Int) -> Rect {
        let taken = Rect(column: column, row: row, columns: columns, rows: min(count, rows))
        self = Rect(
            column: column,
            row: row + taken.rows,
            columns: columns,
            rows: rows - taken.rows
        )
        return taken
    }

    /// Removes the lower `count` rows from this rectangle and returns them.
    package mutating func takeBottom(_ count: Int) -> Rect {
        let count = min(max(0, count), rows)
        rows -= count
        return Rect(column: column, row: endRow, columns: columns, rows: count)
    }

    /// Removes the leftmost `count` columns from this rectangle and returns them.
    package mutating func takeLeft(_ count: Int) -> Rect {
        let taken = Rect(column: column, row: row, columns: min(count, columns), rows: rows)
        self = Rect(
            column: column + taken.columns,
            row: row,
            columns: columns - taken.columns,
            rows: rows
        )
        return taken
    }

    /// Removes the rightmost `count` columns from this rectangle and returns them.
    package mutating func takeRight(_ count: Int) -> Rect {
        let count = min(max(0, count), columns)
        columns -= count
        return Rect(column: endColumn, row: row, columns: count, rows: rows)
    }
}
