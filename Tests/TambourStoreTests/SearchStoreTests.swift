import Foundation
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Messages are found by their words")
struct SearchStoreTests {
    /// Creates a store with three users and a dialog between the first two.
    private func dialog(
        _ engine: SQLEngine
    ) throws -> (store: TestStore, users: [UserID], key: ChatKey) {
        let store = try TestStore(engine)
        let users = try store.users(3)
        let key = try store.batch { try $0.createPairChat(users[0], users[1], by: users[0]).key }
        return (store, users, key)
    }

    @Test(
        "a long chat is found through as if every message were read",
        arguments: SQLEngine.available
    )
    func longChat(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        // This number of messages fills two parts of the index and begins a third.
        let count = 2_300
        try store.batch { tx in
            for number in 1...count {
                var text = "Слово\(number % 7) common\(number)"
                if number == 5 || number == 1_500 { text += " редкость" }
                try store.send(Text(text), from: users[0], to: users[1], in: tx)
            }
        }
        func found(_ query: Text) throws -> [Int] {
            try store.numbers(of: query, in: key, for: users[1])
        }
        func check() throws {
            #expect(try found("редкость") == [1_500, 5])
            #expect(try found("слово3") == (1...count).filter { $0 % 7 == 3 }.reversed())
            #expect(
                try found("СЛОВО3 common22")
                    == (1...count).filter {
                        $0 % 7 == 3 && "\($0)".hasPrefix("22")
                    }.reversed()
            )
            #expect(try found("common2300") == [2_300])
            #expect(try found("слово9") == [])
        }
        try check()
        var steps = 0
        while store.writer.hasWordsToIndex {
            try store.batch { try $0.indexWords() }
            steps += 1
            if steps == 2 { try check() }
        }
        #expect(try store.indexedBlocks(of: key) == count / 16)
        #expect(try store.unexpectedWords() == [])
        try check()
    }

    @Test("pages follow each other by their markers", arguments: SQLEngine.available)
    func pages(engine: SQLEngine) throws {
        let (store, users, _) = try dialog(engine)
        let group = try store.group([users[0], users[2]])
        try store.batch { tx in
            let chat = try #require(try tx.group(group, for: users[0]))
            for number in 1...80 {
                try store.send(Text("word \(number)"), from: users[0], to: users[1], in: tx)
                try store.send("word too", from: users[0], to: chat, in: tx)
            }
        }
        try store.indexAll()
        let query = try #require(SearchQuery("wor"))
        var all: [MessageID] = []
        var marker: MessageID?
        repeat {
            let page = try store.read {
                try $0.search(query, for: users[0], below: marker, limit: 7)
            }
            #expect(page.messages.count >= 7 || page.next == nil)
            all += page.messages.map(\.record.id)
            marker = page.next
        } while marker != nil
        #expect(all.count == 160)
        #expect(all == all.sorted(by: >))
    }

    @Test(
        "what is edited is found at once, and what is gone leaves the index later, also after a restart",
        arguments: SQLEngine.available
    )
    func changes(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try store.batch { tx in
            try (1...80).map {
                try store.send(
                    Text("alpha x\($0)e y\($0 / 2)e"),
                    from: users[0],
                    to: users[1],
                    in: tx
                )
            }
        }
        try store.indexAll()
        #expect(try store.indexedBlocks(of: key) == 5)
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            var edited = sent[4]
            edited.text = "beta"
            _ = try tx.edit(sent[4], to: edited, in: chat)
            try tx.remove([sent[6], sent[7]], in: chat)
        }
        func check() throws {
            #expect(try store.numbers(of: "beta", in: key, for: users[1]) == [5])
            #expect(try store.numbers(of: "y2e", in: key, for: users[1]) == [4])
            #expect(try store.numbers(of: "y4e", in: key, for: users[1]) == [9])
            #expect(try store.numbers(of: "alpha", in: key, for: users[1]).count == 77)
        }
        try check()
        try store.reopen()
        try store.indexAll()
        #expect(try store.unexpectedWords() == [])
        try check()
    }

    @Test(
        "a block of more words than are indexed has a row, and is read",
        arguments: SQLEngine.available
    )
    func manyWords(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        func words(_ message: Int) -> Text {
            Text((0..<(message <= 32 ? 500 : 5)).map { "w\(message)x\($0)" }.joined(separator: " "))
        }
        let ids = try store.batch { tx in
            try (1...64).map { number in
                try store.send(words(number), from: users[0], to: users[1], in: tx).id
            }
        }
        try store.indexAll()
        func rows() throws -> Int64 {
            let statement = try store.reader.sql.prepare("SELECT count(*) FROM search_word")
            defer { statement.reset() }
            return try statement.step() ? statement.int(0) : -1
        }
        // Two blocks with 8,000 words each share one row. 32 messages have five words each, and
        // each word has a row.
        #expect(try rows() == 1 + 32 * 5)
        #expect(try store.unexpectedWords() == [])
        func isFound(_ message: Int) throws -> Bool {
            try store.numbers(of: Text("w\(message)x3"), in: key, for: users[1]).contains(message)
        }
        for message in [1, 20, 40] { #expect(try isFound(message)) }
        func change(_ message: Int, to text: Text?) throws {
            try store.batch { tx in
                let chat = try #require(try tx.chat(of: users[0], and: users[1]))
                let old = try #require(try tx.record(ids[message - 1], in: chat))
                guard let text else { return try tx.remove([old], in: chat) }
                var edited = old
                edited.text = text
                _ = try tx.edit(old, to: edited, in: chat)
            }
            try store.indexAll()
            #expect(try store.unexpectedWords() == [], "\(message)")
        }
        // Now another block exceeds the limit of words. Then it is below the limit again.
        try change(40, to: words(1))
        #expect(try isFound(41))
        try change(40, to: "few")
        #expect(try rows() == 1 + 31 * 5 + 1)
        for message in 2...16 { try change(message, to: nil) }
        try change(1, to: "few")
        #expect(try rows() == 1 + 31 * 5 + 1)
        #expect(try isFound(20))
    }

    @Test("nothing of what was cleared stays in the file")
    func erased() throws {
        let (store, users, key) = try dialog(.sqlite)
        try store.batch { tx in
            for number in 1...1_300 {
                try store.send(Text("qwsecret\(number)"), from: users[0], to: users[1], in: tx)
            }
        }
        try store.indexAll()
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            _ = try tx.remove(upTo: chat.head.id, sentBy: nil, in: chat)
        }
        while try store.batch({ try $0.purgeMessages(limit: 500) }) != nil {}
        #expect(try store.numbers(of: "qws", in: key, for: users[0]) == [])
        try store.indexAll()
        #expect(try store.unexpectedWords() == [])
        let connection = store.writer.connection.sql
        try connection.execute("VACUUM")
        try connection.checkpoint()
        let path = try #require(try store.path())
        let file = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(file.range(of: Data("qwsecret".utf8)) == nil)
        #expect(file.count > 0)
    }

    @Test("a store from before the index, or one that stopped behind it, catches up")
    func catchUp() throws {
        let (store, users, key) = try dialog(.sqlite)
        try store.batch { tx in
            for number in 1...100 {
                try store.send(Text("word\(number)"), from: users[0], to: users[1], in: tx)
            }
        }
        try store.reopen()
        #expect(store.writer.hasWordsToIndex)
        try store.indexAll()
        #expect(try store.indexedBlocks(of: key) == 6)
    }
}

