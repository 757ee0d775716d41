import TambourProtocol
import TambourSQL
import Testing

@testable import TambourStore

@Suite("Who has met whom is read from the store")
struct MeetingStoreTests {
    private func nearness(
        of user: UserID,
        to viewer: UserID,
        in store: TestStore
    ) throws -> Nearness {
        try store.read { snapshot in
            var meetings = Meetings(of: viewer, limits: store.limits)
            let contact = try snapshot.contact(user, of: viewer)
            for wanted in [Nearness.near, .met] {
                let isThere = try meetings.isAtLeast(wanted, user, as: contact, in: snapshot)
                if isThere { return wanted }
            }
            return .stranger
        }
    }

    /// Creates groups in which this user is the only member. The user leaves two of them. The other
    /// user is then in fewer chats.
    private func fill(_ user: UserID, in store: TestStore) throws {
        let groups = try (0..<6).map { _ in try store.group([user]) }
        for group in groups.prefix(2) { try leave(user, group, in: store) }
    }

    private func leave(_ user: UserID, _ key: ChatKey, in store: TestStore) throws {
        try store.batch { tx in
            let chat = try #require(try tx.group(key, for: user))
            try tx.remove([user], from: chat)
        }
    }

    @Test(
        "a group makes its members near, whoever of the two is in more chats",
        arguments: SQLEngine.available,
        [0, 1]
    )
    func groups(engine: SQLEngine, busy: Int) throws {
        let store = try TestStore(engine)
        let users = try store.users(3)
        try fill(users[busy], in: store)
        #expect(try nearness(of: users[1], to: users[0], in: store) == .stranger)
        let group = try store.group(users)
        #expect(try nearness(of: users[1], to: users[0], in: store) == .near)
        try leave(users[1], group, in: store)
        #expect(try nearness(of: users[1], to: users[0], in: store) == .met)
        #expect(try nearness(of: users[0], to: users[1], in: store) == .stranger)
        #expect(try nearness(of: UserID(999), to: users[0], in: store) == .stranger)
    }

    @Test(
        "a channel shows its owner to readers, its readers to the owner, and no reader to another",
        arguments: SQLEngine.available
    )
    func channels(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(4)
        let channel = try store.batch { tx in
            let chat = try tx.createGroup(
                .channel,
                title: "News",
                owner: users[0],
                members: users
            )
            try tx.setPermissions(RoleTable.Permissions(rawValue: 256), of: users[1], in: chat)
            return chat.key
        }
        for (user, viewer, expected) in [
            (0, 2, Nearness.met), (2, 0, .met), (1, 2, .met), (2, 1, .met), (2, 3, .stranger),
        ] {
            let seen = try nearness(of: users[user], to: users[viewer], in: store)
            #expect(seen == expected, "\(user) seen by \(viewer)")
        }
        try leave(users[2], channel, in: store)
        #expect(try nearness(of: users[2], to: users[3], in: store) == .stranger)
    }

    @Test(
        "who is named by a forward or a card is met, also in a store from before that was kept",
        arguments: SQLEngine.available,
        [false, true]
    )
    func named(engine: SQLEngine, isFamous: Bool) throws {
        let store = try TestStore(engine)
        let users = try store.users(5)
        if !isFamous { try fill(users[0], in: store) }
        let original = Message(
            id: MessageID(5),
            time: 1,
            type: "USER",
            text: "news",
            sender: users[2]
        )
        let link = MessageLink(type: .forward, chatID: ChatID(0), message: original)
        let card = Attach(type: .contact, contactID: users[3])
        let edit = Attach(type: .contact, contactID: users[4])
        try store.batch { tx in
            let chat = try tx.createPairChat(users[0], users[1], by: users[1])
            func append(_ content: MessageContent) throws -> MessageRecord {
                try tx.append(content, to: chat, from: users[1], on: store.device).record
            }
            let forward = MessageContent(cid: 1, text: .empty, forward: Packed(link))
            _ = try append(forward)
            for other in isFamous ? users[3...] : [] {
                let chat = try tx.createPairChat(users[1], other, by: users[1])
                _ = try tx.append(forward, to: chat, from: users[1], on: store.device)
            }
            let old = try append(
                MessageContent(cid: 2, text: .empty, attaches: Packed([card]))
            )
            var new = old
            new.attaches = Packed([card, edit])
            _ = try tx.edit(old, to: new, in: chat)
        }
        for user in users[2...] {
            #expect(try nearness(of: user, to: users[0], in: store) == .met, "\(user)")
            #expect(try nearness(of: users[0], to: user, in: store) == .stranger, "\(user)")
        }
        let sql = try store.database.connect()
        try sql.execute("DELETE FROM introduction")
        #expect(try nearness(of: users[2], to: users[0], in: store) == .stranger)
        try IntroductionStatements.introduceNamed(on: sql)
        for user in users[2...] {
            #expect(try nearness(of: user, to: users[0], in: store) == .met, "\(user)")
        }
    }

    @Test("a contact that was removed stays met, and its user not", arguments: SQLEngine.available)
    func contacts(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        for (isAdded, expected) in [(true, Nearness.near), (false, .met)] {
            try store.batch { tx in
                let known = try #require(try tx.reader.contact(users[1], of: users[0]))
                _ = try tx.change(known, of: users[0], by: ContactChange(isAdded: isAdded))
            }
            #expect(try nearness(of: users[1], to: users[0], in: store) == expected)
            #expect(try nearness(of: users[0], to: users[1], in: store) == .stranger)
        }
    }

    @Test(
        "the owner of a public chat is met, and who asks those who decide",
        arguments: SQLEngine.available
    )
    func publicAndAsking(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(4)
        let group = try store.group([users[0], users[1]])
        try store.batch { tx in
            let chat = try #require(try tx.group(group, for: users[0]))
            var details = chat.details
            details.isPublic = true
            details.link = "open_house"
            try tx.set(details, of: chat)
            try tx.addRequest(of: users[2], in: chat)
        }
        #expect(try nearness(of: users[0], to: users[3], in: store) == .met)
        #expect(try nearness(of: users[1], to: users[3], in: store) == .stranger)
        #expect(try nearness(of: users[2], to: users[0], in: store) == .met)
        #expect(try nearness(of: users[2], to: users[1], in: store) == .stranger)
    }

    @Test("a request compares at most maxComparedRows rows", arguments: SQLEngine.available)
    func bound(engine: SQLEngine) throws {
        let store = try TestStore(engine, limits: ["maxComparedRows": 3])
        let users = try store.users(3)
        _ = try store.group(users)
        let seen = try store.read { snapshot in
            var meetings = Meetings(of: users[0], limits: store.limits)
            return try users[1...].map { user in
                let contact = try snapshot.contact(user, of: users[0])
                return try meetings.isAtLeast(.met, user, as: contact, in: snapshot)
            }
        }
        #expect(seen == [true, false])
    }
}
