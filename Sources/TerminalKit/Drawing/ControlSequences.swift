/// The shortest way to move the cursor (ECMA-48: CUP, CHA, CUF, CUB, CUU, CUD and control codes).
package enum CursorMove {
    /// - Parameters:
    ///   - from: The position of the cursor, counted from zero; nil if unknown.
    ///   - to: The target cell, which is not the cell of the cursor.
    static func shortest(
        from: (row: Int?, column: Int?),
        to: (row: Int, column: Int)
    ) -> String {
        var candidates = [absolute(row: to.row, column: to.column)]
        if let row = from.row {
            let vertical = self.vertical(by: to.row - row)
            if row == to.row { candidates.append("\u{1B}[\(argument(to.column + 1))G") }
            if to.column == 0 {
                candidates.append("\r" + (to.row == row + 1 ? "\n" : vertical))
            }
            if let column = from.column {
                candidates.append(vertical + horizontal(by: to.column - column))
            }
        }
        return candidates.min { $0.utf8.count < $1.utf8.count } ?? ""
    }

    private static func absolute(row: Int, column: Int) -> String {
        switch (row, column) {
        case (0, 0): "\u{1B}[H"
        case (_, 0): "\u{1B}[\(row + 1)H"
        default: "\u{1B}[\(argument(row + 1));\(column + 1)H"
        }
    }

    private static func vertical(by count: Int) -> String {
        count == 0 ? "" : "\u{1B}[\(argument(abs(count)))\(count > 0 ? "B" : "A")"
    }

    private static func horizontal(by count: Int) -> String {
        switch count {
        case 0: ""
        case -3..<0: String(repeating: "\u{8}", count: -count)
        default: "\u{1B}[\(argument(abs(count)))\(count > 0 ? "C" : "D")"
        }
    }

    /// Returns a number as a parameter of a sequence; empty for one, which is the default.
    private static func argument(_ value: Int) -> String { value == 1 ? "" : String(value) }
}

/// SGR (ECMA-48 8.3.117, colours according to ISO 8613-6, in xterm's notation).
package enum SelectGraphicRendition {
    /// Returns the shorter of two sequences. One changes only the attributes that differ; the other
    /// resets the style and sets all attributes.
    ///
    /// - Parameters:
    ///   - old: The current style; nil if unknown.
    package static func sequence(from old: Style?, to new: Style) -> String {
        let whole = parameters(from: .plain, to: new)
        let reset = "\u{1B}[" + (whole.isEmpty ? "" : (["0"] + whole).joined(separator: ";")) + "m"
        guard let old else { return reset }
        let change = "\u{1B}[" + parameters(from: old, to: new).joined(separator: ";") + "m"
        return change.utf8.count < reset.utf8.count ? change : reset
    }

    private static func parameters(from old: Style, to new: Style) -> [String] {
        var codes: [String] = []
        var kept = old.attributes
        for (code, attributes) in endings
        where !kept.subtracting(new.attributes).isDisjoint(
            with: attributes
        ) {
            codes.append(code)
            kept.subtract(attributes)
        }
        for (code, attribute) in beginnings
        where new.attributes.contains(attribute) && !kept.contains(attribute) {
            codes.append(code)
        }
        if old.foreground != new.foreground {
            codes.append(color(new.foreground, base: 30, bright: 90, extended: 38, standard: 39))
        }
        if old.background != new.background {
            codes.append(color(new.background, base: 40, bright: 100, extended: 48, standard: 49))
        }
        return codes
    }

    /// One code ends both bold and dim.
    private static let endings: [(String, Style.Attributes)] = [
        ("22", [.bold, .dim]), ("23", .italic), ("24", .underline), ("27", .reverse),
        ("29", .strikethrough),
    ]

    private static let beginnings: [(String, Style.Attributes)] = [
        ("1", .bold), ("2", .dim), ("3", .italic), ("4", .underline), ("7", .reverse),
        ("9", .strikethrough),
    ]

    private static func color(
        _ color: Style.Color,
        base: Int,
        bright: Int,
        extended: Int,
        standard: Int
    ) -> String {
        switch color {
        case .standard: "\(standard)"
        case .ansi(let index) where index < 8: "\(base + Int(index))"
        case .ansi(let index): "\(bright + Int(index & 7))"
        case .palette(let index): "\(extended);5;\(index)"
        case .rgb(let red, let green, let blue): "\(extended);2;\(red);\(green);\(blue)"
        }
    }
}
