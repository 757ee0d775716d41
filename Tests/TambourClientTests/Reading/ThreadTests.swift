import GRDB
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Threads built from stored messages.
@Suite("A thread")
struct ThreadTests {
    private static let chat = ChatID.dialog(UserID(7), UserID(8))
    private static let other = ChatID.dialog(UserID(7), UserID(9))

    private static func id(_ number: Int64) -> MessageID {
        MessageID(timeMs: 2_000_000 + number, counter: 0)
    }

    private static func message(
        _ number: Int64,
        answering answered: Int64? = nil,
        in chat: ChatID = chat
    ) -> Message {
        var message = Message(
            id: id(number),
            time: 2_000_000 + number,
            type: "USER",
            text: Text("\(number)"),
            sender: UserID(8)
        )
        if let answered {
            message.link = Packed(
                MessageLink(
                    type: .reply,
                    chatID: chat,
                    message: Self.message(answered),
                    messageID: id(answered)
                )
            )
        }
        return message
    }

    /// Creates a store with messages: each key is a message's number, each value the number of the
    /// message that it answers.
    private static func store(
        _ messages: KeyValuePairs<Int64, Int64?>,
        in chat: ChatID = chat
    ) throws -> LocalStore {
        let store = try LocalStore()
        try store.write { tx in
            for (number, answered) in messages {
                let message = message(number, answering: answered)
                try tx.put(message, in: chat, revision: 1, isPushed: false)
            }
        }
        return store
    }

    /// Returns the entries as `text.depth`. `?` stands for a message that is not held, and `x` for
    /// a deleted message.
    private static func entries(
        _ store: LocalStore,
        of number: Int64,
        in chat: ChatID = chat,
        limit: Int = 100
    ) throws -> [String] {
        let thread = try store.read {
            try Reader($0).thread(of: id(number), in: chat, limit: limit)
        }
        return thread.entries.map { entry in
            switch entry.content {
            case .row(let row): "\(row.text).\(entry.depth)"
            case .notHeld: "?.\(entry.depth)"
            case .deleted: "x.\(entry.depth)"
            }
        }
    }

    private static func isWhole(_ store: LocalStore, of number: Int64, limit: Int) throws -> Bool {
        try store.read { try Reader($0).thread(of: id(number), in: chat, limit: limit) }.isWhole
    }

    @Test("is the same tree from each of its messages", arguments: [1, 2, 4, 6] as [Int64])
    func tree(number: Int64) throws {
        let store = try Self.store([1: nil, 2: 1, 3: nil, 4: 2, 5: 1, 6: 2, 7: 3])
        let tree = ["1.0", "2.1", "4.2", "6.2", "5.1"]
        #expect(try Self.entries(store, of: number) == tree)
        #expect(try Self.isWhole(store, of: number, limit: 100))
        #expect(try Self.entries(store, of: 3) == ["3.0", "7.1"])
    }

    @Test("that nobody has answered is the message alone")
    func alone() throws {
        let store = try Self.store([1: nil, 2: nil])
        #expect(try Self.entries(store, of: 2) == ["2.0"])
    }

    @Test("says that what began it is not held, or was deleted")
    func missingRoot() throws {
        let store = try Self.store([2: 1, 3: 2, 4: 1, 6: 5])
        #expect(try Self.entries(store, of: 3) == ["?.0", "2.1", "3.2", "4.1"])
        #expect(try Self.entries(store, of: 5) == ["?.0", "6.1"])
        try store.write { tx in
            try tx.execute(
                "INSERT INTO history_tomb VALUES (?, ?)",
                [Self.chat.rawValue, Self.id(1).rawValue]
            )
            try tx.execute(
                "INSERT INTO history_chunk VALUES (?, ?, ?)",
                [Self.chat.rawValue, Self.id(5).rawValue, Self.id(9).rawValue]
            )
        }
        #expect(try Self.entries(store, of: 3) == ["x.0", "2.1", "3.2", "4.1"])
        #expect(try Self.entries(store, of: 6) == ["x.0", "6.1"])
        #expect(try Self.entries(store, of: 7).isEmpty)
    }

    @Test("has no deleted message, and nothing of what answered it")
    func deleted() throws {
        let store = try Self.store([1: nil, 2: 1, 3: 2, 4: 1])
        try store.write { try $0.removeMessage(Self.id(2), in: Self.chat) }
        #expect(try Self.entries(store, of: 1) == ["1.0", "4.1"])
        #expect(try Self.entries(store, of: 3) == ["?.0", "3.1"])
    }

