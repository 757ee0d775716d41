import TambourProtocol
import TambourSQL
import TambourStore
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

@Suite("Channels")
struct ChannelStoreTests {
    private static var isSoak: Bool { getenv("TAMBOUR_SOAK") != nil }

    /// Returns the number of rows that this transaction has inserted, updated or deleted so far.
    private func rowsWritten(_ store: TestStore) throws -> Int64 {
        let count =
            switch store.database.engine {
            case .sqlite: "SELECT total_changes()"
            case .postgreSQL:
                """
                SELECT CAST(sum(n_tup_ins + n_tup_upd + n_tup_del) AS bigint)
                FROM pg_stat_xact_user_tables
                """
            }
        let statement = try store.writer.connection.sql.prepare(count)
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : -1
    }

    /// Creates a channel. The first of `users` owns it, and all of `users` are its members.
    private func channel(_ users: [UserID], in store: TestStore) throws -> ChatKey {
        try store.batch { tx in
            let chat = try tx.createGroup(
                .channel,
                title: "News",
                owner: users[0],
                members: [users[0]]
            )
            try store.send("created", from: users[0], to: chat, in: tx)
            try tx.add(Array(users.dropFirst()), to: chat, showingHistory: true)
            return chat.key
        }
    }

    @Test(
        "a post writes as many rows with many members as with few",
        arguments: SQLEngine.available
    )
    func rowsPerPost(engine: SQLEngine) throws {
        let sizes = Self.isSoak ? [10, 1_000, 100_000] : [10, 1_000]
        let store = try TestStore(engine)
        let users = try store.users(sizes.last!)
        var written: [Int64] = []
        for size in sizes {
            let channel = try channel(Array(users.prefix(size)), in: store)
            // Measure two posts, because the first post after the creation might write other rows.
            for _ in 0..<2 {
                try store.batch { tx in
                    let chat = try #require(try tx.group(channel, for: users[0]))
                    let before = try rowsWritten(store)
                    try store.send("post", from: users[0], to: chat, in: tx)
                    _ = try tx.flushedReader()
                    written.append(try rowsWritten(store) - before)
                }
            }
            let reader = users[size - 1]
            let views = try store.read { try $0.changedViews(for: reader, since: store.now - 1) }
            #expect(views.map(\.key) == [channel])
            #expect(try store.read { try $0.chat(views[0]).newMessages } == 2)
        }
        // A post writes three rows: the message, the channel's clock, and the author's read mark.
        #expect(written.allSatisfy { $0 == 3 }, "\(written)")
        #expect(try store.problems().filter { !$0.contains("clock") } == [])
    }

    @Test("who comes and goes writes a constant number of rows", arguments: SQLEngine.available)
    func rowsPerMember(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(500)
        var written: Set<Int64> = []
        for size in [10, 499] {
            let channel = try channel(Array(users.prefix(size)), in: store)
            try store.batch { tx in
                let chat = try #require(try tx.group(channel, for: users[0]))
                let before = try rowsWritten(store)
                try tx.add([users[499]], to: chat, showingHistory: true)
                try tx.remove([users[499]], from: chat)
                _ = try tx.flushedReader()
                written.insert(try rowsWritten(store) - before)
            }
        }
        #expect(written.count == 1, "\(written)")
    }

