import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that a terminal shows exactly the surface after it has processed the renderer's bytes, and
/// that the renderer sends few bytes.
struct RendererTests {
    private let size = Size(columns: 20, rows: 6)

    private func rendered(
        _ frames: [(inout Surface) -> Void],
        options: Renderer.Options = Renderer.Options()
    ) -> [String] {
        var renderer = Renderer(options: options)
        var surface = Surface(size: size)
        var terminal = TestTerminal(size: size)
        return frames.map { draw in
            draw(&surface)
            let bytes = renderer.render(surface)
            terminal.feed(bytes)
            #expect(terminal.difference(from: surface, depth: options.depth) == nil)
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    private static func plays(
        widths: TestTerminal.Widths,
        options: @escaping (UInt64) -> Renderer.Options
    ) -> Property<ScreenStep> {
        Property(plays: 150, soak: 4000) { random in
            var size = ScreenStep.size(&random)
            var steps: [ScreenStep] = [.resize(size)]
            for _ in 0..<80 {
                if random.chance(1, in: 40) {
                    size = ScreenStep.size(&random)
                    steps.append(.resize(size))
                }
                steps.append(.random(&random, size))
            }
            return steps
        } failure: { steps, seed in
            let options = options(seed)
            var screen = Screen()
            var renderer = Renderer(options: options)
            var terminal = TestTerminal(size: screen.surface.size, widths: widths)
            var shownSize: Size?
            for step in steps + [.show] {
                screen.draw(step)
                switch step {
                case .resize(let size):
                    // If the terminal has returned to the size of the last frame, the renderer sees
                    // no change of size. Only the device knows about it.
                    if size == shownSize { renderer.forget() }
                    terminal.resize(to: size)
                case .damage:
                    terminal.resize(to: screen.surface.size)
                    renderer.forget()
                case .show:
                    terminal.feed(renderer.render(screen.surface))
                    shownSize = screen.surface.size
                    if let difference = terminal.difference(
                        from: screen.surface,
                        depth: options.depth
                    ) {
                        return difference
                    }
                    if !renderer.render(screen.surface).isEmpty {
                        return "the same frame again is not empty"
                    }
                default: break
                }
            }
            return nil
        }
    }

    @Test("a terminal that forms clusters shows exactly the surface")
    func clusters() {
        Self.plays(widths: .clusters) { seed in
            let depths: [ColorDepth] = [.trueColor, .palette256, .ansi16, .monochrome]
            return Renderer.Options(depth: depths[Int(seed % 4)])
        }.check()
    }

    @Test("a terminal that counts scalars errs within doubtful glyphs and nowhere else")
    func scalars() {
        Self.plays(widths: .scalars) { _ in Renderer.Options() }.check()
    }

    @Test("a terminal that speaks ASCII gets nothing else")
    func asciiOnly() {
        var renderer = Renderer(options: Renderer.Options(isASCIIOnly: true))
        var surface = Surface(size: size)
        surface.draw("a漢é😀z", at: Position(column: 0, row: 0))
        let bytes = renderer.render(surface)
        #expect(bytes.allSatisfy { $0 < 0x80 })
        var terminal = TestTerminal(size: size)
        terminal.feed(bytes)
        #expect(terminal.text(ofRow: 0).hasPrefix("a?????z "))
    }

    @Test("a key that is echoed costs one byte, an unchanged frame none")
    func economy() {
        let frames = rendered([
            {
                $0.draw("> hell", at: Position(column: 0, row: 5))
                $0.cursor = Position(column: 6, row: 5)
            },
            {
                $0.draw("o", at: Position(column: 6, row: 5))
                $0.cursor = Position(column: 7, row: 5)
            },
            { _ in },
        ])
        #expect(frames[1] == "o")
        #expect(frames[2] == "")
    }

    @Test("a style is set where it changes and not before every cell")
    func styles() {
        let bold = Style(.ansi(1), .bold)
        let frames = rendered([
            { _ in },
            {
                $0.draw("red words", at: Position(column: 0, row: 0), style: bold)
                $0.draw("plain", at: Position(column: 9, row: 0))
            },
            { $0.draw("more", at: Position(column: 0, row: 1), style: Style(.ansi(1))) },
        ])
        #expect(frames[1] == "\u{1B}[1;31mred words\u{1B}[mplain")
        #expect(frames[2] == "\r\n\u{1B}[31mmore")
    }

    @Test("what is gone is erased to the end of the line")
    func erasing() {
        let frames = rendered([
            { $0.draw("a long line of text", at: Position(column: 0, row: 2)) },
            { $0.fill(Rect(column: 6, row: 2, columns: 14, rows: 1)) },
        ])
        #expect(frames[1] == "\u{1B}[8G\u{1B}[K")
    }

    @Test("a background reaches to the end of the line by spaces")
    func background() {
        let bar = Style(.standard, on: .ansi(4))
        let frames = rendered([
            { _ in },
            { $0.fill(Rect(column: 0, row: 5, columns: 20, rows: 1), style: bar) },
        ])
        #expect(!frames[1].contains("\u{1B}[K"))
    }

    @Test("a list that moves is scrolled, not written again")
    func scrolling() {
        let lines = [
            "a cat sat", "on my mat", "when it rained", "all night long", "so what", "now",
        ]
        func draw(_ first: Int) -> (inout Surface) -> Void {
            { surface in
                for row in 0..<5 {
                    surface.fill(Rect(column: 0, row: row, columns: 20, rows: 1))
                    surface.draw(lines[first + row], at: Position(column: 0, row: row))
                }
                surface.draw("status", at: Position(column: 0, row: 5))
            }
        }
        let frames = rendered([draw(0), draw(1), draw(0)])
        #expect(frames[1].contains("\u{1B}[1;5r\u{1B}[1S\u{1B}[r"))
        #expect(frames[1].utf8.count < 60)
        #expect(frames[2].contains("\u{1B}[1T"))
        #expect(frames[2].utf8.count < 60)
    }

    @Test("links are opened, closed and told apart by their address")
    func links() {
        let address = "https://example.org/"
        let frames = rendered([
            { _ in },
            {
                let link = $0.link(to: address)
                $0.draw("here", at: Position(column: 0, row: 0), link: link)
                $0.draw("there", at: Position(column: 4, row: 0))
            },
            {
                let other = $0.link(to: "https://example.com/")
                $0.draw("here", at: Position(column: 0, row: 0), link: other)
            },
        ])
        #expect(frames[1].hasSuffix(";\(address)\u{1B}\\here\u{1B}]8;;\u{1B}\\there"))
        #expect(frames[2].contains("https://example.com/"))
    }

    @Test(
        "another address in the place of a link is drawn, the same one under another number is not"
    )
    func renumberedLinks() {
        func draw(_ addresses: [String]) -> (inout Surface) -> Void {
            { surface in
                surface = Surface(size: surface.size)
                let links = addresses.map { surface.link(to: $0) }
                surface.draw("here", at: Position(column: 0, row: 0), link: links[0])
            }
        }
        let (first, second) = ("https://a.example/", "https://b.example/")
        let frames = rendered([draw([first, second]), draw([second, first]), draw([second])])
        #expect(frames[1].contains(second))
        #expect(frames[2] == "")
    }

    @Test("frames of several runs are synchronised, short ones are not wrapped")
    func synchronization() {
        let frames = rendered([
            { $0.drawBox($0.bounds) },
            { $0.draw("x", at: Position(column: 3, row: 2)) },
            { for row in 1..<5 { $0.draw("y", at: Position(column: 1 + row * 3, row: row)) } },
        ])
        #expect(frames[0].hasPrefix("\u{1B}[?2026h"))
        #expect(frames[0].hasSuffix("\u{1B}[?2026l"))
        #expect(!frames[1].contains("2026"))
        #expect(frames[2].hasSuffix("\u{1B}[?2026l"))
    }

    @Test("the cursor is hidden and shown only when that changes")
    func cursor() {
        let frames = rendered([
            { _ in },
            { $0.cursor = Position(column: 3, row: 3) },
            { $0.cursor = Position(column: 4, row: 3) },
            { $0.cursor = nil },
        ])
        #expect(frames[1] == "\u{1B}[4;4H\u{1B}[?25h")
        #expect(frames[2] == "\u{1B}[C")
        #expect(frames[3] == "\u{1B}[?25l")
    }
}
