import Synchronization
import TambourClient
import TambourProtocol

@testable import TerminalKit
@testable import tambour

extension Act {
    /// Acts that use the input line.
    static let writing: [Act] = [
        Act("send", []) { hand in
            try await hand.openSome()
            await hand.say(hand.text())
        },
        Act("send at once", []) { hand in
            try await hand.openSome()
            for _ in 0...hand.below(4) { await hand.say(hand.text()) }
        },
        Act("several lines", []) { hand in
            try await hand.openSome()
            hand.clearLine()
            hand.device.tell([.paste("\(hand.text())\nsecond\nthird")])
            hand.press(KeyPress(.enter))
        },
        Act("a text in parts", []) { hand in
            guard hand.chance(10) else { return }
            try await hand.openSome()
            hand.clearLine()
            let words = String(repeating: "many words ", count: 400)
            hand.device.tell([.paste("\(hand.text()) \(words)")])
            hand.press(KeyPress(.enter))
        },
        Act("mention", []) { hand in
            try await hand.openSome()
            hand.clearLine()
            hand.type("\(hand.device.name)#\(hand.play.nextNumber()) @")
            hand.type(String(hand.other().name.prefix(2)))
            hand.press(KeyPress(.tab))
            hand.type("see this :heart: :fi")
            hand.press(KeyPress(.down), KeyPress(.tab), KeyPress(.enter))
        },
        Act("draft", []) { hand in
            try await hand.openSome()
            hand.endEdit()
            hand.type(hand.text())
            if hand.chance(70) { hand.device.passTime() }
        },
        Act("draft of a reply", []) { hand in
            try await hand.openSome()
            guard hand.select() != nil else { return }
            hand.type("r")
            guard hand.look(\.focus) == .input else { return }
            hand.type(hand.text())
            if hand.chance(50) { hand.device.passTime() }
            if hand.chance(50) { try await hand.open() }
        },
        Act("discard the draft", []) { hand in
            try await hand.openSome()
            hand.clearLine()
            hand.device.passTime()
        },
        Act("editor", ["editor"]) { hand in
            try await hand.openSome()
            hand.endEdit()
            let text = hand.text()
            hand.device.display.editor.withLock { $0 = { $0 + text } }
            hand.press(.alt("e"))
            if hand.chance(50) { hand.press(KeyPress(.enter)) }
        },
        Act("poll", ["/poll"]) { hand in
            try await hand.openSome()
            let question = "\(hand.device.name)#\(hand.play.nextNumber()) where?"
            await hand.command("poll \(question) | Here | There | Nowhere")
        },
    ]

