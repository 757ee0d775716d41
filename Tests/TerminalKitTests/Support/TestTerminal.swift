@testable import TerminalKit

/// A strict terminal that follows the renderer's output.
///
/// Unknown sequences, control characters, and combining marks without a base are violations. Where
/// the behaviour of real terminals differs, cells become poison. A poisoned cell equals no cell of
/// a surface. This concerns the rest of a wide glyph that is partly overwritten, and the contents
/// after a resize.
struct TestTerminal {
    enum Widths {
        /// Forms grapheme clusters, with the same widths as `Glyph`.
        case clusters
        /// Counts every scalar by libc's table, as older terminals do.
        case scalars
    }

    struct Cell: Equatable {
        var text = " "
        /// The width of the glyph in columns; zero in the later columns of a wide glyph.
        var width = 1
        var style = Style.plain
        var link = ""

        static let poison = Cell(text: "☠", width: 1, style: Style(.rgb(1, 2, 3)), link: "?")
    }

    let widths: Widths
    private(set) var size: Size
    private(set) var cells: [Cell]
    private(set) var row = 0
    private(set) var column = 0
    private(set) var isCursorVisible = true
    private(set) var modes: Set<Int> = []
    private(set) var bells = 0
    /// The payloads of OSC sequences, except the sequences for hyperlinks.
    private(set) var messages: [String] = []
    private(set) var violations: [String] = []

    private var pen = Style.plain
    private var link = ""
    private var margins: Range<Int>
    /// The position of the last printed scalar; nil after the cursor has moved.
    private var last: (row: Int, column: Int)?
    private var pending: [UInt8] = []

    init(size: Size, widths: Widths = .clusters) {
        self.size = size
        self.widths = widths
        cells = Array(repeating: .poison, count: size.columns * size.rows)
        margins = 0..<size.rows
    }

    /// Destroys the contents and moves the cursor to an arbitrary place.
    mutating func resize(to size: Size) {
        self = TestTerminal(size: size, widths: widths)
        row = max(0, size.rows - 1)
        pen = Style(.ansi(1), on: .ansi(2), .underline)
    }

    subscript(column: Int, row: Int) -> Cell {
        get { cells[row * size.columns + column] }
        set { cells[row * size.columns + column] = newValue }
    }

    func text(ofRow row: Int) -> String {
        (0..<size.columns).map { self[$0, row] }.filter { $0.width > 0 }.map(\.text).joined()
    }

    /// Interprets bytes. The caller may split the bytes anywhere, even inside a sequence.
    mutating func feed(_ bytes: some Sequence<UInt8>) {
        pending += bytes
        guard let whole = String(validating: pending, as: UTF8.self) else { return }
        var scalars = Array(whole.unicodeScalars)[...]
        while !scalars.isEmpty {
            let rest = scalars
            guard interpret(&scalars) else {
                pending = Array(String(String.UnicodeScalarView(rest)).utf8)
                return
            }
        }
        pending = []
    }

    /// Compares the terminal with `surface`, whose colours are reduced to `depth`. Returns the
    /// first violation, or else the first difference, or nil.
    func difference(from surface: Surface, depth: ColorDepth = .trueColor) -> String? {
        if let violation = violations.first { return violation }
        if size != surface.size { return "the size is \(size)" }
        for row in 0..<size.rows {
            for column in 0..<size.columns {
                let lead = leadColumn(of: column, row, in: surface)
                if widths == .scalars, surface[lead, row].isDoubtful { continue }
                let expected = self.expected(surface[column, row], surface, depth)
                let found = Self.normalized(self[column, row])
                if found != expected {
                    return "row \(row), column \(column): \(found) instead of \(expected)"
                }
            }
        }
        guard let cursor = surface.cursor, surface.bounds.contains(cursor) else {
            return isCursorVisible ? "the cursor is visible" : nil
        }
        if !isCursorVisible { return "the cursor is hidden" }
        if cursor != Position(column: column, row: row) {
            return "the cursor is at \(column), \(row) instead of \(cursor)"
        }
        return nil
    }

    private func leadColumn(of column: Int, _ row: Int, in surface: Surface) -> Int {
        var column = column
        while column > 0, surface[column, row].width == 0 { column -= 1 }
        return column
    }

    private func expected(_ cell: Surface.Cell, _ surface: Surface, _ depth: ColorDepth) -> Cell {
        Self.normalized(
            Cell(
                text: cell.width == 0 ? "" : String(cell.text),
                width: Int(cell.width),
                style: cell.style.reduced(to: depth),
                link: surface.links[Int(surfaceLinkIndex(cell))]
            )
        )
    }

