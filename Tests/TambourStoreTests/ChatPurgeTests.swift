import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Many messages go in steps")
struct ChatPurgeTests {
    @Test(
        "of a deleted chat all goes, over restarts too, and nothing of other chats",
        arguments: SQLEngine.available
    )
    func steps(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["purgedRowsPerStep": 10])
        let users = try store.users(2)
        let (gone, kept) = (try store.group(users), try store.group(users))
        for key in [gone, kept] {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                for number in 1...200 {
                    try store.send(Text("word\(number)"), from: users[0], to: chat, in: tx)
                }
            }
        }
        try store.indexAll()
        try store.batch { tx in
            let chat = try #require(try tx.group(gone, for: users[0]))
            let removed = try tx.remove(upTo: chat.head.id, sentBy: nil, in: chat)
            #expect(removed.count == 10)
            try tx.removeEverybody(from: chat)
        }
        func count(_ table: String, _ condition: String) throws -> Int64 {
            let statement = try store.reader.sql.prepare(
                "SELECT count(*) FROM \(table) WHERE \(condition)"
            )
            defer { statement.reset() }
            return try statement.step() ? statement.int(0) : -1
        }
        let shown = "status <> 2 AND chat ="
        #expect(try count("message", "\(shown) \(gone.rawValue)") == 191)
        var steps = 0
        var isBusy = true
        while isBusy, steps < 200 {
            let before = store.writer.connection.sql.rowsStepped
            isBusy = try store.batch { try $0.purgeMessages(limit: 10) != nil }
            // Each step reads only a few rows, however many rows are left.
            #expect(store.writer.connection.sql.rowsStepped - before < 40)
            steps += 1
            if steps % 7 == 0 { try store.reopen() }
            if steps == 30 { #expect(store.writer.mayHavePurges) }
        }
        // The purge removes about 200 words and 201 messages, ten in each step.
        #expect((35...60).contains(steps))
        #expect(try count("message", "\(shown) \(gone.rawValue)") == 0)
        #expect(try count("message", "chat = \(gone.rawValue) AND length(text) > 0") == 0)
        #expect(try count("search_word", "chat = \(gone.rawValue)") == 0)
        #expect(try count("chat_purge", "1 = 1") == 0)
        #expect(try count("message", "\(shown) \(kept.rawValue)") == 201)
        #expect(try store.numbers(of: "word177", in: kept, for: users[1]) == [178])
        #expect(try store.problems() == [])
    }

    @Test(
        "what is cleared goes newest first, of two senders or of all, and later messages stay",
        arguments: SQLEngine.available,
        [true, false]
    )
    func cleared(engine: SQLEngine, isOfTwo: Bool) throws {
        let store = try TestStore(engine, limits: ["purgedRowsPerStep": 10])
        let users = try store.users(3)
        let key = try store.group(users)
        func send(_ count: Int) throws {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                for number in 0..<count {
                    try store.send("word", from: users[number % 3], to: chat, in: tx)
                }
            }
        }
        func clear() throws -> [MessageID] {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                let senders = isOfTwo ? [users[1], users[2]] : nil
                return try tx.remove(upTo: chat.head.id, sentBy: senders, in: chat)
            }
        }
        func step() throws -> [MessageID]? {
            try store.batch { tx in try tx.purgeMessages(limit: 10)?.removed }
        }
        try send(1_200)
        try store.indexAll()
        var removed = try clear()
        #expect(removed.count == (isOfTwo ? 7 : 10))
        for _ in 0..<3 {
            let part = try #require(try step())
            #expect(try #require(part.last) < #require(removed.first))
            removed = part + removed
        }
        // Clear the chat again before the first clearing has ended. The store must remove each
        // message exactly once.
        try send(20)
        removed += try clear()
        try store.reopen()
        try send(20)
        var steps = 0
        while let part = try step(), steps < 1_000 {
            removed += part
            steps += 1
        }
        #expect(steps < 130)
        #expect(Set(removed).count == removed.count)
        // No user owns the group's creation event, so the store does not remove it.
        #expect(removed.count == (isOfTwo ? 813 : 1_221))
        let left = try store.numbers(of: "word", in: key, for: users[0])
        #expect(left.count == (isOfTwo ? 427 : 20))
        try store.indexAll()
        #expect(try store.unexpectedWords() == [])
        #expect(try store.problems() == [])
    }
}
