import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Comments in the store")
struct CommentStoreTests {
    private let store: TestStore
    private let users: [UserID]
    private let channel: ChatKey

    init() throws {
        store = try TestStore(.sqlite, limits: ["purgedRowsPerStep": 10])
        users = try store.users(3)
        let users = users
        channel = try store.batch { tx in
            try tx.createGroup(.channel, title: "News", owner: users[0], members: users).key
        }
    }

    private func post() throws -> MessageID {
        try store.batch { tx in
            let chat = try #require(try tx.group(channel, for: users[0]))
            // Users cannot comment on the channel's creation event. So send this event before the
            // post.
            if chat.head.number == 0 { try store.send("made", from: users[0], to: chat, in: tx) }
            return try store.send("post", from: users[0], to: chat, in: tx).id
        }
    }

    private func comment(on post: MessageID, count: Int = 1) throws {
        try store.batch { tx in
            let chat = try #require(try tx.group(channel, for: users[1]))
            let comments = try #require(try tx.comments(on: post, in: chat, visibleTo: users[1]))
            for _ in 0..<count { try store.send("said", from: users[1], to: comments, in: tx) }
        }
    }

    private func rows(_ table: String) throws -> Int64 {
        let statement = try store.reader.sql.prepare("SELECT count(*) FROM \(table)")
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : -1
    }

    @Test("go with their post after a restart, before anybody has asked for the channel")
    func purgedAfterRestart() throws {
        let post = try post()
        try comment(on: post, count: 25)
        try store.batch { tx in
            let chat = try #require(try tx.group(channel, for: users[0]))
            let record = try #require(try tx.record(post, in: chat))
            try tx.remove([record], in: chat)
        }
        try store.reopen()
        var steps = 0
        while try store.batch({ try $0.purgeMessages(limit: 10) != nil }), steps < 10 {
            steps += 1
            try store.reopen()
        }
        #expect((3...5).contains(steps))
        #expect(try rows("message WHERE status <> 2 AND text = 'said'") == 0)
        #expect(try store.problems() == [])
    }

    @Test("are erased with a channel that nobody is in any more, few posts in a step")
    func erased() throws {
        for _ in 0..<5 { try comment(on: try post(), count: 3) }
        try store.batch { tx in
            try tx.remove(users, from: try #require(try tx.group(channel, for: users[0])))
        }
        try store.reopen(limits: ["erasedChatsPerStep": 2])
        var left: [Int64] = []
        for _ in 0..<3 {
            try store.batch { tx in
                let chat = try #require(try tx.chatToErase(channel))
                _ = try tx.eraseDeserted(chat, limit: 1_000)
            }
            left.append(try rows("comment_thread"))
        }
        #expect(left == [3, 1, 0])
        #expect(try rows("message") == 0)
        #expect(try rows("commenter") == 0)
        #expect(try store.problems() == [])
    }

    @Test("of a batch that fails leave nothing, and the next ones begin anew")
    func rolledBack() throws {
        struct Poison: Error {}
        let post = try post()
        #expect(throws: Poison.self) {
            try store.batch { tx in
                let chat = try #require(try tx.group(channel, for: users[1]))
                let comments = try #require(
                    try tx.comments(on: post, in: chat, visibleTo: users[1])
                )
                try store.send("lost", from: users[1], to: comments, in: tx)
                throw Poison()
            }
        }
        #expect(try rows("comment_thread") == 0)
        try comment(on: post)
        try comment(on: post)
        #expect(try rows("comment_thread WHERE comments = 2") == 1)
        #expect(try store.problems() == [])
    }
}