    private func surfaceLinkIndex(_ cell: Surface.Cell) -> UInt16 { cell.link.index }

    /// Returns a cell without the properties that a comparison ignores. A blank keeps only its
    /// background. A later cell of a wide glyph keeps nothing.
    private static func normalized(_ cell: Cell) -> Cell {
        var cell = cell
        if cell.width == 0 { return Cell(text: "", width: 0) }
        if cell.text == " ", cell.style.attributes.isDisjoint(with: .visibleOnSpace) {
            cell.style = Style(.standard, on: cell.style.background)
        }
        return cell
    }

    // MARK: Interpreting

    private mutating func violate(_ what: String) { violations.append(what) }

    /// - Returns: Whether the sequence was complete.
    private mutating func interpret(_ scalars: inout ArraySlice<Unicode.Scalar>) -> Bool {
        guard let scalar = scalars.popFirst() else { return true }
        switch scalar {
        case "\u{1B}": return interpretEscape(&scalars)
        case "\r": moveTo(row, 0)
        case "\n":
            if row == size.rows - 1 { violate("a line feed scrolled the screen") }
            moveTo(row + 1, column)
        case "\u{8}": moveTo(row, column - 1)
        case "\u{7}": bells += 1
        case "\u{18}": break
        default: put(scalar)
        }
        return true
    }

    private mutating func interpretEscape(_ scalars: inout ArraySlice<Unicode.Scalar>) -> Bool {
        guard let kind = scalars.popFirst() else { return false }
        switch kind {
        case "[":
            var parameters = ""
            while let scalar = scalars.popFirst() {
                if scalar.value >= 0x40, scalar.value < 0x7F {
                    control(parameters, Character(scalar))
                    return true
                }
                parameters.unicodeScalars.append(scalar)
            }
            return false
        case "]":
            var payload = ""
            while let scalar = scalars.popFirst() {
                if scalar == "\u{1B}" {
                    guard let next = scalars.popFirst() else { return false }
                    if next != "\\" { violate("a string ended with ESC \(next)") }
                    command(payload)
                    return true
                }
                if scalar.properties.generalCategory == .control { violate("a control in OSC") }
                payload.unicodeScalars.append(scalar)
            }
            return false
        default:
            violate("ESC \(kind)")
            return true
        }
    }

    private mutating func command(_ payload: String) {
        guard payload.hasPrefix("8;") else {
            messages.append(payload)
            return
        }
        let parts = payload.split(separator: ";", maxSplits: 2, omittingEmptySubsequences: false)
        if parts.count != 3 { return violate("a hyperlink of \(parts.count) parts") }
        link = String(parts[2])
        if !link.isEmpty, !parts[1].hasPrefix("id=") { violate("a hyperlink without id") }
        if !parts[2].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { violate("an unsafe hyperlink") }
    }

    private mutating func control(_ parameters: String, _ final: Character) {
        let isPrivate = parameters.hasPrefix("?")
        let numbers = parameters.drop { $0 == "?" }.split(
            separator: ";",
            omittingEmptySubsequences: false
        ).map { Int($0) ?? 0 }
        let first = numbers.first ?? 0
        let count = max(1, first)
        switch (final, isPrivate) {
        case ("H", false):
            moveTo(count - 1, max(1, numbers.count > 1 ? numbers[1] : 1) - 1)
        case ("G", false): moveTo(row, count - 1)
        case ("A", false): moveTo(row - count, column)
        case ("B", false): moveTo(row + count, column)
        case ("C", false): moveTo(row, column + count)
        case ("D", false): moveTo(row, column - count)
        case ("K", false) where first == 0: erase(column..<size.columns, row)
        case ("J", false) where first == 2:
            for row in 0..<size.rows { erase(0..<size.columns, row) }
        case ("S", false): scroll(by: count)
        case ("T", false): scroll(by: -count)
        case ("r", false):
            let top = count - 1
            let bottom = numbers.count > 1 ? numbers[1] : size.rows
            if top >= bottom - 1 || bottom > size.rows { return violate("margins \(parameters)") }
            margins = top..<bottom
            moveTo(0, 0)
        case ("m", false): selectGraphicRendition(numbers[...])
        case ("t", false), ("h", false), ("l", false): break
        case ("h", true):
            modes.insert(first)
            if first == 25 { isCursorVisible = true }
        case ("l", true):
            modes.remove(first)
            if first == 25 { isCursorVisible = false }
        default: violate("CSI \(parameters) \(final)")
        }
    }

