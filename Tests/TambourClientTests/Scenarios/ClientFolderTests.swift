import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

extension Client {
    /// Returns the titles of the folders in their order.
    fileprivate func titles() throws -> [String] { try folders().map(\.title) }
}

/// Folders between a client and the server.
@Suite("Folders of a client")
struct ClientFolderTests {
    @Test("folders are created, renamed, filled, reordered and deleted, on both devices")
    func changes() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            let other = try await world.onlineClient(of: alice, device: "other")
            try await other.syncFolders()
            let work = try await client.createFolder("Work", chats: [chat])
            let home = try await client.createFolder("Home")
            #expect(try client.titles() == ["Work", "Home"])
            try await other.until("both") { try $0.titles() == ["Work", "Home"] }
            #expect(try other.folders().map(\.chats) == [[chat], []])

            try await client.renameFolder(work, to: "Job")
            try await client.put(chat, in: home)
            try await client.put(chat, in: work, false)
            try await client.orderFolders([home, work])
            try await other.until("the changes") { try $0.titles() == ["Home", "Job"] }
            try await other.until("the chats") { try $0.folders().map(\.chats) == [[chat], []] }
            try await other.deleteFolder(home)
            try await client.until("the deletion") { try $0.titles() == ["Job"] }
            #expect(try client.folders() == other.folders())
            let server = try alice.call(FoldersGetRequest())
            #expect(server.foldersOrder == ["all.chat.folder", Text(work)])
        }
    }

    @Test("changes made offline survive a restart, and keep what other devices changed meanwhile")
    func offline() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            let work = try await client.createFolder("Work")
            let old = try await client.createFolder("Old")
            try await client.until("done") { try $0.queueLength() == 0 }
            await client.stop()

            let offline = try world.open("tambour")
            try await offline.put(chat, in: work)
            try await offline.renameFolder(old, to: "Older")
            let new = try await offline.createFolder("New")
            try await offline.orderFolders([new, work])
            #expect(try offline.titles() == ["New", "Work", "Older"])
            #expect(try offline.waiting().allSatisfy { $0.kind == .folder })
            await offline.stop()

            // Another device renames one folder, sets filters that this client does not change, and
            // deletes the other folder.
            let unread = AnyValue(Int64(0))
            try alice.call(
                FoldersUpdateRequest(id: Text(work), title: "Job", filters: [unread])
            )
            try alice.call(FoldersDeleteRequest(folderIDs: [Text(old)]))

            let again = try world.open("tambour")
            #expect(try again.titles() == ["New", "Work", "Older"])
            let events = again.events()
            try await again.startAndSync()
            for await case .refused(let reason) in events {
                #expect(reason.contains("deleted on another device"))
                break
            }
            try await again.until("done") { try $0.queueLength() == 0 }
            #expect(try again.titles() == ["New", "Job"])
            let server = try alice.call(FoldersGetRequest())
            let job = try #require(server.folders.first { $0.id == Text(work) })
            #expect(job.include == [chat] && job.filters == [unread] && job.title == "Job")
            #expect(server.foldersOrder == ["all.chat.folder", Text(new), Text(work)])
            #expect(try again.waiting().isEmpty)
        }
    }

    @Test("names that are empty, too long or taken are refused, and so is one folder too many")
    func limits() async throws {
        try await withWorld { world in
            let (alice, _, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            let work = try await client.createFolder("Work")
            for title in ["", "  ", "Work", String(repeating: "x", count: 201)] {
                await #expect(throws: ClientError.self) { try await client.createFolder(title) }
            }
            try await client.renameFolder(work, to: "Work")
            for number in 2...ChatFolder.most { try await client.createFolder("\(number)") }
            await #expect(throws: ClientError.self) { try await client.createFolder("Last") }
            let error = await #expect(throws: ClientError.self) {
                try await client.put(chat, in: "nonsense")
            }
            #expect(error == .invalid(reason: "this folder no longer exists"))
        }
    }

    @Test("filters of other clients choose chats, channels, contacts and unread chats")
    func filters() {
        func folder(_ filters: [Int64]) -> ChatFolder {
            ChatFolder(
                Folder(
                    id: "f",
                    include: [ChatID(-1)],
                    filters: filters.map { AnyValue($0) } + [AnyValue(Text("new"))],
                    updateTime: 0
                )
            )
        }
        func chat(_ id: Int64, _ kind: ChatSummary.Kind, unread: Int = 0) -> ChatSummary {
            ChatSummary(
                id: ChatID(id),
                kind: kind,
                title: "",
                unread: unread,
                isMentioned: false,
                isMuted: false,
                isPinned: false,
                isHidden: false,
                isGone: false,
                isOnline: false,
                lastEventMs: 0,
                preview: nil,
                draft: nil,
                failedCount: 0
            )
        }
        let chats = [
            chat(-1, .group), chat(-2, .group), chat(-3, .group, unread: 2), chat(-4, .channel),
            chat(5, .dialog(partner: UserID(5))), chat(6, .dialog(partner: UserID(6))),
        ]
        func found(_ filters: [Int64]) -> [Int64] {
            let chosen = folder(filters)
            return chats.filter { chat in chosen.contains(chat) { $0 == UserID(5) } }
                .map(\.id.rawValue)
        }
        #expect(found([]) == [-1])
        #expect(found([0]) == [-1, -3])
        #expect(found([2]) == [-1, -4])
        #expect(found([9]) == [-1, 5])
        #expect(found([0, 2, 9, 77]) == [-1, -3, -4, 5])
    }

    // MARK: - Against a scripted server

    private static func folder(_ id: Text, _ title: Text, at time: Int64) -> Folder {
        Folder(id: id, title: title, updateTime: time)
    }

    private func titles(_ server: ScriptedServer) throws -> [String] {
        try server.store.read { try $0.shownFolders().map { "\($0.title)" } }
    }

    @Test("folders that are not used are not asked for; a login asks for changes only")
    func mark() throws {
        try withScriptedServer { server in
            #expect(!server.isAsked(.foldersGet))
            server.push(
                .notifFolders,
                NotifFolders(
                    folder: Self.folder("a", "A", at: 40),
                    foldersOrder: ["a"],
                    folderSync: 40
                )
            )
            #expect(try titles(server) == [])
            _ = try server.wish { try $0.useFolders($1) }
            #expect(try server.asked(FoldersGetRequest.self).map(\.folderSync) == [0])
            let all = Self.folder("all.chat.folder", "All", at: 0)
            let reply = FoldersGetReply(
                folders: [all, Self.folder("a", "A", at: 40), Self.folder("b", "B", at: 50)],
                foldersOrder: ["all.chat.folder", "b", "a"],
                folderSync: 50
            )
            try server.answer(.foldersGet, reply)
            #expect(try titles(server) == ["B", "A"])
            let push = NotifFolders(foldersOrder: ["all.chat.folder", "b"], folderSync: 60)
            server.push(.notifFolders, push)
            #expect(try titles(server) == ["B"])
            server.reconnect()
            #expect(try server.asked(FoldersGetRequest.self).map(\.folderSync) == [60])
        }
    }

    @Test("a reply that is older than a push before it is asked for again, from the same mark")
    func yielding() throws {
        try withScriptedServer { server in
            _ = try server.wish { try $0.useFolders($1) }
            server.push(
                .notifFolders,
                NotifFolders(
                    folder: Self.folder("b", "B", at: 50),
                    foldersOrder: ["a", "b"],
                    folderSync: 50
                )
            )
            let old = FoldersGetReply(
                folders: [Self.folder("a", "A", at: 40)],
                foldersOrder: ["a"],
                folderSync: 40
            )
            try server.answer(.foldersGet, old)
            #expect(try titles(server) == ["B"])
            #expect(try server.asked(FoldersGetRequest.self).map(\.folderSync) == [0])
            let new = FoldersGetReply(
                folders: [Self.folder("a", "A", at: 40), Self.folder("b", "B", at: 50)],
                foldersOrder: ["a", "b"],
                folderSync: 50
            )
            try server.answer(.foldersGet, new)
            #expect(try titles(server) == ["A", "B"])
            #expect(!server.isAsked(.foldersGet))
        }
    }
}