    @Test("follows what a message answers now")
    func changed() throws {
        let store = try Self.store([1: nil, 2: 1, 3: nil])
        try store.write { tx in
            for message in [Self.message(2), Self.message(3, answering: 1)] {
                try tx.put(message, in: Self.chat, revision: 2, isPushed: false)
            }
        }
        #expect(try Self.entries(store, of: 1) == ["1.0", "3.1"])
    }

    @Test("is of one chat")
    func chats() throws {
        let store = try Self.store([1: nil, 2: 1])
        try store.write { tx in
            let messages = [
                Self.message(1, in: Self.other),
                // This message claims to answer a message of another chat.
                Self.message(3, answering: 1, in: Self.chat),
                Self.message(4, answering: 1, in: Self.other),
                Self.message(5, answering: 2, in: Self.other),
            ]
            for message in messages {
                try tx.put(message, in: Self.other, revision: 1, isPushed: false)
            }
        }
        #expect(try Self.entries(store, of: 1) == ["1.0", "2.1"])
        #expect(try Self.entries(store, of: 1, in: Self.other) == ["1.0", "4.1"])
        #expect(try Self.entries(store, of: 3, in: Self.other) == ["3.0"])
    }

    @Test("ends where messages answer each other in a circle", .timeLimit(.minutes(1)))
    func circle() throws {
        let store = try Self.store([1: 3, 2: 1, 3: 2, 4: 4, 5: 3])
        #expect(try Self.entries(store, of: 1) == ["2.0", "3.1", "1.2", "5.2"])
        #expect(try Self.entries(store, of: 4) == ["4.0"])
        #expect(try Self.isWhole(store, of: 1, limit: 100))
    }

    @Test("is bounded up and down, with the newest answers")
    func bound() throws {
        let store = try LocalStore()
        try store.write { tx in
            // Store a chain of 300 messages, and 300 answers to the first of them.
            for number in 1...300 as ClosedRange<Int64> {
                let message = Self.message(number, answering: number > 1 ? number - 1 : nil)
                try tx.put(message, in: Self.chat, revision: 1, isPushed: false)
            }
            for number in 301...600 as ClosedRange<Int64> {
                let message = Self.message(number, answering: 1)
                try tx.put(message, in: Self.chat, revision: 1, isPushed: false)
            }
        }
        let top = try Self.entries(store, of: 1)
        #expect(top == ["1.0"] + (502...600).map { "\($0).1" })
        let middle = try Self.entries(store, of: 150)
        #expect(middle.count == 100)
        #expect(middle.prefix(50) == (101...150).enumerated().map { "\($1).\($0)" }[...])
        #expect(try !Self.isWhole(store, of: 600, limit: 100))
        #expect(try !Self.isWhole(store, of: 300, limit: 580))
        #expect(try Self.isWhole(store, of: 1, limit: 600))
        #expect(try !Self.isWhole(store, of: 1, limit: 599))
    }

    @Test("is there offline, with what waits to be sent and without what waits to be deleted")
    func offline() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let first = try bob.send("question", to: chat, cid: 1).message.id
            let link = NewLink(type: .reply, messageID: first)
            for cid in 2...3 as ClosedRange<Int64> {
                let message = NewMessage(cid: cid, text: Text("answer \(cid)"), link: link)
                try bob.call(MsgSendRequest(chatID: chat, message: message))
            }
            let client = try await world.onlineClient(of: alice)
            client.look(at: chat, rowsOnScreen: 10)
            try await client.until("all") { try $0.texts(of: chat).count == 3 }
            let answer = try #require(try client.history(of: chat).rows.last?.message)
            try await world.restartServer {
                try await client.until("offline") { $0.state != .online }
                try await client.send("mine", to: chat, replyingTo: first)
                try await client.delete([answer], in: chat)
                let thread = try client.thread(of: first, in: chat)
                let texts = thread.entries.map { entry in
                    guard case .row(let row) = entry.content else { return "" }
                    return row.text
                }
                #expect(texts == ["question", "answer 2", "mine"])
                #expect(thread.entries.map(\.depth) == [0, 1, 1])
                #expect(thread.entries.last?.message == nil)
                #expect(try client.thread(of: answer, in: chat).entries.isEmpty)
                await client.stop()
            }
        }
    }
}
