import TambourEvents
import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Chats, their members and what each member sees of them")
struct ChatStoreTests {
    @Test("two users have one dialog, whoever asks", arguments: SQLEngine.available)
    func dialog(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(3)
        try store.batch { tx in
            #expect(try tx.chat(of: users[0], and: users[1]) == nil)
            let chat = try tx.createPairChat(users[1], users[0], by: users[1])
            #expect(chat.wireID == ChatID(1 ^ 2))
            #expect(chat.memberIDs == [users[0], users[1]])
            #expect(try tx.chat(of: users[0], and: users[1]) === chat)
            #expect(try tx.chat(of: users[1], and: users[0]) === chat)
        }

        let views = try store.read { snapshot in
            try users.map { try snapshot.view(ChatID(3), for: $0) }
        }
        let (first, second) = (try #require(views[0]), try #require(views[1]))
        #expect(views[2] == nil)
        #expect(first.key == second.key)
        #expect((first.partner, second.partner) == (users[1], users[0]))
        #expect((first.kind, first.owner, first.memberCount) == (.dialog, users[1], 2))
        #expect((first.created, first.joined, first.modified) == (store.now, store.now, store.now))
        #expect(try store.read { try $0.pairKey(users[1], users[0]) } == first.key)
    }

    @Test("saved messages are the dialog with oneself", arguments: SQLEngine.available)
    func saved(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        try store.send("mine", from: users[0], to: users[0])

        let view = try #require(try store.read { try $0.view(ChatID(0), for: users[0]) })
        #expect((view.kind, view.wireID, view.partner) == (.saved, ChatID(0), users[0]))
        #expect(view.memberCount == 1)
        #expect(try store.read { try $0.view(ChatID(0), for: users[1]) } == nil)
        #expect(try store.texts(of: view.key, for: users[0]) == ["mine"])
    }

    @Test(
        "one wire id names different dialogs to different users",
        arguments: SQLEngine.available
    )
    func sameXor(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(7)
        // The three dialogs have the same id for the xor: 1 xor 2, 4 xor 7 and 5 xor 6 are all 3.
        for (low, high) in [(1, 2), (4, 7), (5, 6)] {
            try store.send(Text("\(low) to \(high)"), from: users[low - 1], to: users[high - 1])
        }

        let keys = try store.read { snapshot in
            try users.map { try snapshot.view(ChatID(3), for: $0)?.key }
        }
        #expect(keys[0] == keys[1])
        #expect(keys[3] == keys[6])
        #expect(keys[4] == keys[5])
        #expect(keys[2] == nil)
        #expect(Set(keys.compactMap { $0 }).count == 3)
        #expect(try store.texts(of: #require(keys[6]), for: users[6]) == ["4 to 7"])
        try store.batch { tx throws in
            #expect(try tx.chat(ChatID(3), visibleTo: users[5])?.key == keys[4])
            #expect(try tx.chat(ChatID(3), visibleTo: users[2]) == nil)
        }
    }

    @Test("only members see a group", arguments: SQLEngine.available)
    func group(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(4)
        let key = try store.group([users[2], users[0], users[1]], title: "Трио 🎻")
        let wireID = ChatID(key.rawValue)

        #expect(key.rawValue < 0 && key.rawValue > -(1 << 53))
        try store.read { snapshot in
            let view = try #require(try snapshot.view(wireID, for: users[0]))
            #expect((view.kind, view.owner, view.memberCount) == (.group, users[2], 3))
            #expect(view.title == "Трио 🎻")
            #expect((view.wireID, view.partner, view.isBig) == (wireID, nil, false))
            #expect(try snapshot.view(wireID, for: users[3]) == nil)
            #expect(try snapshot.memberIDs(of: key) == Array(users[0...2]))
            let chat = try snapshot.chat(view)
            #expect(chat.participantsCount == 3)
            #expect(chat.participants.count == 3)
        }
        try store.batch { tx throws in
            #expect(try tx.chat(wireID, visibleTo: users[1])?.key == key)
            #expect(try tx.chat(wireID, visibleTo: users[3]) == nil)
            #expect(try tx.chat(ChatID(key.rawValue - 1), visibleTo: users[1]) == nil)
            #expect(try tx.chat(ChatID(.min), visibleTo: users[1]) == nil)
            #expect(try tx.chat(ChatID(.max), visibleTo: users[1]) == nil)
        }
    }

    @Test(
        "a cached group holds its title, not the request that it came in",
        arguments: SQLEngine.available
    )
    func titleOwnsItsBytes(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let payload = [UInt8](repeating: UInt8(ascii: "t"), count: 1 << 20)
        let title = Text(unchecked: Bytes(payload, range: 100..<105))
        let kept = try store.batch { tx in
            try tx.createGroup(title: title, owner: users[0], members: users).title
        }
        #expect(kept == "ttttt")
        #expect(kept?.bytes.storage.count == 5)
    }

    @Test("groups of one millisecond get ids of their own", arguments: SQLEngine.available)
    func groupIDs(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(1)
        func create() throws -> [ChatKey] {
            try store.batch(at: 1_750_000_000_000) { tx in
                try (1...3).map { _ in
                    try tx.createGroup(title: "g", owner: users[0], members: users).key
                }
            }
        }

        let keys = try create() + create()
        try store.reopen()
        #expect(Set(keys + (try create())).count == 9)
    }

    @Test(
        "a big group's changes reach every member through its own clock",
        arguments: SQLEngine.available
    )
    func bigGroup(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["fanOutMembers": 2])
        let users = try store.users(4)
        let key = try store.group(Array(users[0...2]))
        let created = store.now
        let message = try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[1]))
            #expect(chat.isBig)
            return try store.send("hello", from: users[1], to: chat, in: tx)
        }

        try store.read { snapshot in
            for user in users[0...2] {
                let views = try snapshot.changedViews(for: user, since: created)
                #expect(views.map(\.key) == [key], "user \(user)")
                #expect(views.first?.modified == store.now)
                #expect(try snapshot.changedViews(for: user, since: store.now).isEmpty)
            }
            #expect(try snapshot.changedViews(for: users[3], since: 0).isEmpty)
            let chat = try snapshot.chat(#require(try snapshot.view(key, for: users[1])))
            // In a big group, a member does not get the marks of other members.
            #expect(chat.participants == IDMap([(users[1], message.id.timeMs)]))
            #expect(chat.newMessages == 0)
        }

        // A new read mark affects only the member who has read the message.
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            try tx.setRead(message.id.timeMs, of: users[0], in: chat)
        }
        try store.read { snapshot throws in
            let since = store.now - 1
            #expect(try snapshot.changedViews(for: users[0], since: since).map(\.key) == [key])
            #expect(try snapshot.changedViews(for: users[1], since: since).isEmpty)
            #expect(try snapshot.changedViews(for: users[2], since: since).isEmpty)
        }
        #expect(try store.problems() == [])
    }

    @Test(
        "a group stays as big as it was made when the limit changes",
        arguments: SQLEngine.available,
        [(before: 32, after: 2), (before: 2, after: 32)]
    )
    func changedLimit(engine: SQLEngine, limit: (before: Int, after: Int)) throws {
        let store = try TestStore(engine, limits: ["fanOutMembers": limit.before])
        let users = try store.users(3)
        let key = try store.group(users)

        try store.reopen(limits: ["fanOutMembers": limit.after])
        let since = store.now
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: users[0]))
            #expect(chat.isBig == (limit.before == 2))
            try store.send("hello", from: users[0], to: chat, in: tx)
        }

        for user in users {
            let views = try store.read { try $0.changedViews(for: user, since: since) }
            #expect(views.map(\.key) == [key], "user \(user)")
        }
    }

    @Test(
        "a change is told once to every member it concerns, the newest first",
        arguments: SQLEngine.available
    )
    func changedViews(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(4)
        try store.send("a", from: users[0], to: users[1])
        try store.send("b", from: users[2], to: users[0])
        let group = try store.group(users)
        let since = store.now
        func changed(_ user: Int) throws -> [ChatID] {
            try store.read { try $0.changedViews(for: users[user], since: since) }.map(\.wireID)
        }
        for user in users.indices { #expect(try changed(user) == []) }

        try store.batch { tx in
            try store.send("c", from: users[1], to: users[0], in: tx)
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            try tx.setRead(tx.ct, of: users[1], in: chat)
        }
        try store.batch { tx in
            let chat = try #require(try tx.group(group, for: users[3]))
            try store.send("d", from: users[3], to: chat, in: tx)
        }
        #expect(try changed(0) == [ChatID(group.rawValue), ChatID(3)])
        #expect(try changed(1) == [ChatID(group.rawValue), ChatID(3)])
        #expect(try changed(2) == [ChatID(group.rawValue)])
        #expect(try changed(3) == [ChatID(group.rawValue)])
    }

    @Test(
        "a range of changes has none from behind its end, and of small chats no more than asked for",
        arguments: SQLEngine.available
    )
    func rangeOfChanges(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["fanOutMembers": 2])
        let users = try store.users(4)
        let group = try store.group(Array(users[..<3]))
        let big = ChatID(group.rawValue)
        let (one, two) = (ChatID.dialog(users[0], users[1]), ChatID.dialog(users[0], users[3]))
        var marks = [store.now]
        for partner in [users[1], users[3], nil, users[1]] {
            if let partner {
                try store.send("x", from: users[0], to: partner)
            } else {
                try store.batch { tx in
                    let chat = try #require(try tx.group(group, for: users[0]))
                    try store.send("x", from: users[0], to: chat, in: tx)
                }
            }
            marks.append(store.now)
        }
        func changed(_ since: Int, _ end: Int? = nil, limit: Int = .max) throws -> [ChatID] {
            try store.read { snapshot in
                try snapshot.changedViews(
                    for: users[0],
                    since: marks[since],
                    upTo: end.map { marks[$0] } ?? .max,
                    limit: limit
                )
            }.map(\.wireID)
        }
        #expect(try changed(0) == [one, two, big])
        #expect(try changed(0, limit: 1) == [one, big])
        #expect(try changed(0, 3) == [two, big])
        #expect(try changed(0, 2) == [two])
        #expect(try changed(0, 1) == [])
        #expect(try changed(2, 3) == [big])
        #expect(try changed(3, 4) == [one])
        #expect(try changed(4) == [])

        try store.batch { tx in
            try tx.remove([users[0]], from: try #require(try tx.group(group, for: users[0])))
        }
        let left = try store.read { snapshot in
            try (
                snapshot.leftChats(of: users[0], since: marks[0], upTo: marks[4]).count,
                snapshot.leftChats(of: users[0], since: marks[4], limit: 1).map(\.chat.id),
                snapshot.leftChats(of: users[0], since: marks[0], limit: 0).count
            )
        }
        #expect(left == (0, [big], 0))
    }

    // MARK: - Pages of chats

    @Test(
        "paging brings every chat once, chats of one millisecond together",
        arguments: SQLEngine.available,
        1...8
    )
    func pages(engine: SQLEngine, limit: Int) throws {
        let store = try TestStore(engine)
        let users = try store.users(13)
        // From the newest to the oldest: one chat with a time of its own, then groups of five, two
        // and three chats, and one empty chat. The chats of a group share a millisecond.
        let activity: [Int64] = [900, 800, 800, 800, 800, 800, 700, 700, 600, 600, 600, 500]
        for (index, time) in activity.enumerated().reversed() where index < activity.count - 1 {
            try store.send("x", from: users[0], to: users[index + 1], at: time)
        }
        try store.batch(at: 500) { tx in
            _ = try tx.createPairChat(users[0], users[12], by: users[0])
        }

        for byBytes in [false, true] {
            var seen: [ChatID] = []
            var times: [Int64] = []
            var cursor = ChatCursor.newest
            repeat {
                let page = try store.read { snapshot in
                    try snapshot.chatsPage(
                        for: users[0],
                        from: cursor,
                        limit: byBytes ? 20 : limit,
                        budget: byBytes ? 4_000 + limit * 700 : nil
                    )
                }
                let here = page.chats.map(\.lastEventTime)
                #expect(times.last.map { $0 > here.first ?? 0 } ?? true, "a tie was split")
                times += here
                seen += page.chats.map(\.id)
                guard page.next != 0 else { break }
                try #require(page.next == times.last)
                cursor = ChatCursor(before: page.next)
            } while seen.count < 30
            #expect(times == activity)
            #expect(Set(seen).count == activity.count)
        }
        let tied = try store.read { snapshot in
            try [799, 800, 801].map { try snapshot.chatCount(of: users[0], lastActiveAt: $0) }
        }
        #expect(tied == [0, 5, 0])
    }

    @Test("a page that failed does not spoil the next one", arguments: SQLEngine.available)
    func failedPage(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        try store.send("x", from: users[0], to: users[1])
        func page() throws -> Int {
            try store.read { try $0.chatsPage(for: users[0], from: .newest, limit: 9) }.chats.count
        }
        let other = try store.database.connect()

        try other.execute("ALTER TABLE chat RENAME TO gone")
        #expect(throws: (any Error).self) { try page() }
        try other.execute("ALTER TABLE gone RENAME TO chat")
        #expect(try page() == 1)
    }

    // MARK: - Contacts

    @Test(
        "a blocked user is a changed contact of its dialog partners only",
        arguments: SQLEngine.available
    )
    func changedContacts(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(4)
        try store.send("a", from: users[0], to: users[1])
        try store.send("b", from: users[0], to: users[2])
        try store.send("own", from: users[0], to: users[0])
        _ = try store.group(users)
        let since = store.now
        func contacts(of user: Int, since: Int64) throws -> [UserID] {
            try store.read { try $0.changedContacts(of: users[user], since: since) }
                .map(\.account.id)
        }
        #expect(try contacts(of: 0, since: 0) == [users[2], users[1]])
        #expect(try contacts(of: 0, since: since) == [])

        try store.batch { try $0.setBlocked(true, users[1]) }
        let changed = try store.read { try $0.changedContacts(of: users[0], since: since) }
        #expect(changed.map(\.account.id) == [users[1]])
        #expect(changed.first?.changed == store.now)
        #expect(changed.first?.account.isBlocked == true)
        #expect(try contacts(of: 1, since: since) == [])
        #expect(try contacts(of: 2, since: since) == [])
        #expect(try contacts(of: 3, since: 0) == [])

        // A later message must not set the clock of the contact back.
        try store.send("c", from: users[1], to: users[0])
        #expect(try contacts(of: 0, since: since) == [users[1]])
        #expect(try contacts(of: 0, since: 0) == [users[1], users[2]])
    }

    @Test(
        "blocking reaches a dialog that was begun in the same batch",
        arguments: SQLEngine.available
    )
    func blockedInOneBatch(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        try store.batch { tx in
            try store.send("a", from: users[0], to: users[1], in: tx)
            try tx.setBlocked(true, users[1])
        }

        let contacts = try store.read { try $0.changedContacts(of: users[0], since: 0) }
        #expect(contacts.map(\.account.isBlocked) == [true])
        #expect(contacts.map(\.changed) == [store.now])
    }

    @Test(
        "recent partners are those of the dialogs that changed last",
        arguments: SQLEngine.available
    )
    func recentPartners(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(5)
        for user in users[1...3] { try store.send("x", from: user, to: users[0]) }
        try store.send("own", from: users[0], to: users[0])
        _ = try store.group([users[0], users[4]])
        try store.batch { try $0.setSeen(4000, user: users[3], session: SessionID(1)) }
        func partners(_ limit: Int, since: Int64 = 0) throws -> [UserID: Int64] {
            let found = try store.read {
                try $0.recentPartners(of: users[0], since: since, limit: limit)
            }
            return Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0.seen) })
        }

        // The group and the saved messages count as chats, but have no partner.
        #expect(try partners(2) == [:])
        #expect(try partners(3) == [users[3]: 4000])
        #expect(try partners(99) == [users[1]: 0, users[2]: 0, users[3]: 4000])
        // There is a second between two batches. So the dialog with user 1 changed exactly five
        // seconds ago.
        #expect(try partners(99, since: store.now - 5_000) == [users[2]: 0, users[3]: 4000])
        #expect(try partners(99, since: store.now) == [:])
    }

    @Test("each of several messages of a big chat has its readers", arguments: SQLEngine.available)
    func readerCounts(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["fanOutMembers": 2])
        let users = try store.users(4)
        let key = try store.group(users)
        var times: [Int64] = []
        for reader in users[1...] {
            try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                let time = try store.send("x", from: users[0], to: chat, in: tx).id.timeMs
                try tx.raiseRead(to: time, of: reader, in: chat)
                times.append(time)
            }
        }
        // The author has read all three messages. The other three members have read one, two and
        // three messages.
        #expect(try store.read { try $0.readerCounts(inBig: key, notBelow: times) } == [4, 3, 2])
        let last = Array(times[2...])
        #expect(try store.read { try $0.readerCounts(inBig: key, notBelow: last) } == [2])
    }

    @Test("looking for recent partners costs the same however many older dialogs there are")
    func recentPartnersCost() throws {
        func steps(older: Int) throws -> Int {
            let store = try TestStore(.sqlite)
            let users = try store.users(older + 3)
            for user in users[3...] { try store.send("x", from: user, to: users[0]) }
            let since = store.now
            for user in users[1...2] { try store.send("x", from: user, to: users[0]) }
            let sql = try #require(store.reader.sql as? SQLiteConnection)
            let before = sql.virtualMachineSteps
            let found = try store.read {
                try $0.recentPartners(of: users[0], since: since, limit: 40)
            }
            #expect(Set(found.map(\.id)) == [users[1], users[2]])
            return sql.virtualMachineSteps - before
        }
        #expect(try steps(older: 300) == steps(older: 3))
    }
}