    private mutating func selectGraphicRendition(_ parameters: ArraySlice<Int>) {
        var rest = parameters.isEmpty ? [0] : parameters
        let pairs: [Int: Style.Attributes] = [
            1: .bold, 2: .dim, 3: .italic, 4: .underline, 7: .reverse, 9: .strikethrough,
        ]
        while let code = rest.popFirst() {
            switch code {
            case 0: pen = .plain
            case 22: pen.attributes.subtract([.bold, .dim])
            case 23, 24, 27, 29: pen.attributes.subtract(pairs[code - 20] ?? [])
            case 30...37: pen.foreground = .ansi(UInt8(code - 30))
            case 90...97: pen.foreground = .ansi(UInt8(code - 82))
            case 40...47: pen.background = .ansi(UInt8(code - 40))
            case 100...107: pen.background = .ansi(UInt8(code - 92))
            case 39: pen.foreground = .standard
            case 49: pen.background = .standard
            case 38: pen.foreground = extendedColor(&rest)
            case 48: pen.background = extendedColor(&rest)
            default:
                if let attribute = pairs[code] {
                    pen.attributes.insert(attribute)
                } else {
                    violate("SGR \(code)")
                }
            }
        }
    }

    private mutating func extendedColor(_ rest: inout ArraySlice<Int>) -> Style.Color {
        switch rest.popFirst() {
        case 5: return .palette(UInt8(rest.popFirst() ?? 0))
        case 2:
            return .rgb(
                UInt8(rest.popFirst() ?? 0),
                UInt8(rest.popFirst() ?? 0),
                UInt8(rest.popFirst() ?? 0)
            )
        default:
            violate("an unknown kind of colour")
            return .standard
        }
    }

    // MARK: Cells

    private mutating func moveTo(_ row: Int, _ column: Int) {
        self.row = min(max(0, row), size.rows - 1)
        self.column = min(max(0, column), size.columns - 1)
        last = nil
    }

    private mutating func erase(_ columns: Range<Int>, _ row: Int) {
        for column in columns { clear(column, row) }
        for column in columns {
            self[column, row] = Cell(style: Style(.standard, on: pen.background))
        }
        last = nil
    }

    private mutating func scroll(by count: Int) {
        let old = self
        for row in margins {
            for column in 0..<size.columns {
                self[column, row] =
                    margins.contains(row + count)
                    ? old[column, row + count] : Cell(style: Style(.standard, on: pen.background))
            }
        }
        last = nil
    }

    /// Poisons a glyph that covers this cell, if the glyph is wide.
    private mutating func clear(_ column: Int, _ row: Int) {
        var lead = column
        while lead > 0, self[lead, row].width == 0 { lead -= 1 }
        let width = self[lead, row].width
        guard width > 1 else { return }
        for covered in lead..<min(lead + width, size.columns) { self[covered, row] = .poison }
    }

    private mutating func put(_ scalar: Unicode.Scalar) {
        let properties = scalar.properties
        if properties.generalCategory == .control || properties.isBidiControl {
            return violate("the control U+\(String(scalar.value, radix: 16)) was printed")
        }
        if let last {
            let before = self[last.column, last.row]
            let joined = before.text + String(scalar)
            if widths == .clusters, joined.count == 1 {
                place(joined, width: Glyph(Character(joined)).width, last.row, last.column)
                return
            }
            if widths == .scalars, Width.ofScalar(scalar) == 0 {
                self[last.column, last.row].text = joined
                return
            }
        }
        var width = Width.ofScalar(scalar)
        if widths == .clusters { width = Glyph(Character(scalar)).width }
        if Width.ofScalar(scalar) == 0 { violate("U+\(String(scalar.value, radix: 16)) alone") }
        width = max(1, width)
        place(String(scalar), width: width, row, column)
    }

    private mutating func place(_ text: String, width: Int, _ row: Int, _ column: Int) {
        let end = column + width
        if end > size.columns {
            // The terminal does not wrap. A glyph that does not fit destroys the last column.
            if widths == .clusters { violate("\(text) does not fit") }
            clear(size.columns - 1, row)
            self[size.columns - 1, row] = .poison
            moveTo(row, size.columns - 1)
            last = (row, size.columns - 1)
            return
        }
        for covered in column..<end { clear(covered, row) }
        for covered in column..<end {
            self[covered, row] = Cell(text: " ", width: 0, style: pen, link: link)
        }
        self[column, row] = Cell(text: text, width: width, style: pen, link: link)
        last = (row, column)
        self.row = row
        self.column = min(end, size.columns - 1)
    }
}
