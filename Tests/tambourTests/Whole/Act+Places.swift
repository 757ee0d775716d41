import TambourClient
import TambourProtocol

@testable import TerminalKit
@testable import tambour

extension Act {
    /// Acts that go to other places or search.
    static let places: [Act] = [
        Act("go to a chat", ["go-to-chat", "Go to: Enter"]) { hand in
            try await hand.open { _ in true }
        },
        Act("mute and pin from the list", ["Go to: Alt-m", "Go to: Alt-p"]) { hand in
            hand.goToLine()
            hand.press(.alt("g"))
            guard try await hand.waitForPanel({ $0.name == "Go to" }) else { return }
            for _ in 0..<hand.below(5) { hand.press(KeyPress(.down)) }
            hand.press(.alt(hand.pick(["m", "p"])))
        },
        Act("next unread", ["next-unread"]) { hand in
            hand.goToLine()
            hand.press(.alt("n"))
        },
        Act("neighbours", ["chat-above", "chat-below"]) { hand in
            hand.goToLine()
            for _ in 0...hand.below(3) { hand.press(KeyPress(hand.pick([.up, .down]), .alt)) }
        },
        Act("click", []) { hand in
            hand.goToLine()
            let row = hand.below(hand.device.display.size.rows)
            let column = hand.below(hand.device.display.size.columns)
            let position = TerminalKit.Position(column: column, row: row)
            hand.device.tell([.mouse(MouseEvent(action: .press, button: 0, position: position))])
        },
        Act("scroll", ["scroll-up", "scroll-down", "newest"]) { hand in
            try await hand.openSome()
            for _ in 0...hand.below(4) {
                switch hand.below(4) {
                case 0: hand.press(KeyPress(.pageDown))
                case 1:
                    let middle = TerminalKit.Position(column: 60, row: 5)
                    let wheel = MouseEvent(action: .wheelUp, button: 0, position: middle)
                    hand.device.tell([.mouse(wheel)])
                default: hand.press(KeyPress(.pageUp))
                }
                try await hand.device.waitForReading()
            }
            if hand.chance(50) { hand.press(KeyPress(.end, .alt)) }
        },
        Act("first unread", ["first-unread", "/unread"]) { hand in
            try await hand.open { $0.unread > 0 && !$0.isGone }
            if hand.chance(50) { hand.press(.alt("u")) } else { await hand.command("unread") }
        },
        Act("back and forward", ["back", "forward"]) { hand in
            hand.goToLine()
            for _ in 0...hand.below(3) { hand.press(.alt(hand.pick(["o", "o", "i"]))) }
        },
        Act("quoted", ["quoted"]) { hand in
            try await hand.openSome()
            if hand.select(where: { $0.quote != nil }) != nil { hand.type("q") }
        },
        Act("above and below", ["above", "below"]) { hand in
            try await hand.openSome()
            guard hand.select() != nil else { return }
            for _ in 0...hand.below(8) { hand.type(hand.pick(["k", "k", "j"])) }
        },
        Act("date", ["/date"]) { hand in
            try await hand.openSome()
            await hand.command(
                "date \(hand.pick(["today", "yesterday", "monday", "1.1.2020", "x"]))"
            )
        },
        Act("pinned", ["/pinned"]) { hand in
            try await hand.openSome()
            await hand.command("pinned")
        },
        Act(
            "search",
            ["/search", "search", "search-chat", "Search: Enter", "older-hit", "newer-hit"]
        ) { hand in
            try await hand.openSome()
            let words = hand.pick([
                "hello", "bold", "text", hand.device.name, "nothing of the kind",
            ])
            switch hand.look(\.open) == nil ? 2 : hand.below(3) {
            case 0: await hand.command("search \(words)")
            case 1:
                hand.goToLine()
                hand.press(.alt("/"))
                hand.type(words)
            default:
                hand.goToLine()
                hand.press(.alt("s"))
                hand.type(words)
            }
            guard try await hand.waitForPanel({ $0.name == "Search" }) else { return }
            for _ in 0..<hand.below(4) { hand.press(KeyPress(.down)) }
            hand.press(KeyPress(.enter))
            guard hand.look(\.panel) == nil else { return }
            for _ in 0..<hand.below(3) { hand.type(hand.pick(["n", "N"])) }
        },
        Act("mentions", ["mentions", "/mentions", "Mentions: Enter"]) { hand in
            hand.goToLine()
            if hand.chance(50) { hand.press(.alt("a")) } else { await hand.command("mentions") }
            guard try await hand.waitForPanel({ $0.name == "Mentions" }) else { return }
            hand.press(KeyPress(.enter))
        },
        Act("look away", []) { hand in
            hand.device.tell([.focusLost])
            if hand.chance(60) { hand.device.tell([.focusGained]) }
        },
        Act("another size", []) { hand in
            let sizes = [(80, 24), (100, 30), (160, 45), (60, 20), (30, 10)]
            let (columns, rows) = hand.pick(sizes)
            hand.device.resize(to: Size(columns: columns, rows: rows))
        },
        Act("help", ["help", "/help"]) { hand in
            hand.goToLine()
            if hand.chance(50) {
                hand.press(KeyPress(.function(1)))
            } else {
                await hand.command("help")
            }
            for _ in 0..<hand.below(3) { hand.press(KeyPress(hand.pick([.pageDown, .up, .down]))) }
            if hand.chance(50) { hand.press(KeyPress(.escape)) }
        },
        Act("draw again", ["redraw", "suspend"]) { hand in
            hand.press(hand.chance(50) ? .control("l") : .control("z"))
        },
        Act("packets", ["/debug"]) { hand in
            await hand.command("debug")
        },
    ]
}