    /// Acts that use the selected message.
    static let messages: [Act] = [
        Act("reply", ["reply"]) { hand in
            try await hand.openSome()
            guard hand.select() != nil else { return }
            hand.type("r")
            guard hand.look(\.focus) == .input else { return }
            hand.type(hand.text())
            hand.press(KeyPress(.enter))
        },
        Act("edit", ["edit"]) { hand in
            try await hand.openSome()
            let isOwn = hand.chance(90)
            guard hand.select(where: { $0.isOwn == isOwn && $0.poll == nil }) != nil else { return }
            hand.type("e")
            guard hand.look(\.intent.isEdit) else { return }
            hand.type(" and \(hand.play.nextNumber())")
            // Sometimes the act leaves the edit unfinished. The edit then stays on its device.
            if hand.chance(90) { hand.press(KeyPress(.enter)) }
        },
        Act("delete", ["delete"]) { hand in
            try await hand.openSome()
            guard hand.select(where: { $0.isOwn || hand.chance(10) }) != nil else { return }
            hand.type("d")
            if hand.look({ $0.prompt != nil }) { try await hand.confirm() }
        },
        Act("delete for me", ["delete-for-me"]) { hand in
            try await hand.openSome()
            guard hand.select() != nil else { return }
            hand.type("D")
            if hand.look({ $0.prompt != nil }) { try await hand.confirm() }
        },
        Act("forward", ["forward-message", "Forward: Enter"]) { hand in
            try await hand.openSome()
            guard hand.select(where: { $0.message != nil }) != nil else { return }
            hand.type("f")
            guard try await hand.waitForPanel({ $0.name == "Forward" }) else { return }
            let chats = hand.look(\.panel)?.items ?? []
            guard !chats.isEmpty else { return }
            let target = hand.pick(chats).target
            hand.choose { $0 == target }
        },
        Act("react", ["react", "Reactions: Enter"]) { hand in
            try await hand.openSome()
            guard hand.select(where: { $0.message != nil }) != nil else { return }
            hand.type("+")
            guard try await hand.waitForPanel({ $0.name == "Reactions" }) else { return }
            hand.type(hand.pick(["heart", "thumbs", "fire", "joy"]))
            hand.press(KeyPress(.enter))
        },
        Act("take a reaction back", ["unreact"]) { hand in
            try await hand.openSome()
            let hasOwn = hand.chance(80)
            let row = hand.select { $0.reactions.contains(where: \.isOwn) == hasOwn }
            if row != nil { hand.type("-") }
        },
        Act("vote", ["vote", "Poll: Enter"]) { hand in
            try await hand.openSome()
            guard hand.select(where: { $0.poll != nil || hand.chance(5) }) != nil else { return }
            hand.type("v")
            guard try await hand.waitForPanel({ $0.name == "Poll" }) else { return }
            for _ in 0...hand.below(2) {
                for _ in 0..<hand.below(3) { hand.press(KeyPress(.down)) }
                hand.press(KeyPress(.enter))
                await hand.device.waitForWishes()
                try await hand.device.waitForReading()
            }
        },
        Act("pin a message", ["pin-message"]) { hand in
            try await hand.openSome()
            if hand.select(where: { $0.message != nil }) != nil { hand.type("P") }
        },
        Act("unpin a message", ["/unpin"]) { hand in
            try await hand.openSome()
            await hand.command("unpin")
        },
        Act("unread from here", ["unread-from-here"]) { hand in
            try await hand.openSome()
            guard hand.select(where: { !$0.isOwn }) != nil else { return }
            hand.type("u")
            if hand.chance(70) { try await hand.open() }
        },
        Act("copy", ["copy"]) { hand in
            try await hand.openSome()
            if hand.select() != nil { hand.type("y") }
        },
        Act("retry", ["retry"]) { hand in
            try await hand.openSome()
            let isRefused = hand.chance(80)
            let row = hand.select { row in
                if case .failed = row.state { isRefused } else { !isRefused }
            }
            if row != nil { hand.type("R") }
        },
        Act("cancel what waits", ["delete"]) { hand in
            try await hand.openSome()
            if hand.select(where: { $0.outgoing != nil }) != nil { hand.type("d") }
        },
        Act("links", ["open-link", "/open", "/links", "Links: y", "Links: Enter"]) { hand in
            try await hand.openSome()
            if hand.select() != nil { hand.type(hand.pick(["o", "1", "2"])) }
            await hand.command("open 1")
            await hand.command("links")
            guard try await hand.waitForPanel({ $0.name == "Links" }) else { return }
            if hand.chance(50) { hand.type("y") } else { hand.press(KeyPress(.enter)) }
        },
        Act("thread", ["thread", "/thread", "Thread: Enter"]) { hand in
            try await hand.openSome()
            if hand.chance(50) {
                guard hand.select() != nil else { return }
                hand.type("t")
            } else {
                await hand.command("thread")
            }
            guard try await hand.waitForPanel({ $0.name == "Thread" }) else { return }
            for _ in 0..<hand.below(4) { hand.press(KeyPress(.up)) }
            if hand.chance(70) { hand.press(KeyPress(.enter)) }
        },
    ]
}
