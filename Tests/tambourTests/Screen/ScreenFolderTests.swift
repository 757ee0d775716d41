import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Creates, shows, fills and deletes folders with the keyboard.
@Suite("Folders at the screen", .serialized)
struct ScreenFolderTests {
    /// Alice has a dialog and a group.
    private static var chats: Before {
        Before { world in
            try world.bob.send("hello", to: world.chat, cid: 1)
            _ = try world.alice.createGroup("Cooks", with: [world.bob], cid: 72)
        }
    }

    private func waits(_ desk: Desk, forList titles: [String]) async throws {
        try await desk.display.wait(for: "the chats \(titles)") { _ in
            desk.look { $0.shownChats.map(\.title) } == titles
        }
    }

    @Test("a folder is made, filled, shown with its unread messages, renamed and deleted")
    func folder() async throws {
        try await atDesk(after: Self.chats) { desk in
            try await desk.open("Cooks")
            desk.type("/folder-new Work\n")
            try await desk.display.waits(for: "the list shows “Work”")
            try await waits(desk, forList: [])
            try await desk.display.waits(for: "no chats: /folder-add")
            desk.type("/folder-add\n")
            try await waits(desk, forList: ["Cooks"])
            try await desk.display.waits(for: "Cooks is in “Work”")
            // Alt-Down only moves to other chats of the shown folder. This folder has no other
            // chat.
            let group = desk.look(\.open)
            desk.press(KeyPress(.down, .alt))
            #expect(desk.look(\.open) == group)

            desk.type("/folder all chats\n")
            try await desk.display.wait(for: "all chats") { _ in
                desk.look { $0.shownChats.count } == 2
            }
            try await desk.open("Bob")
            try desk.bob.send("dinner?", to: try #require(group), cid: 2)
            desk.type("/folder wo\n")
            try await waits(desk, forList: ["Cooks"])
            try await desk.display.waits(for: "Work  1 unread")

            desk.type("/folder-rename Job\n")
            try await desk.display.waits(for: "Job  1 unread")
            try await desk.display.wait(for: "the name at the server") { _ in
                let folders = try? desk.alice.call(FoldersGetRequest()).folders
                return folders?.contains { $0.title == "Job" } == true
            }
            desk.type("/folder-delete\n")
            try await desk.display.waits(for: "Delete the folder “Job”")
            desk.type("y")
            try await desk.display.wait(for: "all chats") { _ in
                desk.look { $0.folder == nil && $0.shownChats.count == 2 }
            }
        }
    }

    @Test("the panel lists, reorders and fills folders; names are completed")
    func panel() async throws {
        try await atDesk(after: Self.chats) { desk in
            try await desk.open("Cooks")
            for title in ["Work", "Home alone"] {
                desk.type("/folder-new \(title)\n")
                try await desk.display.waits(for: "the list shows “\(title)”")
            }
            func titles() -> [String] { desk.look { $0.folders.map(\.title) } }
            try await desk.display.wait(for: "both") { _ in titles() == ["Work", "Home alone"] }
            desk.press(.alt("l"))
            try await desk.display.waits(for: "▌Home alone")
            desk.type("a")
            try await desk.display.waits(for: "1 chat, with Cooks")
            desk.type("K")
            try await desk.display.wait(for: "the order") { _ in titles() == ["Home alone", "Work"]
            }
            desk.press(KeyPress(.up), KeyPress(.enter))
            #expect(desk.look(\.panel) == nil && desk.look(\.folder) == nil)

            desk.type("/folder h")
            desk.press(KeyPress(.tab))
            #expect(desk.look(\.input).text == "/folder Home alone")
            desk.press(KeyPress(.enter))
            try await waits(desk, forList: ["Cooks"])
            desk.type("/folder nonsense\n")
            #expect(desk.look(\.notice)?.text.contains("there is no folder") == true)
        }
    }

    @Test("folders change offline, and another device's folders appear")
    func offline() async throws {
        try await atDesk(after: Self.chats) { desk in
            let request = FoldersUpdateRequest(id: "x", title: "Theirs", include: [desk.chat])
            try desk.alice.call(request)
            try await desk.display.wait(for: "the folder") { _ in
                desk.look { $0.folders.map(\.title) } == ["Theirs"]
            }
            try await desk.open("Cooks")
            try await desk.loseServer()
            desk.type("/folder-add theirs\n")
            try await desk.display.waits(for: "Cooks is in “Theirs”")
            desk.type("/folder theirs\n")
            try await desk.display.wait(for: "both") { _ in
                desk.look { $0.shownChats.count } == 2
            }
            desk.press(.alt("q"))
            try await desk.display.waits(for: "change of a folder")
        }
    }
}