extension ReadTransaction {
    /// Returns the hits on all pages of a search.
    fileprivate func allPages(of query: SearchQuery, in view: ChatView) throws -> [SearchHit] {
        var found: [SearchHit] = []
        var marker: MessageID?
        repeat {
            let page = try search(query, in: view, below: marker, limit: 100)
            found += page.messages
            marker = page.next
        } while marker != nil
        return found
    }
}

extension TestStore {
    func indexAll() throws {
        while writer.hasWordsToIndex { try batch { try $0.indexWords() } }
    }

    /// Returns the numbers of the messages that a query finds in one chat, newest first.
    func numbers(of query: Text, in chat: ChatKey, for viewer: UserID) throws -> [Int] {
        try read { snapshot in
            guard let query = SearchQuery(query), let view = try snapshot.view(chat, for: viewer)
            else { return [] }
            return try snapshot.allPages(of: query, in: view).map {
                Int($0.record.number)
            }
        }
    }

    func indexedBlocks(of chat: ChatKey) throws -> Int {
        let statement = try reader.sql.prepare("SELECT ends FROM search_part WHERE chat = $1")
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        var blocks = 0
        while try statement.step() { blocks += statement.bytes(0).count / 8 }
        return blocks
    }

    /// Returns the path of the database file.
    func path() throws -> String? {
        let statement = try reader.sql.prepare("SELECT file FROM pragma_database_list")
        defer { statement.reset() }
        return try statement.step() ? statement.string(0) : nil
    }

