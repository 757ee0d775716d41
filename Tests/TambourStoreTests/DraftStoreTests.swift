import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Drafts in the store")
struct DraftStoreTests {
    private func save(
        _ text: Text,
        of user: UserID,
        for place: ChatPlace,
        _ store: TestStore
    ) throws {
        try store.batch { tx in
            try tx.saveDraft(text: text, elements: nil, replyTo: MessageID(7), of: user, for: place)
        }
    }

    @Test(
        "one for each place, the last one; a tombstone when it goes",
        arguments: SQLEngine.available
    )
    func places(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let key = try store.group(users)
        try save("one", of: users[0], for: .group(key), store)
        let before = store.now
        try save("two\u{0}", of: users[0], for: .group(key), store)
        try save("dear", of: users[0], for: .user(users[1]), store)
        try store.read { snapshot in
            let changed = try snapshot.changedDrafts(of: users[0], since: before)
            #expect(changed.map(\.place) == [.user(users[1]), .group(key)])
            #expect(changed.map(\.text) == ["dear", "two\u{0}"])
            #expect(changed.map(\.replyTo) == [MessageID(7), MessageID(7)])
            #expect(changed.map(\.dialogCreated) == [0, 0])
            #expect(try snapshot.draftCount(of: users[0]) == 2)
            #expect(try snapshot.changedDrafts(of: users[1], since: 0).isEmpty)
        }
        try store.batch { tx in try tx.discardDraft(of: users[0], for: .group(key)) }
        let gone = store.now
        try store.batch { tx in try tx.discardDraft(of: users[0], for: .group(key)) }
        try store.read { snapshot in
            let draft = try #require(try snapshot.draft(of: users[0], for: .group(key)))
            #expect(!draft.isSaved)
            #expect(draft.ct == gone)
            #expect(draft.text.isEmpty)
            #expect(draft.replyTo == nil)
            #expect(try snapshot.draftCount(of: users[0]) == 1)
        }
    }

    @Test("a dialog that begins is a change of the drafts of both", arguments: SQLEngine.available)
    func begins(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(3)
        try save("a", of: users[0], for: .user(users[1]), store)
        try save("b", of: users[1], for: .user(users[0]), store)
        try save("c", of: users[0], for: .user(users[2]), store)
        let before = store.now
        try store.send("hi", from: users[1], to: users[0])
        let created = store.now
        for (user, partner) in [(users[0], users[1]), (users[1], users[0])] {
            let changed = try store.read { try $0.changedDrafts(of: user, since: before) }
            #expect(changed.map(\.place) == [.user(partner)])
            #expect(changed.map(\.dialogCreated) == [created])
            #expect(changed.allSatisfy { $0.saved < created })
        }
    }

    @Test("who leaves a group leaves the draft", arguments: SQLEngine.available)
    func left(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let key = try store.group(users)
        for user in users { try save("x", of: user, for: .group(key), store) }
        try store.batch { tx in
            try tx.remove([users[1]], from: try #require(try tx.group(key, for: users[0])))
        }
        let left = try store.read { try $0.draft(of: users[1], for: .group(key)) }
        #expect(left?.isSaved == false)
        #expect(left?.ct == store.now)
        let kept = try store.read { try $0.draft(of: users[0], for: .group(key)) }
        #expect(kept?.isSaved == true)
    }
}

@Suite("Folders in the store")
struct FolderStoreTests {
    @Test("come by mark and by id, each user's own", arguments: SQLEngine.available)
    func folders(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        func put(_ id: Text, _ sync: Int64, order: [Text], deleted: [Text] = []) throws {
            try store.batch { tx in
                try tx.setFolders(
                    of: users[0],
                    order: FolderOrder(ids: order, sync: sync),
                    changed: Folder(id: id, title: "t\u{0}", updateTime: sync),
                    deleted: deleted
                )
            }
        }
        try put("a", 1, order: ["a"])
        try put("b", 2, order: ["b", "a"])
        try put("c", 3, order: ["c", "b"], deleted: ["a"])
        try put("b", 4, order: ["c", "b"])
        try store.read { snapshot in
            let order = try snapshot.folderOrder(of: users[0])
            #expect(order == FolderOrder(ids: ["c", "b"], sync: 4))
            let all = try snapshot.folders(of: users[0], since: 0).map(\.id)
            #expect(Set(all) == ["b", "c"])
            #expect(try snapshot.folders(of: users[0], since: 3).map(\.id) == ["b"])
            #expect(try snapshot.folder("a", of: users[0]) == nil)
            #expect(try snapshot.folder("b", of: users[0])?.title == "t\u{0}")
            #expect(try snapshot.folder("b", of: users[1]) == nil)
            #expect(try snapshot.folderOrder(of: users[1]) == nil)
        }
    }
}
