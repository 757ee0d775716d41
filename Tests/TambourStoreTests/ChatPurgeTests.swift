import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("A deleted chat goes in steps")
struct ChatPurgeTests {
    @Test(
        "all of it goes, over restarts too, and nothing of other chats",
        arguments: SQLEngine.available
    )
    func steps(engine: SQLEngine) throws {
        let store = try TestStore(engine)
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
            try tx.putPurge(of: chat)
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
        #expect(try count("message", "\(shown) \(gone.rawValue)") == 201)
        var steps = 0
        var isBusy = true
        while isBusy, steps < 200 {
            let before = store.writer.connection.sql.rowsStepped
            isBusy = try store.batch { try $0.purgeChats(limit: 10) }
            // Rows of a step are counted, whatever is left.
            #expect(store.writer.connection.sql.rowsStepped - before < 40)
            steps += 1
            if steps % 7 == 0 { try store.reopen() }
            if steps == 30 { #expect(store.writer.mayHavePurges) }
        }
        // About 200 words and 201 messages.
        #expect((35...60).contains(steps))
        #expect(try count("message", "\(shown) \(gone.rawValue)") == 0)
        #expect(try count("message", "chat = \(gone.rawValue) AND length(text) > 0") == 0)
        #expect(try count("search_word", "chat = \(gone.rawValue)") == 0)
        #expect(try count("chat_purge", "1 = 1") == 0)
        #expect(try count("message", "\(shown) \(kept.rawValue)") == 201)
        #expect(try store.numbers(of: "word177", in: kept, for: users[1]) == [178])
        #expect(try store.problems() == [])
    }
}