    @Test(
        "a chat ends by as many statements with many members as with few",
        arguments: SQLEngine.available
    )
    func ends(engine: SQLEngine) throws {
        let sizes = Self.isSoak ? [10, 500, 100_000] : [10, 500]
        let store = try TestStore(engine)
        let users = try store.users(sizes.last!)
        let other = try channel(users, in: store)
        var statements: Set<Int> = []
        for size in sizes {
            let members = Array(users.prefix(size))
            let channel = try channel(members, in: store)
            let places = [channel, other].map(ChatPlace.group)
            try store.batch { tx in
                for place in places {
                    try tx.saveDraft(
                        text: "draft",
                        elements: nil,
                        replyTo: nil,
                        of: users[1],
                        for: place
                    )
                    let record = DelayedRecord(
                        sender: users[1],
                        place: place,
                        id: MessageID(0),
                        device: store.device,
                        attributes: DelayedAttributes(timeToFire: MessageID.times.upperBound),
                        content: MessageContent(cid: store.nextCID(), text: "later")
                    )
                    _ = try tx.schedule(record, in: nil)
                }
            }
            let start = ContinuousClock.now
            try store.batch { tx in
                let chat = try #require(try tx.group(channel, for: users[0]))
                let before = store.writer.connection.sql.statementCount
                try tx.removeEverybody(from: chat)
                _ = try tx.flushedReader()
                statements.insert(store.writer.connection.sql.statementCount - before)
                #expect(chat.memberCount == 0)
            }
            print("\(size) members leave in \(ContinuousClock.now - start) (\(engine))")
            for user in [users[0], users[size - 1]] {
                let left = try store.read { try $0.leftChats(of: user, since: store.now - 1) }
                #expect(left.map(\.chat.id) == [ChatID(channel.rawValue)])
                #expect(try store.read { try $0.view(channel, for: user) } == nil)
            }
            try store.read { snapshot in
                let drafts = try snapshot.changedDrafts(of: users[1], since: 0)
                #expect(drafts.filter(\.isSaved).map(\.place) == [places[1]])
                #expect(try snapshot.delayed(of: users[1], for: places[0]).isEmpty)
                #expect(try !snapshot.delayed(of: users[1], for: places[1]).isEmpty)
            }
        }
        #expect(statements.count == 1, "\(statements)")
        #expect(try store.problems().filter { !$0.contains("clock") } == [])
    }

    @Test("a channel is one after a restart, and its messages name no sender")
    func reopened() throws {
        let store = try TestStore(.sqlite)
        let users = try store.users(2)
        let key = try channel(users, in: store)
        try store.reopen()
        #expect(ChatID(key.rawValue).isChannel)
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[1]))
            #expect(chat.kind == .channel)
            #expect(chat.isBig)
            #expect(chat.memberIDs == users)
        }
        let view = try #require(try store.read { try $0.view(key, for: users[1]) })
        let seen = try store.read { try $0.chat(view) }
        #expect(seen.type == .channel)
        #expect(seen.lastMessage?.type == "CHANNEL")
        #expect(seen.lastMessage?.sender == nil)
        #expect(seen.participants.count == 1)
        let group = try store.group(users)
        #expect(!ChatID(group.rawValue).isChannel)
    }

    @Test("a public chat is found by the words it has now", arguments: SQLEngine.available)
    func words(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let key = try channel(users, in: store)
        func found(_ query: Text) throws -> [ChatKey] {
            let query = try #require(SearchQuery(query))
            var budget = ScanBudget(.standard)
            return try store.read { try $0.publicChats(query, limit: 10, &budget) }
                .found.map(\.item.key)
        }
        func set(_ change: (inout ChatDetails) -> Void) throws {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                var details = chat.details
                change(&details)
                try tx.set(details, of: chat)
            }
        }
        #expect(try found("news").isEmpty)
        try set {
            $0.isPublic = true
            $0.link = "daily_drum"
        }
        #expect(try found("ne") == [key])
        #expect(try found("dai new") == [key])
        #expect(try found("dai old").isEmpty)
        try set { $0.title = "Notes" }
        #expect(try found("news").isEmpty)
        #expect(try found("notes") == [key])
        #expect(try store.read { try $0.largestPublicChats(but: UserID(9), limit: 5) }.count == 1)
        #expect(try store.read { try $0.largestPublicChats(but: users[1], limit: 5) }.isEmpty)
        try set {
            $0.isPublic = false
            $0.link = nil
        }
        #expect(try found("notes").isEmpty)
        #expect(try store.read { try $0.largestPublicChats(but: UserID(9), limit: 5) }.isEmpty)
    }
}
