import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("A batch happens whole or not at all, and a restart carries on")
struct BatchTests {
    /// Returns the number of rows of each table that `everything` fills.
    private func rows(_ store: TestStore) throws -> [String: Int64] {
        let tables = [
            "account", "device", "session", "login_code", "registration", "chat", "member",
            "message", "message_hidden", "invitation", "invitation_use", "meta",
        ]
        var counts: [String: Int64] = [:]
        for table in tables {
            let statement = try store.reader.sql.prepare("SELECT count(*) FROM \(table)")
            counts[table] = try statement.step() ? statement.int(0) : -1
        }
        return counts
    }

    /// Writes rows into each of the tables that `rows` counts, in one batch.
    private func everything(_ tx: WriteTransaction, _ store: TestStore) throws -> [ChatKey] {
        let users = try (1...3).map {
            try tx.createAccount(phone: $0, firstName: "\($0)", lastName: nil)
        }
        let origin = SessionOrigin(installation: "i", client: "", info: "", address: "")
        _ = try tx.createSession(of: users[0], tokenHash: [1], origin: origin)
        try tx.createLoginCode(
            tokenHash: [2],
            codeHash: [2],
            phone: 1,
            address: "",
            now: 1000,
            expires: 5000,
            keptSince: 0
        )
        try tx.createRegistration(tokenHash: [3], phone: 1, expires: 5000)
        let invitation = try tx.invite(phone: 9, expires: 5000, keptSince: 0)
        try tx.use(invitation, by: users[0])
        let sent = try store.send("a", from: users[0], to: users[1], in: tx)
        let chat = try #require(try tx.chat(of: users[0], and: users[1]))
        try tx.hide([sent.id], in: chat, for: users[1])
        let group = try tx.createGroup(title: "g", owner: users[0], members: users)
        try store.send("b", from: users[0], to: group, in: tx)
        _ = try tx.flushedReader()
        try store.send("not flushed", from: users[1], to: group, in: tx)
        return [chat.key, group.key]
    }

    @Test(
        "a batch that fails leaves nothing, neither stored nor remembered",
        arguments: SQLEngine.available
    )
    func rollback(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let before = try rows(store)
        var keys: [ChatKey] = []
        #expect(throws: Failure.self) {
            try store.batch(at: 5000) { tx in
                keys = try everything(tx, store)
                tx.emit(.sessionsClosed([SessionID(1)], of: UserID(1)))
                throw Failure()
            }
        }
        #expect(try rows(store) == before)

