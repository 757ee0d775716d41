import TambourEvents
import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Reactions in the store")
struct ReactionStoreTests {
    private static let thumb = ReactionInfo(
        totalCount: 1,
        counters: [ReactionCounter(count: 1, reaction: "👍")]
    )

    /// Creates a store with a group of three users and a message in the group.
    private func world(
        _ engine: SQLEngine
    ) throws -> (store: TestStore, users: [UserID], key: ChatKey, id: MessageID) {
        let store = try TestStore(engine)
        let users = try store.users(3)
        let key = try store.group(users)
        let id = try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            return try store.send("boom", from: users[0], to: chat, in: tx).id
        }
        return (store, users, key, id)
    }

    private func react(
        _ emoji: Text?,
        leaving info: ReactionInfo,
        by user: UserID,
        to id: MessageID,
        in key: ChatKey,
        _ store: TestStore
    ) throws {
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: user))
            let record = try #require(try tx.message(id, in: chat, visibleTo: user))
            try tx.setReaction(emoji, of: user, to: record, in: chat, leaving: info)
        }
    }

    @Test(
        "each viewer gets the counters with its own, everybody else without",
        arguments: SQLEngine.available
    )
    func viewers(engine: SQLEngine) throws {
        let (store, users, key, id) = try world(engine)
        try react("👍", leaving: Self.thumb, by: users[1], to: id, in: key, store)
        try store.read { snapshot in
            let record = try #require(try snapshot.record(id, in: key))
            for (viewer, own) in zip([users[0], users[1], nil], [nil, "👍", nil] as [Text?]) {
                let message = try snapshot.message(
                    record,
                    at: MessageAddress(chatID: ChatID(0)),
                    for: viewer.map { Viewpoint(user: $0, floor: MessageID(0)) }
                )
                var expected = Self.thumb
                expected.yourReaction = own
                #expect(try message.reactionInfo?.value(limits: .standard) == expected)
            }
            let page = try snapshot.reactions(to: record, after: UserID(0), limit: 5)
            #expect(page.reactions == [UserReaction(userID: users[1], reaction: "👍")])
            #expect(page.next == nil)
        }
        try react(nil, leaving: ReactionInfo(), by: users[1], to: id, in: key, store)
        try store.read { snapshot in
            let record = try #require(try snapshot.record(id, in: key))
            #expect(record.reactions == nil)
            #expect(
                try snapshot.reactions(to: record, after: UserID(0), limit: 5).reactions.isEmpty
            )
        }
        #expect(try store.problems() == [])
    }

    @Test(
        "is a change for every member, and gone with a batch that fails",
        arguments: SQLEngine.available
    )
    func change(engine: SQLEngine) throws {
        struct Failure: Error {}
        let (store, users, key, id) = try world(engine)
        let before = store.now
        #expect(throws: Failure.self) {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[1]))
                let record = try #require(try tx.message(id, in: chat, visibleTo: users[1]))
                try tx.setReaction("👍", of: users[1], to: record, in: chat, leaving: Self.thumb)
                throw Failure()
            }
        }
        #expect(try store.read { try $0.record(id, in: key)?.reactions } == nil)
        for user in users {
            #expect(try store.read { try $0.changedViews(for: user, since: before) }.isEmpty)
        }
        try react("👍", leaving: Self.thumb, by: users[1], to: id, in: key, store)
        for user in users {
            let changed = try store.read { try $0.changedViews(for: user, since: before) }
            #expect(changed.map(\.key) == [key])
        }
    }

    @Test("leaves no row behind where its message goes", arguments: SQLEngine.available)
    func removed(engine: SQLEngine) throws {
        let (store, users, key, first) = try world(engine)
        let removals: [(WriteTransaction, ChatState, MessageID) throws -> Void] = [
            { tx, chat, id in try tx.remove([#require(try tx.record(id, in: chat))], in: chat) },
            { tx, chat, id in _ = try tx.remove(upTo: id, sentBy: nil, in: chat) },
            { tx, chat, _ in _ = try tx.remove(upTo: chat.head.id, sentBy: [users[0]], in: chat) },
        ]
        var id = first
        for removal in removals {
            try react("👍", leaving: Self.thumb, by: users[1], to: id, in: key, store)
            try store.batch { tx in
                try removal(tx, try #require(try tx.group(key, for: users[0])), id)
            }
            try store.read { snapshot in
                let record = try #require(try snapshot.record(id, in: key))
                #expect(record.status == .removed)
                #expect(record.reactions == nil)
                let page = try snapshot.reactions(to: record, after: UserID(0), limit: 5)
                #expect(page.reactions.isEmpty)
            }
            id = try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                return try store.send("boom", from: users[0], to: chat, in: tx).id
            }
        }
    }

    @Test("settings are the chat's, after a restart too", arguments: SQLEngine.available)
    func settings(engine: SQLEngine) throws {
        let (store, users, key, _) = try world(engine)
        let settings = ChatReactionsSettings(
            chatID: ChatID(key.rawValue),
            isActive: false,
            count: 3,
            reactionIDs: ["👍"]
        )
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            var details = chat.details
            details.reactions = Packed(settings)
            try tx.set(details, of: chat)
        }
        try store.reopen()
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            #expect(chat.details.reactions == Packed(settings))
            #expect(!chat.isBig)
        }
        let view = try #require(try store.read { try $0.view(key, for: users[2]) })
        #expect(view.reactions == Packed(settings))
        #expect(try store.read { try $0.chat(view) }.reactions == Packed(settings))
    }
}
