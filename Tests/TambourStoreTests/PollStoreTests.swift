import TambourEvents
import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Polls in the store")
struct PollStoreTests {
    /// A group with three members, and a poll in it.
    private struct World {
        let store: TestStore
        let users: [UserID]
        let key: ChatKey
        private(set) var id = MessageID(0)

        init(_ engine: SQLEngine, settings: PollSettings = [], right: Int64? = nil) throws {
            store = try TestStore(engine)
            users = try store.users(3)
            key = try store.group(users)
            try ask(settings, right: right)
        }

        /// Sends a poll. The following calls refer to this poll.
        mutating func ask(_ settings: PollSettings = [], right: Int64? = nil) throws {
            id = try store.batch { tx in
                let chat = try #require(try tx.group(key, for: users[0]))
                let poll = Attach(
                    type: .poll,
                    title: "?",
                    answers: [
                        PollAnswer(text: "a", answerID: 1), PollAnswer(text: "b", answerID: 2),
                    ],
                    settings: settings.rawValue,
                    pollID: tx.newPollID(),
                    version: 1,
                    state: PollState(result: [PollResult(answerID: 1), PollResult(answerID: 2)])
                )
                let content = MessageContent(
                    cid: store.nextCID(),
                    text: "",
                    attaches: Packed([poll]),
                    poll: PollMark(right: right)
                )
                return try tx.append(content, to: chat, from: users[0], on: store.device).record.id
            }
        }

        func vote(_ answers: [Int64], by user: UserID) throws {
            try store.batch { tx in try vote(answers, by: user, in: tx) }
        }

        func vote(_ answers: [Int64], by user: UserID, in tx: WriteTransaction) throws {
            let chat = try #require(try tx.group(key, for: user))
            let record = try #require(try tx.message(id, in: chat, visibleTo: user))
            let before = try tx.reader.choices(of: user, in: record)
            _ = try tx.setChoices(answers, insteadOf: before, of: user, in: record, of: chat)
        }

        func state(for viewer: UserID?) throws -> PollState? {
            try store.read { snapshot in
                let record = try #require(try snapshot.record(id, in: key))
                let message = try snapshot.message(
                    record,
                    at: MessageAddress(chatID: ChatID(0)),
                    for: viewer.map { Viewpoint(user: $0, floor: MessageID(0)) }
                )
                return message.attaches.stored?.first?.state
            }
        }

        func rows() throws -> Int64 {
            let statement = try store.reader.sql.prepare("SELECT count(*) FROM poll_vote")
            defer { statement.reset() }
            return try statement.step() ? statement.int(0) : -1
        }
    }

    private func shown(_ state: PollState?) -> [[UserID]] {
        (state?.result ?? []).map { $0.votes.map(\.userID) }
    }

    @Test(
        "counts are everybody's, own votes and right answers their voter's",
        arguments: SQLEngine.available
    )
    func viewers(engine: SQLEngine) throws {
        let world = try World(engine, settings: [.anonymous, .quiz], right: 2)
        let (a, b) = (world.users[0], world.users[1])
        try world.vote([1], by: b)
        for viewer in [a, nil] {
            let state = try world.state(for: viewer)
            #expect(state?.total == 1)
            #expect(state?.result?.map(\.voteCount) == [1, 0])
            #expect(state?.result?.map(\.options) == [0, 0])
            #expect(shown(state) == [[], []])
        }
        #expect(shown(try world.state(for: b)) == [[b], []])
        #expect(try world.state(for: b)?.result?.map(\.options) == [0, 1])
        #expect(try world.store.problems() == [])
    }

    @Test(
        "a vote is a change for every member, and gone with a batch that fails",
        arguments: SQLEngine.available
    )
    func change(engine: SQLEngine) throws {
        struct Failure: Error {}
        let world = try World(engine)
        let (store, voter) = (world.store, world.users[1])
        let before = store.now
        #expect(throws: Failure.self) {
            try store.batch { tx in
                try world.vote([1], by: voter, in: tx)
                throw Failure()
            }
        }
        #expect(try world.rows() == 0)
        #expect(try world.state(for: nil)?.total == 0)
        for user in world.users {
            #expect(try store.read { try $0.changedViews(for: user, since: before) }.isEmpty)
        }
        try world.vote([1, 2], by: voter)
        #expect(try world.rows() == 2)
        for user in world.users {
            let changed = try store.read { try $0.changedViews(for: user, since: before) }
            #expect(changed.map(\.key) == [world.key])
        }
        try world.vote([], by: voter)
        #expect(try world.rows() == 0)
        #expect(try world.state(for: voter)?.total == 0)
    }

    @Test("no vote is left where the message goes, or its poll", arguments: SQLEngine.available)
    func removed(engine: SQLEngine) throws {
        var world = try World(engine)
        let author = world.users[0]
        let removals: [(WriteTransaction, ChatState, MessageRecord) throws -> Void] = [
            { tx, chat, record in try tx.remove([record], in: chat) },
            { tx, chat, record in _ = try tx.remove(upTo: record.id, sentBy: nil, in: chat) },
            { tx, chat, _ in _ = try tx.remove(upTo: chat.head.id, sentBy: [author], in: chat) },
            { tx, chat, record in
                let nothing = MessageID(0)
                _ = try tx.remove(after: nothing, upTo: record.id, sentBy: author, in: chat)
            },
            { tx, chat, record in
                var other = record
                other.attaches = nil
                other.poll = nil
                other.text = "no poll"
                _ = try tx.edit(record, to: other, in: chat)
            },
        ]
        for removal in removals {
            try world.vote([1], by: world.users[1])
            #expect(try world.rows() == 1)
            try world.store.batch { tx in
                let chat = try #require(try tx.group(world.key, for: author))
                try removal(tx, chat, try #require(try tx.record(world.id, in: chat)))
            }
            #expect(try world.rows() == 0)
            #expect(try world.state(for: world.users[1]) == nil)
            let record = try world.store.read { try $0.record(world.id, in: world.key) }
            #expect(record?.poll == nil)
            try world.ask()
        }
    }
}
