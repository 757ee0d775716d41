import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("What operators ask a store")
struct OperatorStoreTests {
    /// Creates a store with three users, a dialog, and a group of all three users.
    private func store(_ engine: SQLEngine) throws -> (TestStore, [UserID], ChatKey) {
        let store = try TestStore(engine)
        let users = try store.users(3)
        for text in ["one", "two", "three"] {
            try store.send(Text(text), from: users[0], to: users[1])
        }
        return (store, users, try store.group(users))
    }

    @Test("sizes of all tables, kept by day", arguments: SQLEngine.available)
    func sizes(engine: SQLEngine) throws {
        let (store, _, _) = try store(engine)
        let sizes = try store.read { try $0.tableSizes() }
        func size(_ table: String) -> TableSize? { sizes.first { $0.table == table } }
        #expect(size("message")?.rows == 4 && size("account")?.rows == 3)
        #expect(sizes.count > 20 && sizes.allSatisfy { ($0.bytes ?? 0) > 0 || $0.rows == 0 })
        #expect(sizes.map(\.table) == sizes.map(\.table).sorted())
        #expect(try store.read { try $0.messageCount() } == 4)
        #expect(try store.read { try $0.keptSizes(upTo: 10) } == nil)
        let old = [TableSize(table: "a", rows: 1, bytes: nil)]
        for day: Int64 in [10, 12, 12] {
            try store.batch { try $0.keep(day == 10 ? old : sizes, of: day) }
        }
        for (asked, day) in [(9, 10), (10, 10), (11, 10), (12, 12), (20, 12)] as [(Int64, Int64)] {
            let kept = try store.read { try $0.keptSizes(upTo: asked) }
            #expect(kept?.day == day)
            #expect(kept?.sizes == (day == 10 ? old : sizes))
        }
    }

    @Test("chats, members, sessions and counts", arguments: SQLEngine.available)
    func inspection(engine: SQLEngine) throws {
        let (store, users, group) = try store(engine)
        let chats = try store.read { try $0.inspectedChats(after: nil, limit: 10) }
        #expect(chats.map(\.key) == [group, ChatKey(1)])
        #expect(chats[0].title == "Group" && chats[0].memberCount == 3 && chats[0].pair == nil)
        #expect(chats[1].head.number == 3 && chats[1].pair?.high == users[1])
        #expect(try store.read { try $0.inspectedChats(after: group, limit: 10) }.count == 1)
        let own = try store.read { try $0.inspectedChats(of: users[2], after: nil, limit: 10) }
        #expect(own.map(\.key) == [group])
        let members = try store.read {
            try $0.inspectedMembers(of: group, after: users[0], limit: 1)
        }
        #expect(members.map(\.id) == [users[1]])
        let origin = SessionOrigin(installation: "i", client: "c", info: "n", address: "a")
        for (index, user) in users.enumerated() {
            try store.batch {
                _ = try $0.createSession(of: user, tokenHash: [UInt8(index)], origin: origin)
            }
        }
        let sessions = try store.read { try $0.sessions(after: SessionID(1), limit: 1) }
        #expect(sessions.map(\.userID) == [users[1]])
        let counts = try store.read { try $0.counts(of: users[0]) }
        #expect(counts.sessions == 1 && counts.devices == 1 && counts.chats == 2)
        #expect(counts.contacts == 0 && counts.drafts == 0 && counts.reports == 0)
        #expect(try store.read { try $0.lastCommit() } == store.now)
    }

    @Test("what is kept of one person", arguments: SQLEngine.available)
    func personalData(engine: SQLEngine) throws {
        let (store, users, group) = try store(engine)
        let (alice, bob) = (users[0], users[1])
        let account = try #require(try store.read { try $0.account(alice) })
        #expect(try store.read { try $0.chatKeys(of: alice) } == [group, ChatKey(1)])
        func own(_ user: UserID, after id: Int64 = 0, limit: Int = 10) throws -> [MessageRecord] {
            try store.read {
                try $0.ownMessages(of: user, in: ChatKey(1), after: MessageID(id), limit: limit)
            }
        }
        let all = try own(alice)
        #expect(all.map { String($0.text) } == ["one", "two", "three"])
        #expect(try own(alice, after: all[0].id.rawValue, limit: 1).map(\.id) == [all[1].id])
        #expect(try own(bob).isEmpty)
        try store.batch { tx in
            let chat = try #require(try tx.group(group, for: alice))
            try tx.remove([alice], from: chat)
            try tx.report(.user(bob), by: alice, reason: 3, words: "why")
        }
        #expect(try store.read { try $0.formerChats(of: alice).map(\.key) } == [group])
        #expect(try store.read { try $0.reports(by: alice).map(\.reason) } == [3])
        #expect(try store.read { try $0.reports(by: bob) }.isEmpty)
        #expect(try store.read { try $0.attempts(of: account) }.isEmpty)
        #expect(try store.read { try $0.reactions(of: alice, in: group) }.isEmpty)
        #expect(try store.read { try $0.hiddenMessages(of: alice, in: group) }.isEmpty)
        #expect(try store.read { try $0.installations(of: alice) }.isEmpty)
    }

    @Test("digests differ where a value, its type or a row does, and PostgreSQL has none")
    func digests() throws {
        for engine in SQLEngine.available {
            let (store, _, _) = try store(engine)
            let sql = store.writer.connection.sql
            guard let file = sql as? SQLiteConnection else {
                let error = #expect(throws: StoreDigest.Unsupported.self) {
                    try StoreDigest.tables(of: sql)
                }
                #expect(error?.description.contains("pg_dump") == true)
                continue
            }
            let before = try StoreDigest.tables(of: file)
            #expect(try StoreDigest.tables(of: file) == before)
            #expect(before.first { $0.table == "message" }?.rows == 4)
            #expect(before.last?.table == "(schema)")
            func differs(_ change: String) throws -> [String] {
                try file.begin(.immediate)
                defer { file.rollback() }
                try file.execute(change)
                let after = try StoreDigest.tables(of: file)
                return zip(before, after).filter { $0 != $1 }.map(\.0.table)
            }
            let first = "WHERE n = 1 AND chat = 1"
            #expect(try differs("UPDATE message SET text = X'6f6e66' \(first)") == ["message"])
            #expect(try differs("UPDATE message SET text = 'one' \(first)") == ["message"])
            #expect(try differs("DELETE FROM message \(first)") == ["message"])
            #expect(try differs("CREATE INDEX x ON chat (owner)") == ["(schema)"])
        }
    }

    @Test("a copy of a snapshot is that snapshot, without what was deleted before")
    func copy() throws {
        let (store, users, _) = try store(.sqlite)
        let gone = try store.send("never to be seen again", from: users[0], to: users[1])
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            try tx.remove([gone], in: chat)
        }
        let source = try StoreDigest.file(store.database.connect())
        let path = try source.pathOfMain() + "-copy"
        try source.begin(.snapshot)
        let before = try StoreDigest.tables(of: source)
        try store.send("after it", from: users[0], to: users[1])
        try source.copy(to: path)
        #expect(try StoreDigest.tables(of: source) == before)
        source.rollback()
        let copy = try SQLiteConnection(path: path, mode: .readWrite)
        #expect(try StoreDigest.tables(of: copy) == before)
        #expect(try copy.quickCheck() == [])
    }
}

extension SQLFileConnection {
    fileprivate func pathOfMain() throws -> String {
        let statement = try prepare("SELECT file FROM pragma_database_list WHERE name = 'main'")
        defer { statement.reset() }
        return try statement.step() ? statement.string(0) : ""
    }
}
