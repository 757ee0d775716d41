import TambourClient
import TambourProtocol

@testable import TerminalKit
@testable import tambour

extension Act {
    /// Acts that change chats, groups and channels.
    static let chats: [Act] = [
        Act("mute", ["/mute", "mute"]) { hand in
            try await hand.openSome()
            if hand.chance(50) { hand.press(.alt("m")) } else { await hand.command("mute") }
        },
        Act("pin", ["/pin", "pin"]) { hand in
            try await hand.openSome()
            if hand.chance(50) { hand.press(.alt("p")) } else { await hand.command("pin") }
        },
        Act("hide", ["/hide"]) { hand in
            try await hand.openSome()
            await hand.command("hide")
        },
        Act("new group", ["/new"]) { hand in
            try await hand.make("new")
        },
        Act("new channel", ["/new-channel"]) { hand in
            try await hand.make("new-channel")
        },
        Act("title", ["/title"]) { hand in
            guard try await hand.openShared() else { return }
            await hand.command("title Group \(hand.play.nextNumber())")
        },
        Act("describe", ["/describe"]) { hand in
            guard try await hand.openShared() else { return }
            await hand.command("describe about \(hand.play.nextNumber())")
        },
        Act("add", ["/add"]) { hand in
            guard try await hand.openShared() else { return }
            await hand.command("add \(hand.other().phone)")
        },
        Act("remove", ["/remove"]) { hand in
            guard hand.chance(50), try await hand.openShared() else { return }
            await hand.command("remove \(hand.other().phone)")
        },
        Act("administrator", ["/admin"]) { hand in
            guard try await hand.openShared() else { return }
            await hand.command("admin \(hand.other().phone)")
        },
        Act(
            "members",
            ["/members", "Members: Alt-a", "Members: Alt-d", "Members: Alt-r", "Members: Enter"]
        ) { hand in
            guard try await hand.openShared() else { return }
            await hand.command("members")
            guard try await hand.waitForPanel({ $0.name == "Members" }) else { return }
            for _ in 0..<hand.below(3) { hand.press(KeyPress(.down)) }
            switch hand.below(4) {
            case 0:
                hand.press(.alt("a"))
                try await hand.answer(hand.other().phone)
            case 1:
                hand.press(.alt("d"))
                if hand.look({ $0.prompt != nil }) { try await hand.confirm(40) }
            case 2: hand.press(.alt("r"))
            default: hand.press(KeyPress(.enter))
            }
        },
        Act("leave", ["/leave"]) { hand in
            guard hand.chance(60), try await hand.open(where: { $0.id.isGroup }) != nil else {
                return
            }
            await hand.command("leave")
            try await hand.confirm()
        },
        Act("delete lost groups", []) { hand in
            while try await hand.open(where: \.isGone) != nil {
                await hand.command("leave")
                try await hand.until("a question") { $0.prompt != nil || $0.notice != nil }
                guard hand.look({ $0.prompt != nil }) else { return }
                hand.type("y")
                await hand.device.waitForWishes()
                try await hand.device.waitForReading()
            }
        },
        Act("options", ["/options", "Options: Enter"]) { hand in
            guard try await hand.openShared() else { return }
            await hand.command("options")
            guard try await hand.waitForPanel({ $0.name == "Options" }) else { return }
            for _ in 0..<hand.below(6) { hand.press(KeyPress(.down)) }
            hand.press(KeyPress(.enter))
        },
        Act("invite", ["/invite"]) { hand in
            guard try await hand.openShared() else { return }
            await hand.command(hand.chance(30) ? "invite new" : "invite")
            try await hand.waitForNotice()
            guard let words = hand.look(\.notice)?.text, let place = words.firstRange(of: "/join ")
            else {
                return
            }
            hand.play.links.append(String(words[place.upperBound...]))
        },
        Act("join", ["/join"]) { hand in
            guard let link = hand.play.links.last else { return }
            try await hand.openSaved()
            await hand.command("join \(hand.chance(80) ? link : hand.pick(hand.play.links))")
            try await hand.joinIfAsked()
        },
        Act("find", ["/find"]) { hand in
            try await hand.openSaved()
            await hand.command("find \(hand.other().phone)")
            try await hand.waitForChat()
            if hand.chance(50) { await hand.say(hand.text()) }
        },
        Act("saved", ["/saved"]) { hand in
            await hand.command("saved")
            await hand.say(hand.text())
        },
        Act("public", ["/public", "Public: Enter"]) { hand in
            try await hand.openSaved()
            await hand.command("public \(hand.pick(["Bob", "Car", "Gro", "Fri"]))")
            guard try await hand.waitForPanel({ $0.name == "Public" }) else { return }
            guard hand.look({ $0.panel?.selectedItem != nil }) else { return }
            hand.press(KeyPress(.enter))
            try await hand.joinIfAsked()
        },
        Act("queue", ["/queue", "queue", "Queue: x", "Queue: r"]) { hand in
            hand.goToLine()
            if hand.chance(50) { hand.press(.alt("q")) } else { await hand.command("queue") }
            guard try await hand.waitForPanel({ $0.name == "Queue" }) else { return }
            hand.type(hand.pick(["x", "r", "r"]))
        },
    ]
}

extension Hand {
    /// If the screen asks whether to join a group, answers the question. Waits until the group
    /// opens.
    fileprivate func joinIfAsked() async throws {
        try await waitForChat()
        if look({ $0.prompt != nil }), try await confirm() { try await waitForChat() }
    }

    /// Creates a group or channel.
    fileprivate func make(_ command: String) async throws {
        // The screen opens a new group when the server has created it. If the device is offline,
        // this happens later, and the group would open in the middle of another act.
        guard !isOffline else { return }
        let title = "Group \(play.nextNumber())"
        let who = play.people.indices.filter { $0 != device.owner && chance(70) }
        let phones = who.map { play.people[$0].phone }
        await self.command("\(command) \(([title] + phones).joined(separator: ", "))")
        try await until("the group") { $0.openTitle == title || $0.notice != nil }
    }
}