        // The same batch then succeeds. It contains no events of the lost batch.
        let again = try everything(store.writer.begin(.at(6000)), store)
        #expect(try store.writer.commit().isEmpty)
        #expect(again[0] == keys[0])
        let after = try rows(store)
        #expect(after.values.allSatisfy { $0 > 0 }, "\(after)")
        #expect((after["chat"], after["member"], after["message"]) == (2, 5, 3))
        let third = try #require(try store.read { try $0.account(phone: 3) }).id
        #expect(try store.texts(of: again[1], for: third) == ["b", "not flushed"])
        #expect(try store.problems().filter { !$0.contains("clock") } == [])
    }

    @Test(
        "a dialog whose creation was rolled back can be created again",
        arguments: SQLEngine.available,
        [false, true]
    )
    func dialogAgain(engine: SQLEngine, flushed: Bool) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        #expect(throws: Failure.self) {
            try store.batch { tx in
                try store.send("lost", from: users[0], to: users[1], in: tx)
                if flushed { _ = try tx.flushedReader() }
                throw Failure()
            }
        }
        #expect(try store.read { try $0.view(ChatID(3), for: users[0]) } == nil)

        let sent = try store.batch { tx in
            #expect(try tx.chat(of: users[0], and: users[1]) == nil)
            let chat = try tx.createPairChat(users[0], users[1], by: users[0])
            #expect(try tx.sent(cid: 1, from: users[0], on: store.device, in: chat) == nil)
            return try store.send("kept", from: users[0], to: chat, in: tx)
        }
        #expect(sent.number == 1)
        #expect(try store.texts(of: sent.chat, for: users[1]) == ["kept"])
        #expect(try store.problems() == [])
    }

    @Test("what a rolled back batch changed is as it was", arguments: SQLEngine.available)
    func changesRolledBack(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let sent = try store.send("first", from: users[0], to: users[1])
        #expect(throws: Failure.self) {
            try store.batch { tx in
                let chat = try #require(try tx.chat(of: users[0], and: users[1]))
                try store.send("second", from: users[1], to: chat, in: tx)
                let old = try #require(try tx.record(sent.id, in: chat))
                var record = old
                record.text = "edited"
                _ = try tx.edit(old, to: record, in: chat)
                try tx.hide([sent.id], in: chat, for: users[0])
                try tx.setBlocked(true, users[1])
                throw Failure()
            }
        }

        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            #expect((chat.head.id, chat.head.number) == (sent.id, 1))
            #expect(try tx.member(users[1], of: chat)?.readTime == 0)
            #expect(try tx.unread(of: users[1], in: chat) == 1)
        }
        #expect(try store.texts(of: sent.chat, for: users[0]) == ["first"])
        #expect(try store.read { try $0.account(users[1]) }?.isBlocked == false)
        #expect(
            try store.read { try $0.changedViews(for: users[0], since: sent.id.timeMs) }.isEmpty
        )
    }

    @Test(
        "a commit that the store refuses can be rolled back and tried again",
        arguments: SQLEngine.available
    )
    func refusedFlush(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        try store.send("a", from: users[0], to: users[1])
        let sql = store.writer.connection.sql
        let other = try store.database.connect()

        // The write-back fails half-way. It has already written the messages, but cannot write the
        // members.
        try other.execute("ALTER TABLE member RENAME TO gone")
        #expect(throws: (any Error).self) {
            try store.batch { tx in try store.send("b", from: users[0], to: users[1], in: tx) }
        }
        #expect(!sql.isInTransaction)
        try other.execute("ALTER TABLE gone RENAME TO member")

        let sent = try store.send("c", from: users[0], to: users[1])
        #expect(sent.number == 2)
        #expect(try store.texts(of: sent.chat, for: users[1]) == ["a", "c"])
        #expect(try store.problems() == [])
    }

    @Test(
        "a store that has a clock and no lease yet gets one that covers the times given out",
        arguments: SQLEngine.available
    )
    func noLease(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        #expect(try store.writer.persistedLeaseEnd() == 0)
        _ = try store.users(1)
        try store.database.connect().execute("DELETE FROM meta WHERE k = 'ct_lease'")
        try store.reopen()
        let covered = store.now + Int64(store.limits.commitLeaseMs)
        #expect(try store.writer.persistedLeaseEnd() == covered)
    }

    @Test("a restart carries on with ids, numbers and the clock", arguments: SQLEngine.available)
    func restart(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let origin = SessionOrigin(installation: "i", client: "", info: "", address: "")
        let session = try store.batch { tx in
            try tx.createSession(of: users[0], tokenHash: [1], origin: origin)
        }
        let first = try store.send("a", from: users[0], to: users[1])
        #expect(try store.writer.persistedLeaseEnd() == store.now)

        try store.reopen()
        #expect(try store.writer.persistedLeaseEnd() == store.now)
        let (third, other, sent) = try store.batch { tx in
            let third = try tx.createAccount(phone: 1, firstName: "c", lastName: nil)
            let origin = SessionOrigin(installation: "j", client: "", info: "", address: "")
            let other = try tx.createSession(of: users[0], tokenHash: [2], origin: origin)
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            #expect((chat.head.id, chat.head.number) == (first.id, 1))
            #expect(try tx.member(users[0], of: chat)?.readTime == first.id.timeMs)
            #expect(try tx.createPairChat(users[0], third, by: third).key > first.chat)
            return (third, other, try store.send("b", from: users[1], to: chat, in: tx))
        }
        #expect(third == UserID(3))
        #expect(other != session)
        #expect(
            try store.read { snapshot in
                try [session, other].map { try snapshot.session($0)?.deviceID }
            } == [DeviceID(1), DeviceID(2)]
        )
        #expect((sent.number, sent.chat) == (2, first.chat))
        #expect(sent.id > first.id)
        #expect(try store.problems() == [])
    }

    @Test(
        "the counter in message ids wraps and no id appears twice",
        arguments: SQLEngine.available
    )
    func counterWraps(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let writer = try StoreWriter(
            store.writer.connection,
            userIDs: .rising(),
            firstCounter: .max - 1
        )
        let tx = try writer.begin(.at(store.now + 5))
        let chat = try tx.createPairChat(users[0], users[1], by: users[0])
        let ids = try (0..<4).map { _ in try store.send("x", from: users[0], to: chat, in: tx).id }
        _ = try writer.commit()

        #expect(ids.map { $0.rawValue & 0xFFFF } == [0xFFFF, 0, 1, 2])
        #expect(ids == ids.sorted())
        #expect(try store.problems() == [])
    }

    @Test("events come in the order of their commands, once", arguments: SQLEngine.available)
    func events(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let tx = try store.writer.begin(.at(1000))
        for id in 1...3 { tx.emit(.sessionsClosed([SessionID(Int64(id))], of: UserID(1))) }
        let events = try store.writer.commit()
        let ids = events.map { event -> Int64 in
            if case .sessionsClosed(let ids, _) = event { return ids[0].rawValue }
            return 0
        }
        #expect(ids == [1, 2, 3])
        _ = try store.writer.begin(.at(1001))
        #expect(try store.writer.commit().isEmpty)
    }

    @Test("a reader sees what was committed before it began", arguments: SQLEngine.available)
    func snapshot(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let sent = try store.send("a", from: users[0], to: users[1])
        let late = try StoreConnection(store.database.connect(), limits: store.limits)

        try store.read { early in
            try store.send("b", from: users[0], to: users[1])
            #expect(try early.head(of: sent.chat).number == 1)
            #expect(try late.read { try $0.head(of: sent.chat).number } == 2)
            #expect(try early.changedViews(for: users[1], since: sent.id.timeMs).isEmpty)
        }
        #expect(try store.read { try $0.head(of: sent.chat).number } == 2)
    }
}
