import TambourTesting

@testable import TerminalKit

/// A random drawing step.
enum ScreenStep {
    case draw(String, Position, Style, link: String?, clip: Rect?)
    case fill(Rect, Style, Character)
    case box(Rect, Style)
    case restyle(Rect, Style)
    case scroll(Range<Int>, Int)
    case cursor(Position?)
    case clear
    case resize(Size)
    /// Something destroyed what the terminal shows.
    case damage
    case show

    static func size(_ random: inout SeededGenerator) -> Size {
        Size(columns: random.int(1..<40), rows: random.int(1..<14))
    }

    static func random(_ random: inout SeededGenerator, _ size: Size) -> ScreenStep {
        switch random.int(0..<20) {
        case 0: .fill(rect(&random, size), style(&random), random.pick([" ", "x", "░", "漢"]))
        case 1: .box(rect(&random, size), style(&random))
        case 2: .restyle(rect(&random, size), style(&random))
        case 3:
            .scroll(
                random.int(0..<3)..<max(3, size.rows - random.int(0..<3)),
                random.int(-3..<4)
            )
        case 4: .cursor(random.chance(1, in: 4) ? nil : position(&random, size))
        case 5 where random.chance(1, in: 2): .clear
        case 6 where random.chance(1, in: 8): .damage
        case 7...10: .show
        default:
            .draw(
                (0..<random.int(1..<4)).map { _ in random.pick(HardText.samples) }.joined(
                    separator: random.pick(["", " "])
                ),
                position(&random, size),
                style(&random),
                link: random.chance(1, in: 5)
                    ? random.pick(["https://a.example/", "https://b.example/?q=1"]) : nil,
                clip: random.chance(1, in: 4) ? rect(&random, size) : nil
            )
        }
    }

    private static func position(_ random: inout SeededGenerator, _ size: Size) -> Position {
        Position(column: random.int(-3..<size.columns + 1), row: random.int(-1..<size.rows + 1))
    }

    private static func rect(_ random: inout SeededGenerator, _ size: Size) -> Rect {
        let position = position(&random, size)
        return Rect(
            column: position.column,
            row: position.row,
            columns: random.int(0..<size.columns + 2),
            rows: random.int(0..<size.rows + 2)
        )
    }

    private static func style(_ random: inout SeededGenerator) -> Style {
        if random.chance(1, in: 2) { return .plain }
        let colors: [Style.Color] = [
            .standard, .standard, .ansi(1), .ansi(12), .palette(200), .rgb(10, 200, 30),
        ]
        return Style(
            random.pick(colors),
            on: random.pick(colors),
            random.chance(1, in: 2)
                ? [] : Style.Attributes(rawValue: UInt8(random.int(0..<64)))
        )
    }
}

/// A surface on which a test plays drawing steps.
struct Screen {
    var surface = Surface(size: Size(columns: 10, rows: 4))

    mutating func draw(_ step: ScreenStep) {
        switch step {
        case .draw(let text, let position, let style, let address, let clip):
            let link = address.map { surface.link(to: $0) } ?? .none
            surface.draw(text, at: position, style: style, link: link, in: clip)
        case .fill(let rect, let style, let character):
            surface.fill(rect, style: style, with: character)
        case .box(let rect, let style): surface.drawBox(rect, title: "Заголовок", style: style)
        case .restyle(let rect, let style): surface.restyle(rect, with: style)
        case .scroll(let rows, let count):
            surface.scroll(rows: rows.clamped(to: 0..<surface.size.rows), by: count)
        case .cursor(let position): surface.cursor = position
        case .clear:
            let cursor = surface.cursor
            surface = Surface(size: surface.size)
            surface.cursor = cursor
        case .resize(let size): surface = Surface(size: size)
        case .damage, .show: break
        }
    }
}
