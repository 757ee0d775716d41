import TambourProtocol
import TambourTesting
import Testing

private let all: Text = "all.chat.folder"

extension WireClient {
    @discardableResult
    fileprivate func folder(_ id: Text, _ title: Text, _ include: [ChatID] = []) throws
        -> FoldersUpdateReply
    {
        try call(FoldersUpdateRequest(id: id, title: title, include: include))
    }

    fileprivate func folders(since sync: Int64? = nil) throws -> FoldersGetReply {
        try call(FoldersGetRequest(folderSync: sync))
    }
}

/// Runs `body` with Alice on a phone and a tablet, and with Bob.
private func withDevices(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, WireClient, WireClient, WireClient) throws -> Void
) throws {
    try withPair(limits: overrides) { server, alice, bob, _ in
        try body(server, alice, server.signIn(phoneOf: alice, device: "tablet"), bob)
    }
}

@Suite("FOLDERS_UPDATE (274)")
struct FoldersUpdateTests {
    @Test("makes one for all devices of its user, and for nobody else")
    func made() throws {
        try withDevices { _, phone, tablet, bob in
            let request = FoldersUpdateRequest(
                id: "a",
                title: "Drums",
                include: [ChatID(3), ChatID(-5)],
                filters: [AnyValue(Int64(0))],
                options: [AnyValue(Text("X"))],
                favorites: [ChatID(3)]
            )
            let reply = try phone.call(request)
            #expect(reply.folder.id == "a")
            #expect(reply.folder.title == "Drums")
            #expect(reply.folder.include == request.include)
            #expect(reply.folder.filters == request.filters)
            #expect(reply.folder.options == request.options)
            #expect(reply.folder.favorites == request.favorites)
            #expect(reply.folder.updateTime == reply.folderSync)
            #expect(reply.foldersOrder == [all, "a"])
            let push = try tablet.only(.notifFolders, as: NotifFolders.self)
            #expect(push.map(\.folder) == [reply.folder])
            #expect(push.first?.foldersOrder == [all, "a"])
            #expect(push.first?.folderSync == reply.folderSync)
            try phone.expectSilence()
            try bob.expectSilence()
            let seen = try tablet.folders()
            #expect(seen.folders.map(\.id) == [all, "a"])
            #expect(seen.folders.last == reply.folder)
            #expect(try bob.folders().foldersOrder == [all])
        }
    }

    @Test("replaces what is in one where it stands; the same once more is no change")
    func replaced() throws {
        try withDevices { _, phone, tablet, _ in
            try phone.folder("a", "A", [ChatID(3)])
            let second = try phone.folder("b", "B")
            let changed = try phone.folder("a", "A2")
            #expect(changed.foldersOrder == [all, "a", "b"])
            #expect(changed.folder.include.isEmpty)
            #expect(changed.folderSync > second.folderSync)
            _ = try tablet.takePushes()
            #expect(try phone.folder("a", "A2").folderSync == changed.folderSync)
            try tablet.expectSilence()
        }
    }

    @Test("not too many, not too large, and not that of all chats")
    func refused() throws {
        try withDevices(limits: ["maxFolders": 2, "maxFolderBytes": 200]) { _, phone, tablet, _ in
            try phone.folder("a", "A")
            try phone.folder("b", "B")
            let before = try phone.folders()
            #expect(try phone.code(of: FoldersUpdateRequest(id: "c")) == .protoPayload)
            #expect(try phone.code(of: FoldersUpdateRequest(id: "")) == .protoPayload)
            let long = FoldersUpdateRequest(
                id: "a",
                title: Text(String(repeating: "x", count: 150))
            )
            #expect(try phone.code(of: long) == .protoPayload)
            #expect(try phone.code(of: FoldersUpdateRequest(id: all)) == .notAllowed)
            #expect(try phone.code(of: FoldersDeleteRequest(folderIDs: ["a", all])) == .notAllowed)
            #expect(try phone.folders() == before)
            try phone.folder("b", "B2")
        }
    }
}

