/// The styles of all parts of the screen, by role.
package struct Theme: Sendable {
    package enum Role: CaseIterable, Sendable {
        case text
        /// Times, counts and hints, which are less important.
        case secondary
        case title
        case border
        case statusBar
        case selection
        case unread
        case accent
        case success
        case warning
        case error
        case link
        case linkNumber
        case mention
        case monospace
        case quote
        case match
    }

    package let name: String
    private let styles: [Role: Style]
    private let people: [Style]

    package subscript(role: Role) -> Style { styles[role] ?? .plain }

    /// Returns the style of a person's name. The same person has the same style everywhere.
    package func style(ofPerson id: Int64) -> Style {
        guard !people.isEmpty else { return .plain }
        let mixed = UInt64(bitPattern: id) &* 0x9E37_79B9_7F4A_7C15
        return people[Int(mixed >> 32) % people.count]
    }

    /// Whether the theme has no styles. The program must then mark the selection with characters.
    var isPlain: Bool { styles.values.allSatisfy { $0 == .plain } }

    /// Returns the style of text with these traits on `base`.
    package func style(of traits: TextTraits, on base: Style) -> Style {
        // A theme without styles must show formatted messages without styles too.
        guard !traits.isEmpty, !isPlain else { return base }
        var style = base
        if traits.contains(.quote) { style = style.overlaid(with: self[.quote]) }
        if traits.contains(.monospace) { style = style.overlaid(with: self[.monospace]) }
        if traits.contains(.link) { style = style.overlaid(with: self[.link]) }
        if traits.contains(.linkNumber) { style = style.overlaid(with: self[.linkNumber]) }
        if traits.contains(.mention) { style = style.overlaid(with: self[.mention]) }
        if traits.contains(.match) { style = style.overlaid(with: self[.match]) }
        if traits.contains(.bold) { style.attributes.insert(.bold) }
        if traits.contains(.italic) { style.attributes.insert(.italic) }
        if traits.contains(.underline) { style.attributes.insert(.underline) }
        if traits.contains(.strikethrough) { style.attributes.insert(.strikethrough) }
        return style
    }

    package static let all = [dark, light, sixteen, mono, none]

    /// Returns the theme with this name, or else a theme that suits the terminal.
    package static func choose(named name: String?, depth: ColorDepth) -> Theme {
        if let theme = all.first(where: { $0.name == name }) { return theme }
        return switch depth {
        case .monochrome: mono
        case .ansi16: sixteen
        case .palette256, .trueColor: dark
        }
    }

    package static let dark = Theme(
        name: "dark",
        styles: [
            .secondary: Style(.palette(245)),
            .title: Style(.ansi(15), .bold),
            .border: Style(.palette(240)),
            .statusBar: Style(.palette(252), on: .palette(236)),
            .selection: Style(.ansi(15), on: .palette(24)),
            .unread: Style(.ansi(14), .bold),
            .accent: Style(.ansi(14)),
            .success: Style(.ansi(10)),
            .warning: Style(.ansi(11)),
            .error: Style(.ansi(9), .bold),
            .link: Style(.palette(75), .underline),
            .linkNumber: Style(.palette(245)),
            .mention: Style(.ansi(11), .bold),
            .monospace: Style(.palette(180), on: .palette(235)),
            .quote: Style(.palette(250), .italic),
            .match: Style(.ansi(0), on: .ansi(11)),
        ],
        people: [75, 114, 180, 176, 80, 209, 149, 141].map { Style(.palette($0), .bold) }
    )

    package static let light = Theme(
        name: "light",
        styles: [
            .secondary: Style(.palette(242)),
            .title: Style(.ansi(0), .bold),
            .border: Style(.palette(248)),
            .statusBar: Style(.palette(236), on: .palette(253)),
            .selection: Style(.ansi(0), on: .palette(153)),
            .unread: Style(.palette(25), .bold),
            .accent: Style(.palette(25)),
            .success: Style(.palette(28)),
            .warning: Style(.palette(130)),
            .error: Style(.palette(124), .bold),
            .link: Style(.palette(26), .underline),
            .linkNumber: Style(.palette(242)),
            .mention: Style(.palette(130), .bold),
            .monospace: Style(.palette(94), on: .palette(255)),
            .quote: Style(.palette(240), .italic),
            .match: Style(.ansi(0), on: .palette(221)),
        ],
        people: [26, 28, 130, 90, 30, 160, 64, 55].map { Style(.palette($0), .bold) }
    )

    /// Uses only the terminal's own colours, and is therefore legible on dark and light
    /// backgrounds.
    package static let sixteen = Theme(
        name: "sixteen",
        styles: [
            .title: Style(.standard, .bold),
            .statusBar: Style(.standard, .reverse),
            .selection: Style(.standard, .reverse),
            .unread: Style(.ansi(6), .bold),
            .accent: Style(.ansi(6)),
            .success: Style(.ansi(2)),
            .warning: Style(.ansi(5)),
            .error: Style(.ansi(1), .bold),
            .link: Style(.ansi(4), .underline),
            .mention: Style(.ansi(5), .bold),
            .monospace: Style(.ansi(6)),
            .quote: Style(.standard, .italic),
            .match: Style(.standard, .reverse),
        ],
        people: [1, 2, 4, 5, 6].map { Style(.ansi($0), .bold) }
    )

    /// Uses only attributes, for terminals without colours and for users who avoid colours.
    package static let mono = Theme(
        name: "mono",
        styles: [
            .secondary: Style(.standard, .dim),
            .title: Style(.standard, .bold),
            .statusBar: Style(.standard, .reverse),
            .selection: Style(.standard, .reverse),
            .unread: Style(.standard, .bold),
            .accent: Style(.standard, .bold),
            .warning: Style(.standard, .bold),
            .error: Style(.standard, [.bold, .reverse]),
            .link: Style(.standard, .underline),
            .linkNumber: Style(.standard, .dim),
            .mention: Style(.standard, .bold),
            .monospace: Style(.standard, .dim),
            .quote: Style(.standard, .italic),
            .match: Style(.standard, .reverse),
        ],
        people: [Style(.standard, .bold)]
    )

    /// Uses neither colours nor attributes.
    package static let none = Theme(name: "none", styles: [:], people: [])
}

extension Style {
    package init(_ foreground: Color, _ attributes: Attributes) {
        self.init(foreground, on: .standard, attributes)
    }
}
