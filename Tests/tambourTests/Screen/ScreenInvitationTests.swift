import Synchronization
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient
@testable import TerminalKit
@testable import tambour

/// Finds, joins and sets up groups and channels with the keyboard.
@Suite("Invitations at the screen", .serialized)
struct ScreenInvitationTests {
    /// Bob has a group without Alice. Alice has her own group.
    private static var groups: Before {
        Before { world in
            _ = try world.bob.createGroup("Climbers", with: [], cid: 71)
            _ = try world.alice.createGroup("Cooks", with: [world.bob], cid: 72)
        }
    }

    /// Replaces the invitation link of one of Bob's groups by a new one, and returns the new link.
    private func invitation(to title: Text, at desk: Desk) throws -> String {
        let chats = try desk.bob.call(ChatsListRequest(marker: 0)).chats
        let chat = try #require(chats.first { $0.title == title })
        let renewed = try desk.bob.call(ChatUpdateRequest(chatID: chat.id, revokePrivateLink: true))
        return "\(try #require(renewed.chat.link))"
    }

    @Test("a link is looked at, then joined; an invalid one is refused")
    func join() async throws {
        try await atDesk(after: Self.groups) { desk in
            let link = try invitation(to: "Climbers", at: desk)
            desk.type("/join \(link)\n")
            try await desk.display.waits(for: "Join “Climbers”, 1 member? (y/n)")
            #expect(desk.look(\.open) == nil)
            desk.type("y")
            try await desk.display.wait(for: "the group") { _ in
                desk.look { $0.openTitle == "Climbers" && !$0.rows.isEmpty }
            }
            desk.type("hello\n")
            try await desk.display.wait(for: "sent") { _ in
                desk.look { $0.rows.last.map { $0.text == "hello" && $0.message != nil } == true }
            }
            // The screen does not ask a member who follows the link again.
            desk.press(.alt("o"))
            desk.type("/join \(link)\n")
            try await desk.display.wait(for: "the group") { _ in
                desk.look { $0.openTitle == "Climbers" && $0.prompt == nil }
            }
            desk.type("/join join/nonsense\n")
            try await desk.display.waits(for: "this link is not valid")
        }
    }

    @Test("a group that asks first gets a request")
    func request() async throws {
        try await atDesk(after: Self.groups) { desk in
            let link = try invitation(to: "Climbers", at: desk)
            let chats = try desk.bob.call(ChatsListRequest(marker: 0)).chats
            let chat = try #require(chats.first { $0.title == "Climbers" })
            let options = NameMap([(Text("JOIN_REQUEST"), true)])
            try desk.bob.call(ChatUpdateRequest(chatID: chat.id, options: options))
            desk.type("/join \(link)\n")
            try await desk.display.waits(for: "Join “Climbers”")
            desk.type("y")
            try await desk.display.waits(for: "“Climbers” will decide whether you may join")
            #expect(desk.look(\.open) == nil)
        }
    }

    @Test("an own group's invitation is shown, copied and replaced; others do not see theirs")
    func invite() async throws {
        try await atDesk(after: Self.groups) { desk in
            try await desk.open("Cooks")
            desk.type("/invite\n")
            try await desk.display.waits(for: "/join ")
            let first = try #require(desk.display.state.withLock(\.copied).last)
            #expect(first.contains("join/"))
            desk.type("/invite new\n")
            try await desk.display.wait(for: "another") { display in
                display.state.withLock { $0.copied.last.map { $0 != first } == true }
            }
            let second = try #require(desk.display.state.withLock(\.copied).last)
            #expect(try desk.bob.call(LinkInfoRequest(link: Text(second))).chat != nil)
            #expect(try desk.bob.call(LinkInfoRequest(link: Text(first))).chat == nil)
        }
    }

    @Test("options are listed and changed")
    func options() async throws {
        try await atDesk(after: Self.groups) { desk in
            try await desk.open("Cooks")
            desk.type("/options\n")
            try await desk.display.waits(for: "Only the owner may change the title")
            func state(of name: String) -> Bool? {
                desk.look { state in
                    state.panel?.items.lazy.compactMap { item -> Bool? in
                        if case .option(name, let isOn) = item.target { isOn } else { nil }
                    }.first
                }
            }
            let before = state(of: "ONLY_OWNER_CAN_CHANGE_ICON_TITLE")
            desk.press(KeyPress(.down), KeyPress(.enter))
            try await desk.display.wait(for: "the change") { _ in
                state(of: "ONLY_OWNER_CAN_CHANGE_ICON_TITLE") == before.map { !$0 }
            }
            #expect(desk.look(\.panel)?.selected == 1)
        }
    }

    @Test("people and public groups are found")
    func publicSearch() async throws {
        try await atDesk(after: Self.groups) { desk in
            let chats = try desk.bob.call(ChatsListRequest(marker: 0)).chats
            let chat = try #require(chats.first { $0.title == "Climbers" })
            try desk.bob.call(ChatUpdateRequest(chatID: chat.id, access: .public, link: "climbers"))
            desk.type("/public climb\n")
            try await desk.display.waits(for: "1 member")
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "Join “Climbers”")
            desk.press(KeyPress(.escape))
            desk.type("/public bob\n")
            try await desk.display.waits(for: "▌Bob")
            desk.press(KeyPress(.enter))
            #expect(desk.look(\.open) == desk.chat)
        }
    }
}
