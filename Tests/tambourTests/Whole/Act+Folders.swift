import TambourClient

@testable import TerminalKit
@testable import tambour

extension Act {
    /// Acts with folders, scheduled messages and comments.
    static let folders: [Act] = [
        Act(
            "folder",
            [
                "/folder", "/folder-new", "/folder-add", "/folder-remove", "/folder-rename",
                "/folder-delete",
            ]
        ) { hand in
            try await hand.openSome()
            let titles = hand.look { $0.folders.map(\.title) }
            let new = "Folder \(hand.play.nextNumber())"
            switch titles.isEmpty ? 0 : hand.below(5) {
            case 0:
                await hand.command("folder-new \(new)")
                try await hand.until("the folder") { $0.shownFolder?.title == new }
            case 1: await hand.command("folder-add \(hand.pick(titles))")
            case 2: await hand.command("folder-remove \(hand.pick(titles))")
            case 3:
                await hand.command("folder \(hand.pick(titles))")
                await hand.command("folder-rename \(new)")
            default:
                await hand.command("folder-delete \(hand.pick(titles))")
                if hand.look({ $0.prompt != nil }) { try await hand.confirm(40) }
            }
            // Each device chooses which folder its list shows. So the act ends by showing all
            // chats.
            await hand.command("folder All chats")
        },
        Act(
            "folders",
            [
                "folders", "Folders: n", "Folders: r", "Folders: d", "Folders: a", "Folders: K",
            ]
        ) { hand in
            try await hand.openSome()
            hand.press(.alt("l"))
            guard try await hand.waitForPanel({ $0.name == "Folders" }) else { return }
            hand.press(KeyPress(.down))
            hand.type(hand.pick(["a", "K", "J"]))
            hand.press(KeyPress(.escape))
        },
        Act(
            "later",
            ["/later", "Scheduled: e", "Scheduled: t", "Scheduled: n", "Scheduled: x"]
        ) { hand in
            try await hand.openSome()
            guard !hand.look(\.scheduled).isEmpty, hand.chance(60) else {
                return await hand.command("later 2h \(hand.text())")
            }
            await hand.command("later")
            guard try await hand.waitForPanel({ $0.name == "Scheduled" }) else { return }
            hand.type(hand.pick(["n", "x"]))
            if hand.look({ $0.prompt != nil }) { try await hand.confirm() }
            hand.press(KeyPress(.escape))
        },
        // Devices request the number of comments at most once a minute, and may show different
        // numbers. So this act writes no comment.
        Act("comments", ["/comments", "comments"]) { hand in
            guard try await hand.open(where: { $0.kind == .channel && !$0.isGone }) != nil,
                hand.select(where: { $0.message != nil }) != nil
            else { return }
            hand.type("c")
            try await hand.until("comments") { $0.comments != nil || $0.notice != nil }
            if hand.look({ $0.comments != nil }) { hand.press(.alt("o")) }
        },
    ]
}
