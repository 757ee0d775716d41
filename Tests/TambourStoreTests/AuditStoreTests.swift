import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("The audit log of a store")
struct AuditStoreTests {
    private func entries(_ store: TestStore) throws -> [AuditEntry] {
        try store.read { try $0.auditEntries(after: 0, limit: 1000) }
    }

    @Test(
        "refusals are counted per account, action and hour, however many there are",
        arguments: SQLEngine.available
    )
    func refusals(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let start = store.now
        for number in 0..<500 {
            try store.batch(at: start + Int64(number)) { tx in
                try tx.countRefusal(.passwordRefused, of: users[0], from: "10.0.0.\(number % 9)")
            }
        }
        try store.batch { try $0.countRefusal(.codeRefused, of: users[0], from: "10.0.0.1") }
        try store.batch { try $0.countRefusal(.passwordRefused, of: users[1], from: "10.0.0.1") }
        let first = try entries(store)
        #expect(first.map(\.times) == [500, 1, 1])
        #expect(first[0].created == start && first[0].last == start + 499)
        #expect(first[0].address == "10.0.0.4" && first[0].user == users[0])
        try store.batch(at: start + 3_600_000) { tx in
            try tx.countRefusal(.passwordRefused, of: users[0], from: "10.0.0.1")
        }
        #expect(try entries(store).map(\.times) == [500, 1, 1, 1])
    }

    @Test("each kind keeps its newest entries", arguments: SQLEngine.available)
    func bounds(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["maxAuditRows": 5])
        let users = try store.users(20)
        try store.batch { try $0.record(.block, about: users[0], "first") }
        for (number, user) in users.enumerated() {
            try store.batch { tx in
                try tx.record(.signIn, about: user, from: "a", "session \(number)")
                try tx.countRefusal(.codeRefused, of: user, from: "a")
            }
        }
        let kept = try entries(store)
        #expect(kept.map(\.id) == kept.map(\.id).sorted())
        #expect(kept.filter { $0.kind == .admin }.map(\.detail) == ["first"])
        let signIns = kept.filter { $0.kind == .signIn }.map(\.detail)
        #expect(signIns == (15..<20).map { "session \($0)" })
        #expect(kept.filter { $0.kind == .refused }.map(\.user) == Array(users.suffix(5)))

        // A lower limit applies as soon as the store writes the next entry. After a restart, the
        // store does not reuse ids.
        try store.reopen(limits: ["maxAuditRows": 2])
        try store.batch { try $0.record(.signIn, about: users[0]) }
        let fewer = try entries(store)
        #expect(fewer.filter { $0.kind == .signIn }.count == 2)
        #expect(fewer.last?.id == (kept.last?.id ?? 0) + 1)
        #expect(try store.problems() == [])
    }

    @Test("old entries are pruned in steps, the oldest first", arguments: SQLEngine.available)
    func pruning(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["auditRowsPerStep": 3])
        let user = try store.users(1)[0]
        for _ in 0..<8 { try store.batch { try $0.record(.signIn, about: user) } }
        let all = try entries(store)
        let bound = all[5].created
        var steps = 0
        while try store.batch({ try $0.pruneAudit(before: bound) }) { steps += 1 }
        #expect(steps == 2)
        #expect(try entries(store).map(\.id) == all.suffix(3).map(\.id))
    }

    @Test(
        "one person's entries are found, and erased with the person",
        arguments: SQLEngine.available
    )
    func person(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        for user in [users[0], users[1], users[0]] {
            try store.batch { try $0.record(.signIn, about: user, from: "a") }
        }
        func about(_ user: UserID, after id: Int64 = 0) throws -> [Int64] {
            try store.read { try $0.auditEntries(about: user, after: id, limit: 10).map(\.id) }
        }
        #expect(try about(users[0]) == [1, 3])
        #expect(try about(users[0], after: 1) == [3])
        let account = try #require(try store.read { try $0.account(users[0]) })
        try store.batch { tx in
            try tx.beginErasure(of: account)
            _ = try tx.eraseRows(of: users[0], limit: 1000)
        }
        #expect(try about(users[0]) == [] && about(users[1]) == [2])
    }

    @Test("default chats and the announcement that waits", arguments: SQLEngine.available)
    func announcements(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(4)
        let key = try store.group([users[0], users[2]])
        try store.batch { tx in
            let chat = try #require(try tx.livingChat(key))
            #expect(tx.outsiders(among: users, of: chat) == [users[1], users[3]])
            #expect(try tx.livingChat(ChatKey(-77)) == nil)
            try tx.addDefaultChat(chat)
            try tx.addAnnouncement("hello", in: chat, after: nil)
        }
        let waiting = try #require(try store.read { try $0.announcement() })
        #expect(waiting.text == "hello" && waiting.message == nil && waiting.upTo == UserID(0))
        try store.batch { try $0.setAnnounced(upTo: users[1], waiting) }
        #expect(try store.read { try $0.announcement()?.upTo } == users[1])
        try store.batch { try $0.finish(waiting, as: MessageID(77)) }
        let posted = try #require(try store.read { try $0.announcement() })
        #expect(posted.message == MessageID(77) && posted.text.isEmpty)
        try store.batch { tx in
            let chat = try #require(try tx.livingChat(key))
            try tx.addAnnouncement("again", in: chat, after: posted)
        }
        let next = try #require(try store.read { try $0.announcement() })
        #expect(next.id > posted.id && next.text == "again")
        #expect(try store.read { try $0.defaultChats() } == [key])
        #expect(try store.batch { try $0.removeDefaultChat(key) })
        #expect(try !store.batch { try $0.removeDefaultChat(key) })
        #expect(try store.problems() == [])
    }
}
