import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("A read that may find nothing stops at its budget")
struct ScanBudgetTests {
    /// Returns the number of rows that `body` reads.
    private func rows(of store: TestStore, _ body: (ReadTransaction) throws -> Void) throws -> Int {
        let before = store.reader.sql.rowsStepped
        try store.read(body)
        return store.reader.sql.rowsStepped - before
    }

    /// Creates a dialog with `count` messages. Each message contains all words of a query except
    /// one. So the search can skip no block of the index.
    private func worstCase(
        _ engine: SQLEngine,
        count: Int,
        words: [String]
    ) throws -> (store: TestStore, user: UserID, key: ChatKey) {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let key = try store.batch { try $0.createPairChat(users[0], users[1], by: users[0]).key }
        var number = 0
        while number < count {
            try store.batch { tx in
                for _ in 0..<min(500, count - number) {
                    var held = words
                    held.remove(at: number % words.count)
                    let text = Text(held.joined(separator: " "))
                    try store.send(text, from: users[0], to: users[1], in: tx)
                    number += 1
                }
            }
        }
        return (store, users[0], key)
    }

    private static func words(_ count: Int) -> [String] {
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        return (0..<count).map { "\(letters[$0 / 26])\(letters[$0 % 26])" }
    }

    @Test("all words of a query in 6,000 messages, but never in one", arguments: [true, false])
    func worstSearch(isIndexed: Bool) throws {
        let words = Self.words(157)
        let (store, user, key) = try worstCase(.sqlite, count: 6_000, words: words)
        if isIndexed { try store.indexAll() }
        let text = Text(words.joined(separator: " "))
        let query = try #require(SearchQuery(text, maxWords: words.count))
        let limits = store.limits
        let view = try #require(try store.read { try $0.view(key, for: user) })
        for isEverywhere in [true, false] {
            var marker: MessageID?
            var pages = 0
            repeat {
                var page = SearchPage()
                let count = try rows(of: store) {
                    page =
                        isEverywhere
                        ? try $0.search(query, for: user, below: marker, limit: 30)
                        : try $0.search(query, in: view, below: marker, limit: 30)
                }
                // A page reads one row more than the budget, for the only chat.
                #expect(count <= limits.maxScannedRows + 1)
                #expect(page.messages.isEmpty)
                pages += 1
                marker = page.next
            } while marker != nil && pages < 1_000
            #expect(marker == nil)
            #expect(pages > 1)
        }
    }

    @Test(
        "the index is read no further than the messages are worth",
        arguments: SQLEngine.available
    )
    func manyBeginnings(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["maxScannedRows": 400])
        let users = try store.users(2)
        try store.batch { tx in
            for number in 0..<1_100 {
                // In one block, all words start with a. In the next block, all words start with b.
                // The query contains both letters. No word occurs twice.
                let letter = number / 16 % 2 == 0 ? "a" : "b"
                let words = (0..<10).map { "\(letter)\(number)x\($0)" }.joined(separator: " ")
                try store.send(Text(words), from: users[0], to: users[1], in: tx)
            }
        }
        try store.indexAll()
        let query = try #require(SearchQuery("a b"))
        var marker: MessageID?
        var pages = 0
        repeat {
            var page = SearchPage()
            let count = try rows(of: store) {
                page = try $0.search(query, for: users[0], below: marker, limit: 30)
            }
            #expect(count <= 401)
            #expect(page.messages.isEmpty)
            pages += 1
            marker = page.next
        } while marker != nil && pages < 1_000
        #expect(marker == nil)
    }

    @Test(
        "attachments of a kind that is not there, and messages the reader hid",
        arguments: SQLEngine.available
    )
    func media(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["maxScannedRows": 100])
        let users = try store.users(2)
        let share = Packed([Attach(type: .share)])
        var sent: [MessageID] = []
        let key = try store.batch { tx in
            let chat = try tx.createPairChat(users[0], users[1], by: users[0])
            for number in 0..<450 {
                var content = MessageContent(cid: store.nextCID(), text: "")
                content.attaches = number == 3 ? Packed([Attach(type: .photo)]) : share
                sent.append(
                    try tx.append(content, to: chat, from: users[0], on: store.device).record.id
                )
            }
            try tx.hide(Array(sent[200..<400]), in: chat, for: users[0])
            return chat.key
        }
        let view = try #require(try store.read { try $0.view(key, for: users[0]) })
        for isForward in [false, true] {
            var found: [MessageID] = []
            var place = MessageID(isForward ? 0 : .max)
            var pages = 0
            while pages < 100 {
                var page = AttachedPage()
                let count = try rows(of: store) { snapshot in
                    var budget = ScanBudget(store.limits)
                    page =
                        isForward
                        ? try snapshot.attached(in: view, after: place, limit: 30, &budget) {
                            $0.type == .photo
                        }
                        : try snapshot.attached(in: view, upTo: place, limit: 30, &budget) {
                            $0.type == .photo
                        }
                }
                #expect(count <= 100)
                found += page.messages.map(\.id)
                pages += 1
                guard let reached = page.reached else { break }
                place = isForward ? reached : MessageID(reached.rawValue - 1)
            }
            #expect(found == [sent[3]])
            #expect((5...6).contains(pages))
        }
    }
}