@Suite("FOLDERS_GET (272) and FOLDERS_GET_BY_ID (273)")
struct FoldersGetTests {
    @Test("everybody has that of all chats")
    func untouched() throws {
        try withDevices { _, phone, _, _ in
            let reply = try phone.folders()
            #expect(reply.folders.map(\.id) == [all])
            #expect(reply.foldersOrder == [all])
            #expect(reply.folderSync == 0)
            #expect(try phone.folders(since: reply.folderSync) == reply)
        }
    }

    @Test("what changed since a mark; what is gone is not named any more")
    func changed() throws {
        try withDevices { _, phone, _, _ in
            for id in ["a", "b", "c"] as [Text] { try phone.folder(id, id) }
            let mark = try phone.folders().folderSync
            #expect(try phone.folders(since: mark).folders.map(\.id) == [all])
            try phone.folder("b", "B")
            try phone.call(FoldersDeleteRequest(folderIDs: ["a"]))
            let delta = try phone.folders(since: mark)
            #expect(delta.folders.map(\.id) == [all, "b"])
            #expect(delta.foldersOrder == [all, "b", "c"])
            #expect(delta.folderSync > mark)
            // The server never issued this mark, so it returns all folders.
            let future = try phone.folders(since: delta.folderSync + 1)
            #expect(future.folders.map(\.id) == [all, "b", "c"])
        }
    }

    @Test("by id, one's own alone")
    func byID() throws {
        try withDevices { _, phone, _, bob in
            try phone.folder("a", "A")
            try bob.folder("b", "B")
            let reply = try phone.call(
                FoldersGetByIdRequest(folderIDs: ["b", "a", all, "a", "nothing"])
            )
            #expect(reply.folders.map(\.id) == ["a", all])
            #expect(reply.folders.first?.title == "A")
        }
    }
}

@Suite("FOLDERS_REORDER (275) and FOLDERS_DELETE (276)")
struct FoldersOrderTests {
    @Test("those that are named come first, the others as they stood")
    func reordered() throws {
        try withDevices { _, phone, tablet, bob in
            for id in ["a", "b", "c"] as [Text] { try phone.folder(id, id) }
            let before = try phone.folders()
            _ = try tablet.takePushes()
            let reply = try phone.call(FoldersReorderRequest(foldersOrder: ["c", "a", "c"]))
            #expect(reply.foldersOrder == ["c", "a", all, "b"])
            #expect(reply.folderSync > before.folderSync)
            let push = try tablet.only(.notifFolders, as: NotifFolders.self)
            #expect(push.map(\.foldersOrder) == [reply.foldersOrder])
            #expect(push.first?.folder == nil)
            try bob.expectSilence()
            #expect(try tablet.folders().folders.map(\.id) == reply.foldersOrder)
            let same = try phone.call(FoldersReorderRequest(foldersOrder: reply.foldersOrder))
            #expect(same.folderSync == reply.folderSync)
            try tablet.expectSilence()
            let unknown = FoldersReorderRequest(foldersOrder: ["b", "x"])
            #expect(try phone.code(of: unknown) == .notFound)
            #expect(try phone.folders().foldersOrder == reply.foldersOrder)
        }
    }

    @Test("what is deleted is gone, what is not there is passed over")
    func deleted() throws {
        try withDevices { _, phone, tablet, _ in
            for id in ["a", "b"] as [Text] { try phone.folder(id, id) }
            _ = try tablet.takePushes()
            let reply = try phone.call(FoldersDeleteRequest(folderIDs: ["x", "a"]))
            #expect(reply.foldersOrder == [all, "b"])
            #expect(
                try tablet.only(.notifFolders, as: NotifFolders.self).map(\.foldersOrder)
                    == [reply.foldersOrder]
            )
            #expect(try phone.call(FoldersGetByIdRequest(folderIDs: ["a"])).folders.isEmpty)
            let again = try phone.call(FoldersDeleteRequest(folderIDs: ["a"]))
            #expect(again.folderSync == reply.folderSync)
            try tablet.expectSilence()
            #expect(try phone.folder("a", "A").foldersOrder == [all, "b", "a"])
        }
    }
}
