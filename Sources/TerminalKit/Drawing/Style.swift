/// The colours and attributes of a cell.
package struct Style: Hashable, Sendable {
    package enum Color: Hashable, Sendable {
        /// The terminal's default colour.
        case standard
        /// One of the sixteen colours of the terminal's own scheme, 0 to 15.
        case ansi(UInt8)
        /// One of xterm's 256 colours.
        case palette(UInt8)
        case rgb(UInt8, UInt8, UInt8)
    }

    package struct Attributes: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let bold = Attributes(rawValue: 1 << 0)
        static let dim = Attributes(rawValue: 1 << 1)
        package static let italic = Attributes(rawValue: 1 << 2)
        package static let underline = Attributes(rawValue: 1 << 3)
        package static let reverse = Attributes(rawValue: 1 << 4)
        package static let strikethrough = Attributes(rawValue: 1 << 5)

        /// The attributes that are visible on a space.
        static let visibleOnSpace: Attributes = [.underline, .reverse, .strikethrough]
    }

    package static let plain = Style()

    var foreground = Color.standard
    var background = Color.standard
    package var attributes: Attributes = []

    package init(
        _ foreground: Color = .standard,
        on background: Color = .standard,
        _ attributes: Attributes = []
    ) {
        self.foreground = foreground
        self.background = background
        self.attributes = attributes
    }

    /// Returns this style overlaid with `other`. The colours that `other` sets replace the colours
    /// of this style, and the attributes of `other` are added.
    func overlaid(with other: Style) -> Style {
        Style(
            other.foreground == .standard ? foreground : other.foreground,
            on: other.background == .standard ? background : other.background,
            attributes.union(other.attributes)
        )
    }

    /// Returns the nearest style that a terminal of this depth can show.
    func reduced(to depth: ColorDepth) -> Style {
        Style(
            foreground.reduced(to: depth),
            on: background.reduced(to: depth),
            attributes
        )
    }
}

/// The number of colours that a terminal supports.
package enum ColorDepth: Int, Comparable, Sendable {
    case monochrome
    case ansi16
    case palette256
    case trueColor

    package static func < (first: ColorDepth, second: ColorDepth) -> Bool {
        first.rawValue < second.rawValue
    }

    /// Detects the depth from the environment: `NO_COLOR` (https://no-color.org), `COLORTERM`,
    /// `TERM`.
    package static func detect(_ environment: [String: String]) -> ColorDepth {
        if let refusal = environment["NO_COLOR"], !refusal.isEmpty { return .monochrome }
        let terminal = environment["TERM"] ?? ""
        if terminal.isEmpty || terminal == "dumb" || terminal.hasPrefix("vt") { return .monochrome }
        let promise = environment["COLORTERM"]?.lowercased()
        if promise == "truecolor" || promise == "24bit" { return .trueColor }
        if terminal.hasSuffix("-direct") || terminal.hasSuffix("-truecolor") { return .trueColor }
        if terminal.hasSuffix("-256color") { return .palette256 }
        if terminal.hasSuffix("-mono") || terminal.hasSuffix("-m") { return .monochrome }
        return .ansi16
    }
}

extension Style.Color {
    fileprivate func reduced(to depth: ColorDepth) -> Style.Color {
        switch (self, depth) {
        case (.standard, _), (_, .trueColor), (.palette, .palette256), (.ansi, .palette256),
            (.ansi, .ansi16):
            self
        case (_, .monochrome): .standard
        case (.rgb(let red, let green, let blue), .palette256):
            .palette(Self.nearest(to: (Int(red), Int(green), Int(blue)), in: 16..<256))
        case (.rgb(let red, let green, let blue), .ansi16):
            .ansi(Self.nearest(to: (Int(red), Int(green), Int(blue)), in: 0..<16))
        case (.palette(let index), .ansi16):
            .ansi(Self.nearest(to: Self.components(of: index), in: 0..<16))
        }
    }

    private static func nearest(to color: (Int, Int, Int), in candidates: Range<Int>) -> UInt8 {
        var best = (distance: Int.max, index: UInt8(0))
        for candidate in candidates {
            let index = UInt8(candidate)
            let other = components(of: index)
            let (red, green, blue) = (color.0 - other.0, color.1 - other.1, color.2 - other.2)
            // The eye is most sensitive to green and least to blue.
            let distance = 3 * red * red + 4 * green * green + 2 * blue * blue
            if distance < best.distance { best = (distance, index) }
        }
        return best.index
    }

    /// Returns the red, green and blue components of an entry of xterm's palette. The palette
    /// contains sixteen named colours, then a colour cube with six steps per component, then greys.
    private static func components(of index: UInt8) -> (Int, Int, Int) {
        switch Int(index) {
        case let named where named < 16: sixteen[named]
        case let grey where grey >= 232:
            (8 + (grey - 232) * 10, 8 + (grey - 232) * 10, 8 + (grey - 232) * 10)
        case let cube:
            (
                cubeStep((cube - 16) / 36), cubeStep((cube - 16) / 6 % 6),
                cubeStep((cube - 16) % 6)
            )
        }
    }

    private static func cubeStep(_ step: Int) -> Int { step == 0 ? 0 : 55 + step * 40 }

    private static let sixteen: [(Int, Int, Int)] = [
        (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0),
        (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229),
        (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0),
        (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255),
    ]
}
