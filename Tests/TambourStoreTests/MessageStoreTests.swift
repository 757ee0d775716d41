import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Messages are appended, changed, found and paged")
struct MessageStoreTests {
    /// Creates a store with three users and a dialog between the first two.
    private func dialog(
        _ engine: SQLEngine,
        limits: [String: Int] = [:]
    ) throws -> (store: TestStore, users: [UserID], key: ChatKey) {
        let store = try TestStore(engine, limits: limits)
        let users = try store.users(3)
        let key = try store.batch { try $0.createPairChat(users[0], users[1], by: users[0]).key }
        return (store, users, key)
    }

    @Test("after the largest number nothing is stored", arguments: SQLEngine.available)
    func lastNumber(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let sent = try store.send("x", from: users[0], to: users[1])
        try store.database.connect().execute("UPDATE message SET n = 9223372036854775807")
        try store.reopen()
        #expect(throws: ImpossibleRow("message 1 \(sent.id): n", .max)) {
            try store.send("y", from: users[0], to: users[1])
        }
    }

    @Test("what is sent is stored as it is", arguments: SQLEngine.available)
    func append(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let elements = Packed([Element(type: "STRONG", from: 0, length: 5)])
        let attaches = Packed([Attach(type: .location, latitude: 55.75, longitude: 37.62)])
        let inner = Message(id: MessageID(77), time: 0, type: "USER", text: "carried")
        let forward = Packed(
            MessageLink(
                type: .forward,
                chatID: ChatID(0),
                message: inner,
                messageID: MessageID(77)
            )
        )
        let content = MessageContent(
            cid: -5,
            text: "hello",
            elements: elements,
            attaches: attaches,
            forward: forward
        )
        let sent = try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            return try tx.append(content, to: chat, from: users[1], on: DeviceID(9)).record
        }

        let record = try #require(try store.read { try $0.record(sent.id, in: key) })
        #expect((record.chat, record.id, record.number) == (key, sent.id, 1))
        #expect((record.sender, record.cid, record.device) == (users[1], -5, DeviceID(9)))
        #expect((record.status, record.updated, record.replyTo) == (.plain, 0, nil))
        #expect((record.text, record.elements) == ("hello", elements))
        #expect((record.attaches, record.forward) == (attaches, forward))
        #expect(record.id.timeMs == store.now)
    }

    @Test("texts of every Unicode plane come back byte for byte", arguments: SQLEngine.available)
    func everyPlane(engine: SQLEngine) throws {
        let (store, users, _) = try dialog(engine)
        // The first and last characters of all seventeen planes, and texts that may cause errors in
        // an engine.
        var texts: [Text] = (UInt32(0)...16).map { plane in
            let scalars = [0x0001, 0x00E9, 0x20AC, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF].compactMap {
                Unicode.Scalar(plane << 16 | $0)
            }
            return Text(String(String.UnicodeScalarView(scalars)))
        }
        texts += ["", " ", "e\u{301}", "\u{E9}", "\u{202E}rtl", "'\";--$1\\%_", "👩‍👩‍👧‍👦🏳️‍🌈"]
        texts.append(Text(String(repeating: "я", count: 4000)))
        let sent = try store.batch { tx in
            try texts.map { try store.send($0, from: users[0], to: users[1], in: tx) }
        }

        for (record, text) in zip(sent, texts) {
            let stored = try store.read { try $0.record(record.id, in: record.chat) }
            #expect(stored?.text == text)
        }
    }

    @Test("a zero byte is a character like any other", arguments: SQLEngine.available)
    func zeroByte(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let (user, session) = try store.batch { tx in
            let user = try tx.createAccount(phone: 1, firstName: "A\0a", lastName: "\0")
            let origin = SessionOrigin(
                installation: "i\0a",
                client: "c\0",
                info: "\0i",
                address: ""
            )
            let session = try tx.createSession(of: user, tokenHash: [1], origin: origin)
            let other = SessionOrigin(installation: "i\0b", client: "", info: "", address: "")
            _ = try tx.createSession(of: user, tokenHash: [2], origin: other)
            _ = try tx.createSession(of: user, tokenHash: [3], origin: origin)
            return (user, session)
        }
        let group = try store.group([user], title: "\0t")
        let sent = try store.send("a\0b", from: user, to: user)
        let edited = try store.send("x", from: user, to: user)
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: user, and: user))
            let old = try #require(try tx.record(edited.id, in: chat))
            var record = old
            record.text = "\0"
            _ = try tx.edit(old, to: record, in: chat)
        }

        try store.reopen()
        try store.read { snapshot in
            let account = try #require(try snapshot.account(user))
            #expect((account.firstName, account.lastName) == ("A\0a", "\0"))
            let found = try #require(try snapshot.session(session))
            #expect((found.client, found.info) == ("c\0", "\0i"))
            // If two installation names differ only after a zero byte, they are different devices.
            let devices = try [[1], [2], [3]].map { try snapshot.session(tokenHash: $0)?.deviceID }
            #expect(devices == [DeviceID(1), DeviceID(2), DeviceID(1)])
            #expect(try snapshot.view(group, for: user)?.title == "\0t")
            #expect(try snapshot.record(sent.id, in: sent.chat)?.text == "a\0b")
            #expect(try snapshot.record(edited.id, in: sent.chat)?.text == "\0")
        }
        #expect(try store.batch { try $0.group(group, for: user)?.title } == "\0t")
    }

    @Test(
        "times rise strictly and numbers are dense in a chat, whatever the clock does",
        arguments: SQLEngine.available
    )
    func order(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        var sent: [MessageRecord] = []
        let start = store.now
        for time in [start + 10, start + 10, start + 11, start + 500] {
            sent += try store.batch(at: time) { tx in
                try (0..<3).map { _ in
                    try store.send("x", from: users[0], to: users[1], in: tx)
                }
            }
        }

        #expect(sent.map(\.number) == Array(1...12))
        #expect(
            sent.map(\.id.timeMs) == (0..<9).map { start + 10 + $0 }
                + [500, 501, 502].map { start + $0 }
        )
        #expect(Set(sent.map { $0.id.rawValue & 0xFFFF }).count == 12)
        #expect(try store.read { try $0.head(of: key).number } == 12)
        try store.read { snapshot throws in
            for (index, record) in sent.enumerated() {
                #expect(
                    try snapshot.previousID(of: record.id, in: key)
                        == (index == 0 ? nil : sent[index - 1].id)
                )
                #expect(try snapshot.head(of: key, at: record.id.timeMs).number == record.number)
            }
            #expect(try snapshot.head(of: key, at: start).number == 0)
        }
        #expect(try store.problems() == [])
    }

    @Test("a batch reads what it wrote, flushed or not", arguments: SQLEngine.available)
    func readsOwnWrites(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            let first = try store.send("first", from: users[0], to: chat, in: tx)
            let second = try store.send("second", from: users[1], to: chat, in: tx)
            let content = MessageContent(cid: 99, text: "answer", replyTo: first.id)
            let (reply, previous) = try tx.append(
                content,
                to: chat,
                from: users[0],
                on: DeviceID(1)
            )
            #expect(previous == second.id)
            #expect(
                try tx.message(reply, in: chat).link?.value(limits: .standard).messageID == first.id
            )

            #expect(try tx.message(second.id, in: chat, visibleTo: users[0])?.text == "second")
            let third = try store.send("third", from: users[0], to: chat, in: tx)
            #expect(try tx.record(third.id, in: chat)?.number == 4)
            let fourth = try store.send("fourth", from: users[0], to: chat, in: tx)
            #expect(try tx.previousID(of: fourth, in: chat) == third.id)

            let old = try #require(try tx.record(fourth.id, in: chat))
            var record = old
            record.text = "4th"
            record.elements = Packed([Element(type: "STRONG")])
            let edited = try tx.edit(old, to: record, in: chat)
            // The server gives the last messages of a burst times that are ahead of the clock. The
            // time of an edit must not be before the time of its message.
            #expect(fourth.id.timeMs > tx.ct)
            #expect((edited.status, edited.updated) == (.edited, fourth.id.timeMs))
            #expect(try tx.record(fourth.id, in: chat)?.text == "4th")

            try tx.remove([first], in: chat)
            #expect(try tx.message(first.id, in: chat, visibleTo: users[1]) == nil)
            #expect(try tx.record(first.id, in: chat)?.status == .removed)
            // The answered message is removed, so the reply loses its link.
            #expect(try tx.message(reply, in: chat).link == nil)

            try tx.hide([third.id], in: chat, for: users[1])
            #expect(try tx.message(third.id, in: chat, visibleTo: users[1]) == nil)
            #expect(try tx.message(third.id, in: chat, visibleTo: users[0]) != nil)

            let fifth = try store.send("fifth", from: users[1], to: chat, in: tx)
            #expect(try tx.unread(of: users[0], in: chat) == 1)
            let view = try #require(try tx.flushedReader().view(key, for: users[0]))
            let seen = try tx.flushedReader().chat(view)
            #expect(seen.lastMessage?.id == fifth.id)
            #expect(seen.prevMessageID == fourth.id)
            #expect(seen.newMessages == 1)

            // Other transactions do not see the changes yet.
            #expect(try store.read { try $0.head(of: key).number } == 0)
        }

        #expect(
            try store.texts(of: key, for: users[0]) == [
                "second", "answer", "third", "4th", "fifth",
            ]
        )
        #expect(try store.texts(of: key, for: users[1]) == ["second", "answer", "4th", "fifth"])
        #expect(try store.problems() == [])
    }

    @Test("an edit replaces the content and says when", arguments: SQLEngine.available)
    func edit(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try store.send("before", from: users[0], to: users[1])
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            let old = try #require(try tx.message(sent.id, in: chat, visibleTo: users[0]))
            var record = old
            record.text = "after"
            record.elements = Packed([Element(type: "CODE")])
            record.attaches = Packed([Attach(type: .share, url: "https://a.example")])
            _ = try tx.edit(old, to: record, in: chat)
        }

        let record = try #require(try store.read { try $0.record(sent.id, in: key) })
        #expect((record.status, record.updated, record.text) == (.edited, store.now, "after"))
        #expect(record.elements == Packed([Element(type: "CODE")]))
        #expect(record.attaches != nil)
        #expect((record.cid, record.number, record.sender) == (sent.cid, 1, users[0]))
        let address = MessageAddress(chatID: ChatID(3))
        let message = record.message(at: address, link: nil, previous: nil)
        #expect((message.status, message.updateTime) == (.edited, store.now))
        #expect(try store.read { try $0.view(key, for: users[1]) }?.modified == store.now)
    }

    @Test(
        "a removed message leaves its id, its number and nothing else",
        arguments: SQLEngine.available
    )
    func remove(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try ["a", "b", "c"].map {
            try store.send(Text($0), from: users[0], to: users[1])
        }
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            var record = sent[1]
            record.elements = Packed([Element(type: "CODE")])
            record.attaches = Packed([Attach(type: .share)])
            _ = try tx.edit(sent[1], to: record, in: chat)
            try tx.remove([sent[1], sent[2]], in: chat)
        }

        let record = try #require(try store.read { try $0.record(sent[1].id, in: key) })
        #expect((record.status, record.updated) == (.removed, store.now))
        #expect((record.text, record.elements, record.attaches) == (.empty, nil, nil))
        #expect((record.number, record.cid) == (2, sent[1].cid))
        let next = try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            #expect(chat.head.id == sent[2].id)
            let content = MessageContent(cid: 99, text: "d")
            let (record, previous) = try tx.append(
                content,
                to: chat,
                from: users[1],
                on: store.device
            )
            #expect(previous == sent[2].id)
            return record
        }
        #expect(next.number == 4)
        #expect(try store.texts(of: key, for: users[0]) == ["a", "d"])
        #expect(try store.read { try $0.previousID(of: next.id, in: key) } == sent[2].id)
        #expect(try store.problems() == [])
    }

    @Test("what one member hides the other one keeps", arguments: SQLEngine.available)
    func hide(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try ["a", "b"].map { try store.send(Text($0), from: users[0], to: users[1]) }
        let since = store.now
        for _ in 1...2 {  // repeating has no effect
            try store.batch { tx in
                let chat = try #require(try tx.chat(of: users[0], and: users[1]))
                try tx.hide([sent[1].id], in: chat, for: users[1])
            }
        }

        #expect(try store.texts(of: key, for: users[0]) == ["a", "b"])
        #expect(try store.texts(of: key, for: users[1]) == ["a"])
        try store.read { snapshot in
            #expect(try snapshot.isHidden(sent[1].id, in: key, for: users[1]))
            #expect(try !snapshot.isHidden(sent[1].id, in: key, for: users[0]))
            let chat = try snapshot.chat(#require(try snapshot.view(key, for: users[1])))
            #expect(chat.lastMessage?.id == sent[0].id)
            #expect(chat.lastEventTime == sent[1].id.timeMs)
            #expect(chat.newMessages == 1)
            #expect(try snapshot.changedViews(for: users[1], since: since).map(\.key) == [key])
            #expect(try snapshot.changedViews(for: users[0], since: since).isEmpty)
        }
    }

    // MARK: - Changes of messages

    @Test("changes are read from the mark on, however many there were before")
    func costOfChanges() throws {
        let store = try TestStore(.sqlite)
        let users = try store.users(2)
        func cost(changed count: Int) throws -> Int {
            let sent = try (0..<count).map { _ in
                try store.send("x", from: users[0], to: users[1])
            }
            func edit(_ messages: some Sequence<MessageRecord>, _ text: Text) throws {
                try store.batch { tx in
                    let chat = try #require(try tx.chat(of: users[0], and: users[1]))
                    for message in messages {
                        let old = try #require(try tx.record(message.id, in: chat))
                        var record = old
                        record.text = text
                        _ = try tx.edit(old, to: record, in: chat)
                    }
                }
            }
            try edit(sent, "y")
            let mark = store.now
            try edit(sent.prefix(1), "z")
            let sql = try #require(store.reader.sql as? SQLiteConnection)
            let before = sql.virtualMachineSteps
            let changes = try store.read { snapshot in
                let key = try #require(try snapshot.pairKey(users[0], users[1]))
                let view = try #require(try snapshot.view(key, for: users[1]))
                return try snapshot.changes(in: view, after: (mark, MessageID(.max)), limit: 9)
            }
            #expect(changes.map(\.message) == [sent[0].id])
            return sql.virtualMachineSteps - before
        }
        let few = try cost(changed: 1)
        #expect(abs(try cost(changed: 200) - few) < 50)
    }

    // MARK: - Sending a cid twice

    @Test(
        "a cid is found again under its sender, device and chat only",
        arguments: SQLEngine.available,
        [false, true]
    )
    func cid(engine: SQLEngine, inOneBatch: Bool) throws {
        let (store, users, _) = try dialog(engine)
        let other = try store.batch { try $0.createPairChat(users[0], users[2], by: users[0]).key }
        let group = try store.group(users)
        func expectations(_ sent: MessageRecord, _ tx: WriteTransaction) throws {
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            let elsewhere = try #require(try tx.chat(of: users[0], and: users[2]))
            let group = try #require(try tx.group(group, for: users[0]))
            func found(
                _ cid: Int64 = 7000,
                from sender: UserID? = nil,
                on device: Int64 = 5,
                in chat: ChatState?
            ) throws -> MessageID? {
                try tx.sent(cid: cid, from: sender ?? users[0], on: DeviceID(device), in: chat)?.id
            }
            #expect(try found(in: chat) == sent.id)
            #expect(try found(7001, in: chat) == nil)
            #expect(try found(from: users[1], in: chat) == nil)
            #expect(try found(on: 6, in: chat) == nil)
            #expect(try found(in: elsewhere) == nil)
            #expect(try found(in: group) == nil)
            #expect(try found(in: nil) == nil)
        }

        let sent = try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            let content = MessageContent(cid: 7000, text: "once")
            let sent = try tx.append(content, to: chat, from: users[0], on: DeviceID(5)).record
            // Send another message with a smaller id. It waits to be written, in a chat that sorts
            // before this chat.
            try store.send(
                "x",
                from: users[0],
                to: #require(try tx.group(group, for: users[0])),
                in: tx
            )
            if inOneBatch { try expectations(sent, tx) }
            return sent
        }
        try store.batch { try expectations(sent, $0) }
        try store.reopen()
        try store.batch { try expectations(sent, $0) }
        #expect(other != sent.chat)

        // The writer also finds the cid of a removed message.
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            try tx.remove([sent], in: chat)
            try expectations(sent, tx)
        }
        let found = try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            return try tx.sent(cid: 7000, from: users[0], on: DeviceID(5), in: chat)
        }
        #expect(found?.status == .removed)
    }

    @Test(
        "the cid that created a group is not one of its messages'",
        arguments: SQLEngine.available,
        [false, true]
    )
    func groupCID(engine: SQLEngine, inOneBatch: Bool) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        func create(_ tx: WriteTransaction) throws -> MessageRecord {
            let chat = try tx.createGroup(title: "g", owner: users[0], members: users)
            let content = MessageContent(cid: 1, text: "")
            return try tx.append(content, to: chat, from: users[0], on: DeviceID(5)).record
        }
        func expectations(_ created: MessageRecord, _ tx: WriteTransaction) throws {
            let chat = try #require(try tx.group(created.chat, for: users[0]))
            func found(_ chat: ChatState?, on device: Int64 = 5) throws -> MessageRecord? {
                try tx.sent(cid: 1, from: users[0], on: DeviceID(device), in: chat)
            }
            #expect(try found(nil)?.id == created.id)
            #expect(try found(nil, on: 6) == nil)
            #expect(try found(chat) == nil)
            let record = try #require(try found(nil))
            #expect(try tx.chat(holding: record) === chat)
            let content = MessageContent(cid: 1, text: "first words")
            let sent = try tx.append(content, to: chat, from: users[0], on: DeviceID(5)).record
            #expect(try found(chat)?.id == sent.id)
            #expect(try found(nil)?.id == created.id)
        }

        if inOneBatch {
            try store.batch { tx in try expectations(create(tx), tx) }
        } else {
            let created = try store.batch { try create($0) }
            try store.reopen()
            try store.batch { try expectations(created, $0) }
        }
    }

    // MARK: - History

    /// Creates twelve messages, one each second. Then removes the 4th message for all users, and
    /// hides the 8th message from the second user.
    private func history(
        _ engine: SQLEngine
    ) throws -> (store: TestStore, users: [UserID], key: ChatKey, sent: [MessageRecord]) {
        let (store, users, key) = try dialog(engine)
        let sent = try (1...12).map {
            try store.send(Text("\($0)"), from: users[0], to: users[1])
        }
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            try tx.remove([sent[3]], in: chat)
            try tx.hide([sent[7].id], in: chat, for: users[1])
        }
        return (store, users, key, sent)
    }

    @Test("a page of history goes both ways from its pivot", arguments: SQLEngine.available)
    func historyPages(engine: SQLEngine) throws {
        let (store, users, key, sent) = try history(engine)
        func page(
            _ user: Int,
            from: Int64,
            _ backward: Int,
            _ forward: Int,
            earliest: Int64 = 0,
            latest: Int64 = .max
        ) throws -> (texts: [Int], more: Bool) {
            let page = try store.read { snapshot in
                try snapshot.history(
                    of: key,
                    at: MessageAddress(chatID: ChatID(3)),
                    for: users[user],
                    above: MessageID(0),
                    from: from,
                    backward: backward,
                    forward: forward,
                    earliest: earliest,
                    latest: latest
                )
            }
            #expect(page.messages.map(\.id) == page.messages.map(\.id).sorted())
            return (page.messages.compactMap { Int(String($0.text)) }, page.more)
        }
        func time(_ number: Int) -> Int64 { sent[number - 1].id.timeMs }

        // The pivot is a time. A message with exactly this time belongs to the older side.
        #expect(try page(0, from: time(6), 3, 0) == ([3, 5, 6], true))
        #expect(try page(0, from: time(6) - 1, 3, 0) == ([2, 3, 5], true))
        #expect(try page(0, from: time(6), 0, 3) == ([7, 8, 9], true))
        #expect(try page(0, from: time(6), 2, 2) == ([5, 6, 7, 8], true))
        #expect(try page(1, from: time(9), 3, 1) == ([6, 7, 9, 10], true))
        // No more messages are left on either side.
        #expect(try page(0, from: time(6), 5, 6) == ([1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12], false))
        #expect(try page(1, from: time(6), 5, 6) == ([1, 2, 3, 5, 6, 7, 9, 10, 11, 12], false))
        // If a page contains exactly the rest of the messages, `more` is false.
        #expect(try page(0, from: time(3), 3, 0) == ([1, 2, 3], false))
        #expect(try page(0, from: time(3), 2, 0) == ([2, 3], true))
        // Pages at the ends of the history.
        #expect(try page(0, from: .max, 2, 2) == ([11, 12], true))
        #expect(try page(0, from: 0, 2, 2) == ([1, 2], true))
        #expect(try page(0, from: -1, 2, 0) == ([], false))
        #expect(try page(0, from: .min, 0, 1) == ([1], true))
        #expect(try page(0, from: time(4), 1, 0) == ([3], true))
        #expect(try page(0, from: time(6), 0, 0) == ([], false))
        // The messages at both bounds belong to the page.
        #expect(
            try page(0, from: time(6), 9, 9, earliest: time(3)) == (
                [3, 5, 6, 7, 8, 9, 10, 11, 12], false
            )
        )
        #expect(try page(0, from: time(6), 1, 9, latest: time(8)) == ([6, 7, 8], true))
        #expect(try page(0, from: time(6), 9, 9, earliest: time(7), latest: time(5)) == ([], false))
    }

    @Test(
        "paging back meets every message once but for the pivot",
        arguments: SQLEngine.available,
        [2, 3, 4, 11]
    )
    func historyWhole(engine: SQLEngine, size: Int) throws {
        let (store, users, key, _) = try history(engine)
        var seen: [Int] = []
        var from = Int64.max
        var more = true
        while more {
            let page = try store.read { snapshot in
                try snapshot.history(
                    of: key,
                    at: MessageAddress(chatID: ChatID(3)),
                    for: users[1],
                    above: MessageID(0),
                    from: from,
                    backward: size,
                    forward: 0
                )
            }
            let oldest = try #require(page.messages.first)
            try #require(oldest.time < from)
            seen = page.messages.compactMap { Int(String($0.text)) } + seen.dropFirst()
            from = oldest.time
            more = page.more
        }
        #expect(seen == [1, 2, 3, 5, 6, 7, 9, 10, 11, 12])
    }

    @Test(
        "a page too long for a reply is cut where it is farthest from the pivot",
        arguments: SQLEngine.available
    )
    func historyCut(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine, limits: ["maxReplyBytes": 5000])
        let sent = try (0..<8).map { number in
            try store.send(
                Text("\(number)" + String(repeating: "x", count: 999)),
                from: users[0],
                to: users[1]
            )
        }
        func page(_ backward: Int, _ forward: Int) throws -> (messages: [MessageID], more: Bool) {
            let page = try store.read { snapshot in
                try snapshot.history(
                    of: key,
                    at: MessageAddress(chatID: ChatID(3)),
                    for: users[0],
                    above: MessageID(0),
                    from: sent[3].id.timeMs,
                    backward: backward,
                    forward: forward
                )
            }
            return (page.messages.map(\.id), page.more)
        }
        func ids(_ range: ClosedRange<Int>) -> [MessageID] { sent[range].map(\.id) }

        #expect(try page(4, 0) == (ids(0...3), false))
        #expect(try page(2, 4) == (ids(2...5), true))
        #expect(try page(0, 8) == (ids(4...7), false))
        #expect(try page(1, 2) == (ids(3...5), true))
        // A page contains at least one message, even if the message is too long for a reply.
        try store.reopen(limits: ["maxReplyBytes": 100])
        #expect(try page(4, 0) == (ids(3...3), true))
    }

    // MARK: - Reading

    @Test("unread is what others sent after the mark", arguments: SQLEngine.available)
    func unread(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try (1...6).map { number in
            try store.send(Text("\(number)"), from: users[0], to: users[1])
        }
        /// Returns the number of unread messages twice: as the writer computes it, and as a reader
        /// computes it.
        func unread(_ user: Int) throws -> [Int64] {
            let written = try store.batch { tx in
                let chat = try #require(try tx.chat(of: users[0], and: users[1]))
                return try tx.unread(of: users[user], in: chat)
            }
            let chat = try store.read { snapshot in
                try snapshot.chat(#require(try snapshot.view(key, for: users[user])))
            }
            return [written, try #require(chat.newMessages)]
        }
        func change(_ body: (WriteTransaction, ChatState) throws -> Void) throws {
            try store.batch { tx in
                try body(tx, #require(try tx.chat(of: users[0], and: users[1])))
            }
        }

        #expect(try unread(0) == [0, 0])
        #expect(try unread(1) == [6, 6])
        // Removed messages and hidden messages do not count. A message that is both removed and
        // hidden is subtracted only once.
        try change { try $0.remove([sent[5]], in: $1) }
        #expect(try unread(1) == [5, 5])
        try change { try $0.hide([sent[4].id, sent[5].id], in: $1, for: users[1]) }
        #expect(try unread(1) == [4, 4])
        // A read mark can move up and down. It may be a time at which there is no message.
        try change { try $0.setRead(sent[1].id.timeMs + 1, of: users[1], in: $1) }
        #expect(try unread(1) == [2, 2])
        try change { try $0.setRead(sent[0].id.timeMs, of: users[1], in: $1) }
        #expect(try unread(1) == [3, 3])
        try change { try $0.setRead(sent[0].id.timeMs - 1, of: users[1], in: $1) }
        #expect(try unread(1) == [4, 4])
        try change { try $0.setRead(sent[5].id.timeMs, of: users[1], in: $1) }
        #expect(try unread(1) == [0, 0])
        try change { try $0.setRead(0, of: users[1], in: $1) }
        #expect(try unread(1) == [4, 4])
        // A user who writes a message marks the chat as read.
        try store.send("7", from: users[1], to: users[0])
        #expect(try unread(1) == [0, 0])
        #expect(try unread(0) == [1, 1])
        #expect(try store.problems() == [])
    }

    @Test(
        "a read mark is stored, and changes the chat for everybody who sees it",
        arguments: SQLEngine.available
    )
    func marks(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try store.send("x", from: users[0], to: users[1])
        let since = store.now
        func mark(_ time: Int64) throws {
            try store.batch { tx in
                let chat = try #require(try tx.chat(of: users[0], and: users[1]))
                try tx.setRead(time, of: users[1], in: chat)
                #expect(try tx.member(users[1], of: chat)?.readTime == time)
            }
        }
        func changed(_ user: Int, since: Int64) throws -> Bool {
            try store.read { try !$0.changedViews(for: users[user], since: since).isEmpty }
        }

        try mark(sent.id.timeMs)
        let view = try #require(try store.read { try $0.view(key, for: users[1]) })
        #expect((view.readTime, view.readNumber) == (sent.id.timeMs, 1))
        let chat = try store.read { try $0.chat(#require(try $0.view(key, for: users[0]))) }
        #expect(
            chat.participants == IDMap([(users[0], sent.id.timeMs), (users[1], sent.id.timeMs)])
        )
        #expect(try changed(0, since: since) && changed(1, since: since))

        // If the same mark is set again, nothing changes.
        let again = store.now
        try mark(sent.id.timeMs)
        #expect(try !changed(0, since: again) && !changed(1, since: again))

        try mark(sent.id.timeMs - 1)
        #expect(try store.read { try $0.view(key, for: users[1]) }?.readNumber == 0)
        try store.reopen()
        try store.batch { tx in
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            let member = try #require(try tx.member(users[1], of: chat))
            #expect((member.readTime, member.readNumber) == (sent.id.timeMs - 1, 0))
        }
    }

    @Test("a hidden mark is the reader's alone", arguments: SQLEngine.available)
    func hiddenMarks(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        let sent = try (0..<3).map { _ in try store.send("x", from: users[0], to: users[1]) }
        let times = sent.map(\.id.timeMs)
        func show(_ shows: Bool) throws {
            try store.batch { tx in
                let account = try #require(try tx.reader.account(users[1]))
                var privacy = account.privacy
                privacy.showsReadMark = shows
                _ = try tx.settingsChanged(of: account, privacy: privacy)
            }
        }
        /// - Returns: For each of the two users, whether the chat has changed.
        func change(_ body: (WriteTransaction, ChatState) throws -> Void) throws -> [Bool] {
            let since = store.now
            try store.batch { tx in
                try body(tx, #require(try tx.chat(of: users[0], and: users[1])))
            }
            return try users[0...1].map { user in
                try store.read { try !$0.changedViews(for: user, since: since).isEmpty }
            }
        }
        func raise(_ time: Int64) throws -> [Bool] {
            try change { try $0.raiseRead(to: time, of: users[1], in: $1) }
        }
        func lower(_ time: Int64) throws -> [Bool] {
            try change { try $0.lowerRead(to: time, of: users[1], in: $1) }
        }
        /// Returns the second user's read mark twice: as the first user sees it, and as the second
        /// user sees it.
        func marks() throws -> [Int64] {
            try users[0...1].map { user in
                try store.read { snapshot in
                    let chat = try snapshot.chat(#require(try snapshot.view(key, for: user)))
                    return try #require(chat.participants[users[1]])
                }
            }
        }

        #expect(try raise(times[0]) == [true, true])
        #expect(try marks() == [times[0], times[0]])
        try show(false)
        #expect(try raise(times[1]) == [false, true])
        #expect(try marks() == [times[0], times[1]])
        #expect(try lower(times[0] - 1) == [false, true])
        #expect(try marks() == [times[0], times[0] - 1])
        #expect(try raise(times[1]) == [false, true])
        // A user who clears the chat for themselves also marks it as read.
        #expect(try change { try $0.clear($1, upTo: sent[1].id, for: users[1]) } == [false, true])
        #expect(try raise(times[2]) == [false, true])
        #expect(try marks() == [times[0], times[2]])

        // The second user shows their marks again. The first user still does not see the hidden
        // marks. A mark that is set from now on is visible.
        try show(true)
        #expect(try marks() == [times[0], times[2]])
        #expect(try raise(times[1]) == [true, false])
        #expect(try marks() == [times[1], times[2]])
        #expect(try raise(times[1]) == [false, false])
        #expect(try lower(times[1] - 1) == [false, true])
        // Messages that the reader has cleared always count as read.
        #expect(try marks() == [times[1], times[1]])
        try store.reopen()
        #expect(try marks() == [times[1], times[1]])
        // If other users have seen that a message is read, it stays read for them.
        #expect(try raise(times[2]) == [true, true])
        #expect(try lower(times[1]) == [false, true])
        #expect(try marks() == [times[2], times[1]])

        try show(false)
        let own = try store.send("y", from: users[1], to: users[0])
        #expect(try marks() == [own.id.timeMs, own.id.timeMs])
        #expect(try store.problems() == [])
    }

    @Test("marks count messages of the same batch", arguments: SQLEngine.available)
    func marksInOneBatch(engine: SQLEngine) throws {
        let (store, users, key) = try dialog(engine)
        try store.batch { tx in
            let sent = try (0..<4).map { _ in
                try store.send("x", from: users[0], to: users[1], in: tx)
            }
            let chat = try #require(try tx.chat(of: users[0], and: users[1]))
            #expect(try tx.unread(of: users[1], in: chat) == 4)
            try tx.setRead(sent[2].id.timeMs, of: users[1], in: chat)
            #expect(try tx.unread(of: users[1], in: chat) == 1)
            try store.send("x", from: users[0], to: users[1], in: tx)
            #expect(try tx.unread(of: users[1], in: chat) == 2)
            try tx.remove([sent[3]], in: chat)
            #expect(try tx.unread(of: users[1], in: chat) == 1)
        }
        let view = try #require(try store.read { try $0.view(key, for: users[1]) })
        #expect(view.readNumber == 3)
    }
}
