/// A number of columns and rows of cells.
struct Size: Hashable, Sendable {
    var columns: Int
    var rows: Int
}

/// A cell of the screen, counted from the upper left corner, both from zero.
struct Position: Hashable, Sendable {
    var column: Int
    var row: Int
}

/// A rectangle of cells. One without columns or rows is empty.
struct Rect: Hashable, Sendable {
    var column: Int
    var row: Int
    var columns: Int
    var rows: Int

    init(column: Int, row: Int, columns: Int, rows: Int) {
        self.column = column
        self.row = row
        self.columns = max(0, columns)
        self.rows = max(0, rows)
    }

    init(_ size: Size) {
        self.init(column: 0, row: 0, columns: size.columns, rows: size.rows)
    }

    var origin: Position { Position(column: column, row: row) }
    var size: Size { Size(columns: columns, rows: rows) }
    var endColumn: Int { column + columns }
    var endRow: Int { row + rows }
    var isEmpty: Bool { columns == 0 || rows == 0 }

    func contains(_ position: Position) -> Bool {
        (column..<endColumn).contains(position.column) && (row..<endRow).contains(position.row)
    }

    func intersection(_ other: Rect) -> Rect {
        let column = max(column, other.column)
        let row = max(row, other.row)
        return Rect(
            column: column,
            row: row,
            columns: min(endColumn, other.endColumn) - column,
            rows: min(endRow, other.endRow) - row
        )
    }

    /// The rectangle inside a border of one cell.
    var inside: Rect {
        Rect(column: column + 1, row: row + 1, columns: columns - 2, rows: rows - 2)
    }

    /// Cuts the upper `count` rows off and returns them.
    mutating func takeTop(_ count: Int) -> Rect {
        let taken = Rect(column: column, row: row, columns: columns, rows: min(count, rows))
        self = Rect(
            column: column,
            row: row + taken.rows,
            columns: columns,
            rows: rows - taken.rows
        )
        return taken
    }

    /// Cuts the lower `count` rows off and returns them.
    mutating func takeBottom(_ count: Int) -> Rect {
        let count = min(max(0, count), rows)
        rows -= count
        return Rect(column: column, row: endRow, columns: columns, rows: count)
    }

    /// Cuts the `count` columns at the left off and returns them.
    mutating func takeLeft(_ count: Int) -> Rect {
        let taken = Rect(column: column, row: row, columns: min(count, columns), rows: rows)
        self = Rect(
            column: column + taken.columns,
            row: row,
            columns: columns - taken.columns,
            rows: rows
        )
        return taken
    }

    /// Cuts the `count` columns at the right off and returns them.
    mutating func takeRight(_ count: Int) -> Rect {
        let count = min(max(0, count), columns)
        columns -= count
        return Rect(column: endColumn, row: row, columns: count, rows: rows)
    }
}
