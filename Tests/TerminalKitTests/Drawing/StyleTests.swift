import Testing

@testable import TerminalKit

/// Tests that colours and themes suit the abilities of the terminal.
struct StyleTests {
    @Test(
        "the depth comes from the environment",
        arguments: [
            (["TERM": "xterm-256color"], ColorDepth.palette256),
            (["TERM": "xterm-256color", "COLORTERM": "truecolor"], .trueColor),
            (["TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"], .monochrome),
            (["TERM": "xterm-256color", "NO_COLOR": ""], .palette256),
            (["TERM": "xterm"], .ansi16), (["TERM": "linux"], .ansi16),
            (["TERM": "xterm-direct"], .trueColor), (["TERM": "vt100"], .monochrome),
            (["TERM": "dumb", "COLORTERM": "truecolor"], .monochrome), ([:], .monochrome),
        ]
    )
    func depths(environment: [String: String], depth: ColorDepth) {
        #expect(ColorDepth.detect(environment) == depth)
    }

    @Test("colours are reduced to the nearest")
    func reduction() {
        let color = Style(.rgb(255, 0, 0), on: .palette(21), .bold)
        #expect(color.reduced(to: .trueColor) == color)
        #expect(color.reduced(to: .palette256) == Style(.palette(196), on: .palette(21), .bold))
        #expect(color.reduced(to: .ansi16) == Style(.ansi(9), on: .ansi(4), .bold))
        #expect(color.reduced(to: .monochrome) == Style(.standard, .bold))
        #expect(Style(.rgb(118, 118, 118)).reduced(to: .palette256) == Style(.palette(243)))
    }

    @Test("mono has no colours, none has nothing, no matter what a message asks for")
    func themes() {
        let everything = TextTraits(rawValue: .max)
        for role in Theme.Role.allCases {
            #expect(Theme.mono[role].foreground == .standard)
            #expect(Theme.mono[role].background == .standard)
            #expect(Theme.none[role] == .plain)
        }
        #expect(Theme.mono.style(of: everything, on: .plain).foreground == .standard)
        #expect(Theme.none.style(of: everything, on: .plain) == .plain)
        #expect(Theme.none.isPlain)
        #expect(!Theme.mono.isPlain)
        #expect(Theme.none.style(ofPerson: 17) == .plain)
        #expect(Theme.dark.style(ofPerson: 17) == Theme.dark.style(ofPerson: 17))
    }

    @Test("a theme is chosen by name, or fits the terminal")
    func choice() {
        #expect(Theme.choose(named: "light", depth: .monochrome).name == "light")
        #expect(Theme.choose(named: nil, depth: .monochrome).name == "mono")
        #expect(Theme.choose(named: "no such", depth: .ansi16).name == "sixteen")
        #expect(Theme.choose(named: nil, depth: .palette256).name == "dark")
    }

    @Test("changing a style is the shorter of change and reset")
    func renditions() {
        let red = Style(.ansi(1))
        #expect(SelectGraphicRendition.sequence(from: .plain, to: red) == "\u{1B}[31m")
        #expect(SelectGraphicRendition.sequence(from: red, to: .plain) == "\u{1B}[m")
        #expect(SelectGraphicRendition.sequence(from: nil, to: red) == "\u{1B}[0;31m")
        let dim = Style(.ansi(1), .dim)
        let bold = Style(.ansi(1), .bold)
        #expect(SelectGraphicRendition.sequence(from: dim, to: bold) == "\u{1B}[22;1m")
    }
}