    private struct IndexRow: Hashable {
        let chat: Int64
        let scale: Int64
        let part: Int64
        let word: [UInt8]
    }

    /// Computes the expected index from the messages that the index covers. Returns the differences
    /// between the real index and the expected index.
    func unexpectedWords() throws -> [String] {
        var expected: [IndexRow: Int64] = [:]
        let parts = try reader.sql.prepare("SELECT chat, part, ends FROM search_part")
        var covered: [(chat: Int64, first: Int64, last: Int64)] = []
        while try parts.step() {
            let first = parts.int(1) * 1024 + 1
            covered.append((parts.int(0), first, first - 1 + Int64(parts.bytes(2).count / 8 * 16)))
        }
        parts.reset()
        let messages = try reader.sql.prepare(
            "SELECT n, text, forward, status FROM message WHERE chat = $1 AND n >= $2 AND n <= $3"
        )
        for (chat, first, last) in covered {
            messages.bind(1, chat)
            messages.bind(2, first)
            messages.bind(3, last)
            var blocks: [Int64: Set<[UInt8]>] = [:]
            while try messages.step() {
                if messages.int(3) == 2 { continue }
                var words = SearchWords.words(of: Text(unchecked: Bytes(messages.bytes(1))))
                if !messages.isNull(2) {
                    let forward = Packed<MessageLink>(unchecked: Bytes(messages.bytes(2)))
                    words.formUnion(SearchWords.words(of: forward.stored?.message.text ?? .empty))
                }
                blocks[(messages.int(0) - 1) / 16, default: []].formUnion(words)
            }
            // Only a complete part has rows for areas.
            let isComplete = last - first == 1_023
            for (block, words) in blocks {
                // If a block has too many words, the index contains a single row for it, with an
                // empty word.
                for word in words.count > 256 ? [[]] : words {
                    let scales: [(Int64, Int64)] = [(0, block), (1, block / 64)]
                    for (scale, index) in scales.prefix(isComplete ? 2 : 1) {
                        let row = IndexRow(chat: chat, scale: scale, part: index / 64, word: word)
                        expected[row, default: 0] |= Int64(bitPattern: 1 << UInt64(index % 64))
                    }
                }
            }
            messages.reset()
        }
        var problems: [String] = []
        let rows = try reader.sql.prepare("SELECT chat, scale, part, word, blocks FROM search_word")
        while try rows.step() {
            let row = IndexRow(
                chat: rows.int(0),
                scale: rows.int(1),
                part: rows.int(2),
                word: rows.bytes(3)
            )
            let blocks = expected.removeValue(forKey: row)
            if blocks != rows.int(4) {
                let word = String(decoding: row.word, as: UTF8.self)
                problems.append(
                    "\(word) of chat \(row.chat), scale \(row.scale): \(rows.int(4)), not \(blocks ?? 0)"
                )
            }
        }
        rows.reset()
        return problems
            + expected.keys.map { "\(String(decoding: $0.word, as: UTF8.self)) is missing" }
    }
}
