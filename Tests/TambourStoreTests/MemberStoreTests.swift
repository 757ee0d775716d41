import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Members that come and go")
struct MemberStoreTests {
    @Test(
        "who goes leaves a tombstone, who comes back takes it away",
        arguments: SQLEngine.available
    )
    func tombstones(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(3)
        let key = try store.group(Array(users[..<2]))
        func left() throws -> [ChatID] {
            try store.read { try $0.leftChats(of: users[1], since: 0) }.map(\.chat.id)
        }
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            try tx.remove([users[1]], from: chat)
            #expect(chat.memberIDs == [users[0]])
        }
        #expect(try left() == [ChatID(key.rawValue)])
        let later = store.now
        #expect(try store.read { try $0.leftChats(of: users[1], since: later) }.isEmpty)
        #expect(try store.read { try $0.view(key, for: users[1]) } == nil)
        #expect(try store.problems() == [])

        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            try tx.add([users[1], users[2]], to: chat, showingHistory: false)
            #expect(chat.memberIDs == users)
        }
        #expect(try left().isEmpty)
        let view = try #require(try store.read { try $0.view(key, for: users[1]) })
        #expect(view.memberCount == 3)
        #expect(view.joined == store.now)
        #expect(try store.read { try $0.chat(view) }.lastMessage == nil)
        #expect(try store.problems() == [])
    }

    @Test(
        "a batch that fails leaves members, rights and words as they were",
        arguments: SQLEngine.available
    )
    func rollback(engine: SQLEngine) throws {
        struct Failure: Error {}
        let store = try TestStore(engine, limits: ["fanOutMembers": 2])
        let users = try store.users(3)
        let key = try store.group(Array(users[..<2]))
        #expect(throws: Failure.self) {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                try tx.add([users[2]], to: chat, showingHistory: true)
                try tx.setPermissions([.pin], of: users[1], in: chat)
                try tx.set(ChatDetails(owner: users[1], title: "Other"), of: chat)
                #expect(chat.isBig)
                throw Failure()
            }
        }
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            #expect(chat.memberIDs == Array(users[..<2]))
            #expect(!chat.isBig)
            #expect(chat.owner == users[0])
            #expect(chat.title == "Group")
            #expect(try tx.member(users[1], of: chat)?.permissions == [])
        }
        #expect(try store.problems() == [])
    }

    @Test(
        "a group that grows over the threshold is big from then on",
        arguments: SQLEngine.available
    )
    func growing(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["fanOutMembers": 3])
        let users = try store.users(5)
        let key = try store.group(Array(users[..<2]))
        let before = store.now
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            try tx.add([users[2]], to: chat, showingHistory: true)
            #expect(!chat.isBig)
            try tx.add([users[3]], to: chat, showingHistory: true)
            #expect(chat.isBig)
        }
        for user in users[..<4] {
            let changed = try store.read { try $0.changedViews(for: user, since: before) }
            #expect(changed.map(\.isBig) == [true], "\(user)")
        }
        // The rows of the group record that the group has become big. So the group stays big after
        // a restart. From then on, a change writes only the clock of the group.
        try store.reopen(limits: ["fanOutMembers": 3])
        let grown = store.now
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            #expect(chat.isBig)
            try tx.remove([users[2], users[3]], from: chat)
            #expect(chat.isBig)
            try tx.add([users[4]], to: chat, showingHistory: true)
        }
        for user in [users[0], users[1], users[4]] {
            let changed = try store.read { try $0.changedViews(for: user, since: grown) }
            #expect(changed.map(\.isBig) == [true], "\(user)")
        }
        #expect(try store.problems() == [])
    }
}
