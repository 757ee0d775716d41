import TambourClient
import TambourProtocol
import TambourTesting

@testable import TerminalKit
@testable import tambour

extension Act {
    /// Acts that change contacts and the user's own profile.
    static let people: [Act] = [
        Act("add a contact", ["contacts", "Contacts: Alt-a"]) { hand in
            hand.goToLine()
            hand.press(.alt("c"))
            guard try await hand.waitForPanel({ $0.name == "Contacts" }) else { return }
            hand.press(.alt("a"))
            try await hand.answer(hand.other().phone)
            try await hand.waitForNotice()
        },
        Act(
            "change a contact",
            [
                "/contacts", "Contacts: Alt-r", "Contacts: Alt-d", "Contacts: Alt-b",
                "Contacts: Enter",
            ]
        ) { hand in
            await hand.command("contacts")
            guard try await hand.waitForPanel({ $0.name == "Contacts" }) else { return }
            for _ in 0..<hand.below(3) { hand.press(KeyPress(.down)) }
            guard hand.look({ $0.panel?.selectedItem != nil }) else { return }
            switch hand.below(6) {
            case 0, 1, 2:
                hand.press(.alt("r"))
                let name = hand.pick(["Robert", "Caroline Jones", "Zoë", "Bob", "Carol"])
                try await hand.answer("\(name) \(hand.play.nextNumber())")
                try await hand.waitForNotice()
            case 3:
                hand.press(.alt("d"))
                try await hand.confirm(60)
            case 4:
                hand.press(.alt("b"))
                try await hand.confirm(70)
            default: hand.press(KeyPress(.enter))
            }
        },
        Act("unblock", ["/blocked", "Blocked: Enter"]) { hand in
            await hand.command("blocked")
            guard try await hand.waitForPanel({ $0.name == "Blocked" }) else { return }
            hand.press(KeyPress(.enter))
        },
        Act("name", ["/name"]) { hand in
            await hand.command(
                "name \(hand.play.people[hand.device.owner].name) \(hand.play.nextNumber())"
            )
        },
        Act("about", ["/about"]) { hand in
            await hand.command("about likes tea \(hand.play.nextNumber())")
        },
        Act("profile", ["/profile", "Profile: n", "Profile: a"]) { hand in
            await hand.command("profile")
            guard try await hand.waitForPanel({ $0.name == "Profile" }) else { return }
            if hand.chance(50) {
                hand.type("n")
                try await hand.answer(hand.play.people[hand.device.owner].name)
            } else {
                hand.type("a")
                try await hand.answer("likes cake \(hand.play.nextNumber())")
            }
        },
    ]

    /// Acts that change the account, its devices and the program.
    static let account: [Act] = [
        Act("sessions", ["/sessions", "Sessions: x", "Sessions: o"]) { hand in
            await hand.command("sessions")
            guard try await hand.waitForPanel({ $0.name == "Sessions" }) else { return }
            if hand.chance(50) { hand.press(KeyPress(.down)) }
            hand.type(hand.pick(["x", "o"]))
            guard hand.look({ $0.prompt != nil }) else { return }
            // The account under test must keep its other devices, because the plays need them.
            hand.type(hand.device.owner == 0 ? "n" : "y")
        },
        Act("password", ["/password"]) { hand in
            guard !hand.isOffline else { return }
            let password = "secret \(hand.play.nextNumber())"
            await hand.command("password")
            try await hand.until("a question") { $0.prompt != nil || $0.notice != nil }
            guard hand.look({ $0.prompt != nil }) else { return }
            hand.type("\(password)\n\(password)\n\n")
            try await hand.waitForNotice()
            await hand.command("password")
            try await hand.answer(password)
            try await hand.answer("")
            try await hand.confirm(100)
            try await hand.waitForNotice()
        },
        Act("phone", ["/phone"]) { hand in
            guard !hand.isOffline, let server = hand.play.server else { return }
            let number = hand.play.nextPhone()
            await hand.command("phone +\(number)")
            try await hand.until("a question") { $0.prompt != nil || $0.notice != nil }
            guard hand.look({ $0.prompt != nil }) else { return }
            try await hand.answer(server.receivedCode(of: number))
            try await hand.waitForNotice()
            guard hand.look(\.notice)?.isError != true else { return }
            hand.play.people[hand.device.owner].phone = "+\(number)"
        },
        Act("approve", ["/approve"]) { hand in
            guard !hand.isOffline, let server = hand.play.server else { return }
            let device = try server.connect()
            let code = try device.call(GetQrRequest())
            await hand.command("approve \(code.qrLink)")
            try await hand.confirm()
        },
        Act("theme and alerts", ["/theme", "/notify"]) { hand in
            await hand.command(
                "theme \(hand.pick(["dark", "light", "sixteen", "mono", "none", "x"]))"
            )
            await hand.command("notify \(hand.pick(["bell", "osc9", "osc777", "off", "x"]))")
        },
        Act("login", ["/login"]) { hand in
            await hand.command("login")
        },
        Act("leave the program", ["leave", "/quit"]) { hand in
            if hand.chance(50) { hand.press(.control("q")) } else { await hand.command("quit") }
            try await hand.play.restart(hand.device, isKilled: false)
        },
        Act("kill the program", []) { hand in
            try await hand.play.restart(hand.device, isKilled: true)
        },
        Act("lose the connection", []) { hand in
            if !hand.device.isOffline { try await hand.device.connect(to: hand.play.address) }
        },
        Act("go offline", []) { hand in
            if !hand.device.isOffline { try await hand.device.goOffline() }
        },
        Act("restart the server", []) { hand in
            try await hand.play.loseServer()
        },
    ]
}
