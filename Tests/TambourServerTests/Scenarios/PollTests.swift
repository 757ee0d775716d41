import Dispatch
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

extension NewAttach {
    /// Returns a poll with the answers "1", "2" and so on.
    static func poll(
        _ title: Text = "Who drums?",
        answers: Int = 3,
        settings: PollSettings = [],
        right: [Int] = []
    ) -> NewAttach {
        NewAttach(
            type: .poll,
            title: title,
            answers: (1...answers).map {
                NewPollAnswer(text: Text("\($0)"), options: right.contains($0) ? 1 : 0)
            },
            settings: settings.rawValue
        )
    }
}

extension Message {
    /// The poll among the attachments.
    fileprivate var poll: Attach? { attaches.stored?.first { $0.type == .poll } }
}

/// A poll's state in short form: the number of voters, the votes and the shown voters of each
/// answer, the right answers, and the voters in the preview.
private struct Standing: Equatable {
    var total: Int64
    var counts: [Int64]
    var votes: [[UserID]]
    var right: [Int64] = []
    var voters: [UserID]

    init(_ state: PollState?) {
        total = state?.total ?? -1
        counts = state?.result?.map(\.voteCount) ?? []
        votes = state?.result?.map { $0.votes.map(\.userID) } ?? []
        right = state?.result?.filter { $0.options == 1 }.map(\.answerID) ?? []
        voters = state?.voterPreviewIDs ?? []
    }

    init(
        _ total: Int64,
        _ counts: [Int64],
        votes: [[UserID]],
        right: [Int64] = [],
        voters: [UserID]
    ) {
        self.total = total
        self.counts = counts
        self.votes = votes
        self.right = right
        self.voters = voters
    }

    /// Returns the state of a poll that shows every voter to everybody.
    static func open(_ votes: [[UserID]]) -> Standing {
        let voters = Set(votes.joined()).sorted()
        return Standing(
            Int64(voters.count),
            votes.map { Int64($0.count) },
            votes: votes,
            voters: voters
        )
    }
}

/// The ids that name a poll: the id of its chat, of its message, and of the poll itself.
private struct Poll {
    let chat: ChatID
    let message: MessageID
    let id: Int64

    func vote(_ answers: [Int64]) -> SendVoteRequest {
        SendVoteRequest(chatID: chat, messageID: message, pollID: id, answersIDs: answers)
    }

    func voters(
        of answer: Int64,
        count: Int64? = nil,
        after marker: Int64? = nil
    ) -> VotersListByAnswerRequest {
        VotersListByAnswerRequest(
            chatID: chat,
            messageID: message,
            pollID: id,
            answerID: answer,
            count: count,
            marker: marker
        )
    }

    func edit(_ attach: NewAttach) -> MsgEditRequest {
        MsgEditRequest(chatID: chat, messageID: message, attachments: [attach])
    }
}

extension WireClient {
    fileprivate func ask(_ attach: NewAttach, in chat: ChatID, cid: Int64) throws -> Poll {
        let message = try call(
            MsgSendRequest(chatID: chat, message: NewMessage(cid: cid, attaches: [attach]))
        ).message
        let id = try #require(message.poll?.pollID)
        return Poll(chat: chat, message: message.id, id: id)
    }

    @discardableResult
    fileprivate func vote(_ answers: [Int64], in poll: Poll) throws -> Standing {
        Standing(try call(poll.vote(answers)).state)
    }

    /// Returns the poll of the newest message in the list of chats.
    fileprivate func shown(_ chat: ChatID) throws -> Attach? {
        try self.chat(chat)?.lastMessage?.poll
    }

    /// Returns the message of the only push. The push reports an edit of the message with the poll.
    fileprivate func told() throws -> Message? {
        let pushes = try only(.notifMessage, as: NotifMessage.self)
        #expect(pushes.count == 1)
        return pushes.first?.message
    }
}

/// Runs `body` with Alice's group, its members Bob and Carol, and a poll in the group. No pushes
/// are pending.
private func withPoll(
    _ attach: NewAttach = .poll(),
    limits: [String: Int] = [:],
    environment: Environment = .live,
    _ body: (TestServer, [WireClient], Poll) throws -> Void
) throws {
    try withPair(limits: limits, environment: environment) { server, alice, bob, _ in
        let carol = try server.signUp("Carol")
        let group = try alice.createGroup("Drums", with: [bob, carol], cid: 1)
        let poll = try alice.ask(attach, in: group, cid: 2)
        for client in [alice, bob, carol] { _ = try client.takePushes() }
        try body(server, [alice, bob, carol], poll)
    }
}

@Suite("A poll in MSG_SEND (64) and MSG_EDIT (67)")
struct PollMessageTests {
    @Test("is stored with ids and without votes, the same for everybody")
    func stored() throws {
        try withPair { server, alice, bob, dialog in
            let settings: PollSettings = [.multiple, .mayRevote]
            let sent = try alice.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(
                        cid: 1,
                        attaches: [
                            .poll("Who?", answers: 2, settings: PollSettings(rawValue: 1_030))
                        ]
                    )
                )
            ).message
            let poll = try #require(sent.poll)
            #expect(poll.title == "Who?")
            #expect(poll.answers?.map(\.answerID) == [1, 2])
            #expect(poll.answers?.map(\.text) == ["1", "2"])
            #expect(poll.settings == settings.rawValue)
            #expect(poll.version == 1)
            #expect(Standing(poll.state) == .open([[], []]))
            let pushed = try #require(
                try bob.news().first { $0.opcode == .notifMessage }?.decode(as: NotifMessage.self)
            )
            #expect(pushed.message.poll == poll)
            #expect(pushed.message.status == nil)
            for client in [alice, bob] {
                #expect(try client.shown(dialog) == poll)
                #expect(try client.history(dialog).messages?.last?.poll == poll)
            }
            let again = try alice.ask(.poll("Who?"), in: dialog, cid: 2)
            #expect(again.id != poll.pollID)
        }
    }

    @Test("what is no poll is refused, and nothing is stored")
    func refused() throws {
        try withPair(limits: ["maxPollAnswers": 4]) { server, alice, bob, dialog in
            try alice.send("hi", to: dialog, cid: 1)
            _ = try bob.takePushes()
            func code(_ attaches: NewAttach...) throws -> RequestError.Code {
                try alice.code(
                    of: MsgSendRequest(
                        chatID: dialog,
                        message: NewMessage(cid: 2, text: "?", attaches: attaches)
                    )
                )
            }
            var empty = NewAttach.poll()
            empty.answers?[1].text = ""
            let wrong: [NewAttach] = [
                .poll(""), .poll(answers: 1), .poll(answers: 5), empty, NewAttach(type: .poll),
                NewAttach(type: .poll, title: "?"),
            ]
            for attach in wrong {
                #expect(try code(attach) == .protoPayload, "\(attach)")
            }
            #expect(try code(.poll(), .poll()) == .errorMessageInvalid)
            for settings in [[.quiz, .multiple], [.quiz, .mayRevote]] as [PollSettings] {
                #expect(try code(.poll(settings: settings)) == .errorMessageInvalid)
            }
            #expect(try code(.poll(settings: .quiz, right: [1, 2])) == .errorMessageInvalid)
            #expect(try alice.texts(dialog) == ["hi"])
            try bob.expectSilence()
        }
    }

    @Test("the sender closes it for good; its votes stay")
    func closed() throws {
        try withPoll(.poll(settings: .mayRevote)) { server, people, poll in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            try bob.vote([2], in: poll)
            for client in people { _ = try client.takePushes() }
            // An edit of the message's text alone does not change the poll.
            try alice.call(
                MsgEditRequest(chatID: poll.chat, messageID: poll.message, text: "vote!")
            )
            #expect(try alice.shown(poll.chat)?.version == 2)
            #expect(
                try bob.code(of: poll.edit(.poll(settings: [.mayRevote, .closed]))) == .notAllowed
            )
            _ = try carol.takePushes()
            let edited = try alice.call(poll.edit(.poll(settings: [.mayRevote, .closed]))).message
            #expect(edited.poll?.pollID == poll.id)
            #expect(edited.poll?.version == 3)
            #expect(edited.poll?.pollSettings == [.mayRevote, .closed])
            #expect(Standing(edited.poll?.state) == .open([[], [bob.userID], []]))
            #expect(try carol.told()?.poll == edited.poll)
            for answers in [[1], []] as [[Int64]] {
                #expect(try bob.code(of: poll.vote(answers)) == .notAllowed)
            }
            #expect(try carol.code(of: poll.vote([1])) == .notAllowed)
            // The client retries the vote as if the reply was lost. The retry changes nothing.
            #expect(try bob.vote([2], in: poll) == .open([[], [bob.userID], []]))
            #expect(
                try alice.code(of: poll.edit(.poll(settings: .mayRevote))) == .errorMessageInvalid
            )
            try alice.call(poll.edit(.poll(settings: [.mayRevote, .closed, .mayForward])))
            #expect(try alice.shown(poll.chat)?.version == 4)
        }
    }

    @Test("another question is another poll, without votes; other attachments end it")
    func replaced() throws {
        try withPoll { server, people, poll in
            let (alice, bob) = (people[0], people[1])
            var current = poll
            let others: [NewAttach] = [
                .poll("Who sings?"), .poll(answers: 2), .poll(settings: .anonymous),
            ]
            for attach in others {
                try bob.vote([2], in: current)
                let edited = try alice.call(current.edit(attach)).message.poll
                let id = try #require(edited?.pollID)
                #expect(id != current.id)
                #expect(Standing(edited?.state).total == 0)
                #expect(try bob.code(of: current.vote([1])) == .notFound)
                #expect(try bob.code(of: current.voters(of: 2)) == .notFound)
                current = Poll(chat: poll.chat, message: poll.message, id: id)
            }
            try bob.vote([1], in: current)
            let share = NewAttach(type: .share, url: "https://example.org/")
            try alice.call(current.edit(share))
            #expect(try alice.shown(poll.chat) == nil)
            #expect(try bob.code(of: current.vote([1])) == .notFound)
        }
    }

    @Test("a forward is a closed copy that names nobody, if there may be one")
    func forwarded() throws {
        try withPoll(.poll(settings: [.mayForward, .mayRevote])) { server, people, poll in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            try bob.vote([2], in: poll)
            func forward(_ message: MessageID, cid: Int64) -> MsgSendRequest {
                MsgSendRequest(
                    chatID: ChatID(0),
                    message: NewMessage(
                        cid: cid,
                        link: NewLink(type: .forward, messageID: message, chatID: poll.chat)
                    )
                )
            }
            let sent = try carol.call(forward(poll.message, cid: 1)).message
            let copy = try #require(sent.link?.stored?.message.poll)
            #expect(copy.pollID == poll.id)
            #expect(copy.pollSettings == [.mayForward, .mayRevote, .closed])
            #expect(
                Standing(copy.state)
                    == Standing(1, [0, 1, 0], votes: [[], [], []], voters: [])
            )
            let there = Poll(chat: ChatID(0), message: sent.id, id: poll.id)
            #expect(try carol.code(of: there.vote([1])) == .notFound)
            // The copy is closed. The original poll stays open.
            try carol.vote([1], in: poll)
            let fixed = try alice.ask(.poll(), in: poll.chat, cid: 3)
            #expect(try carol.code(of: forward(fixed.message, cid: 2)) == .notAllowed)
        }
    }
}

@Suite("SEND_VOTE (304)")
struct SendVoteTests {
    @Test("is counted for everybody, who are told by the message as it is")
    func counted() throws {
        try withPoll { server, people, poll in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let expected = Standing.open([[], [bob.userID], []])
            let state = try bob.call(poll.vote([2])).state
            #expect(Standing(state) == expected)
            #expect(state.result?.map(\.rate) == [0, 100, 0])
            for client in [alice, carol, tablet] {
                let message = try #require(try client.told())
                #expect(message.id == poll.message)
                #expect(message.status == .edited)
                #expect(message.updateTime == state.result?[1].votes.first?.timestamp)
                #expect(message.poll?.version == 2)
                #expect(Standing(message.poll?.state) == expected)
            }
            try bob.expectSilence()
            try carol.vote([1], in: poll)
            let both = Standing.open([[carol.userID], [bob.userID], []])
            for client in [alice, bob, tablet, carol] {
                let login = try server.reconnect(client).login
                let last = login.chats.first { $0.id == poll.chat }?.lastMessage
                let views = [
                    last, try client.chat(poll.chat)?.lastMessage,
                    try client.history(poll.chat).messages?.last,
                    try client.call(
                        MsgGetRequest(chatID: poll.chat, messageIDs: [poll.message])
                    ).messages.first,
                ]
                for view in views {
                    #expect(Standing(view?.poll?.state) == both)
                    #expect(view?.poll?.state?.result?.map(\.rate) == [50, 50, 0])
                    #expect(view?.status == nil)
                    #expect(view?.updateTime != nil)
                }
            }
            let reply = try alice.call(
                MsgSendRequest(
                    chatID: poll.chat,
                    message: NewMessage(
                        cid: 3,
                        text: "so",
                        link: NewLink(type: .reply, messageID: poll.message)
                    )
                )
            )
            #expect(Standing(reply.message.link?.stored?.message.poll?.state) == both)
        }
    }

    @Test("the same again is no news, another one only where the poll says so")
    func again() throws {
        try withPoll { server, people, poll in
            let (alice, bob) = (people[0], people[1])
            #expect(try bob.vote([], in: poll) == .open([[], [], []]))
            try alice.expectSilence()
            try bob.vote([2], in: poll)
            _ = try alice.takePushes()
            #expect(try bob.vote([2, 2], in: poll) == .open([[], [bob.userID], []]))
            try alice.expectSilence()
            for answers in [[1], [], [1, 2]] as [[Int64]] {
                #expect(try bob.code(of: poll.vote(answers)) == .notAllowed)
            }
            #expect(Standing(try alice.shown(poll.chat)?.state) == .open([[], [bob.userID], []]))
            try alice.expectSilence()
        }
    }

    @Test("is changed and taken back where the poll says so")
    func changed() throws {
        try withPoll(.poll(settings: .mayRevote)) { server, people, poll in
            let (alice, bob) = (people[0], people[1])
            try bob.vote([2], in: poll)
            #expect(try bob.vote([1], in: poll) == .open([[bob.userID], [], []]))
            #expect(try bob.code(of: poll.vote([1, 2])) == .notAllowed)
            _ = try alice.takePushes()
            #expect(try bob.vote([], in: poll) == .open([[], [], []]))
            #expect(Standing(try alice.told()?.poll?.state) == .open([[], [], []]))
            try bob.vote([], in: poll)
            try alice.expectSilence()
            try bob.vote([3], in: poll)
            #expect(try alice.shown(poll.chat)?.version == 5)
        }
    }

    @Test("several answers count each, and who gave them once")
    func several() throws {
        try withPoll(.poll(settings: [.multiple, .mayRevote])) { server, people, poll in
            let (bob, carol) = (people[1], people[2])
            try bob.vote([3, 1], in: poll)
            #expect(
                try carol.vote([3], in: poll)
                    == .open([[bob.userID], [], [bob.userID, carol.userID]])
            )
            let before = try bob.call(poll.voters(of: 3)).votes.first
            let state = try bob.call(poll.vote([2, 3])).state
            #expect(Standing(state) == .open([[], [bob.userID], [bob.userID, carol.userID]]))
            #expect(state.result?.map(\.rate) == [0, 50, 100])
            // Bob keeps his vote for the third answer. This vote keeps its time.
            #expect(try bob.call(poll.voters(of: 3)).votes.first == before)
        }
    }

    @Test("of an anonymous poll nobody sees but who gave it, on every device")
    func anonymous() throws {
        try withPoll(.poll(settings: .anonymous)) { server, people, poll in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let own = Standing(1, [0, 1, 0], votes: [[], [bob.userID], []], voters: [])
            let others = Standing(1, [0, 1, 0], votes: [[], [], []], voters: [])
            #expect(try bob.vote([2], in: poll) == own)
            for (client, expected) in [(alice, others), (carol, others), (tablet, own)] {
                #expect(Standing(try client.told()?.poll?.state) == expected)
                #expect(Standing(try client.shown(poll.chat)?.state) == expected)
                let updates = GetPollUpdatesRequest(
                    chatID: poll.chat,
                    polls: [PollReference(messageID: poll.message, pollID: poll.id)]
                )
                #expect(
                    Standing(try client.call(updates).polls.first?.state) == expected
                )
                #expect(try client.code(of: poll.voters(of: 2)) == .notAllowed)
            }
        }
    }

    @Test("shows few of many, and always the own one")
    func shown() throws {
        try withPoll(limits: ["pollVotesShown": 1, "pollVotersShown": 2]) { server, people, poll in
            for client in people { try client.vote([1], in: poll) }
            let ids = people.map(\.userID)
            for (client, votes) in zip(people, [[ids[0]], [ids[0], ids[1]], [ids[0], ids[2]]]) {
                #expect(
                    Standing(try client.shown(poll.chat)?.state)
                        == Standing(
                            3,
                            [3, 0, 0],
                            votes: [votes, [], []],
                            voters: Array(ids.prefix(2))
                        )
                )
            }
        }
    }

    @Test("in a quiz tells what was right, and before that nobody")
    func quiz() throws {
        try withPoll(.poll(settings: [.quiz, .mayForward], right: [3])) { server, people, poll in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            #expect(Standing(try alice.shown(poll.chat)?.state).right == [])
            #expect(try bob.vote([1], in: poll).right == [3])
            #expect(try bob.code(of: poll.vote([3])) == .notAllowed)
            #expect(Standing(try alice.told()?.poll?.state).right == [])
            for (client, right) in [(alice, []), (bob, [3]), (carol, [])] as [(WireClient, [Int64])]
            {
                #expect(Standing(try client.shown(poll.chat)?.state).right == right)
            }
            try alice.call(poll.edit(.poll(settings: [.quiz, .mayForward, .closed])))
            for client in people {
                #expect(Standing(try client.shown(poll.chat)?.state).right == [3])
            }
        }
    }

    @Test("is refused where there is no such poll, and where one may not")
    func refused() throws {
        try withPoll { server, people, poll in
            let (alice, bob) = (people[0], people[1])
            let plain = try alice.send("boom", to: poll.chat, cid: 3).message.id
            let hidden = try alice.ask(.poll(), in: poll.chat, cid: 4)
            try bob.delete([hidden.message], in: poll.chat, forMe: true)
            let gone = try alice.ask(.poll(), in: poll.chat, cid: 5)
            try bob.vote([1], in: gone)
            try alice.delete([gone.message], in: poll.chat)
            for (message, id) in [
                (poll.message, poll.id + 1), (plain, poll.id), (hidden.message, hidden.id),
                (gone.message, gone.id), (MessageID(7), poll.id),
            ] {
                let asked = Poll(chat: poll.chat, message: message, id: id)
                #expect(try bob.code(of: asked.vote([1])) == .notFound)
                #expect(try bob.code(of: asked.voters(of: 1)) == .notFound)
            }
            for answer in [0, 4, -1, 64] as [Int64] {
                #expect(try bob.code(of: poll.vote([answer])) == .notFound)
                #expect(try bob.code(of: poll.voters(of: answer)) == .notFound)
            }
            let stranger = try server.signUp("Stranger")
            let nowhere = Poll(chat: ChatID(-1), message: poll.message, id: poll.id)
            for (client, asked) in [(stranger, poll), (bob, nowhere)] {
                #expect(try client.code(of: asked.vote([1])) == .chatNotFound)
                #expect(try client.code(of: asked.voters(of: 1)) == .chatNotFound)
                let updates = GetPollUpdatesRequest(chatID: asked.chat, polls: [])
                #expect(try client.code(of: updates) == .chatNotFound)
            }
            let dialog = alice.dialog(with: bob)
            let between = try alice.ask(.poll(), in: dialog, cid: 6)
            try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .block))
            #expect(try bob.code(of: between.vote([1])) == .chatNotFound)
            #expect(try alice.code(of: between.vote([1])) == .notAllowed)
        }
    }

    @Test("counts as a message where it is a question of how often")
    func often() throws {
        let limits = ["sendBurst": 2, "sendsPerMinute": 1]
        try withPoll(.poll(settings: .mayRevote), limits: limits) { server, people, poll in
            for answer in [1, 2] as [Int64] { try people[1].vote([answer], in: poll) }
            #expect(try people[1].code(of: poll.vote([1])) == .tooManyRequests)
            try people[2].vote([1], in: poll)
        }
    }

    @Test("is in the delta of who was away")
    func delta() throws {
        try withPoll(.poll(settings: .mayRevote)) { server, people, poll in
            let (bob, carol) = (people[1], people[2])
            var mark = try server.reconnect(carol).login.time
            for (answers, total) in [([2], 1), ([], 0)] as [([Int64], Int64)] {
                try bob.vote(answers, in: poll)
                let delta = try server.reconnect(carol, since: mark).login
                let chat = try #require(delta.chats.first { $0.id == poll.chat })
                #expect(chat.lastMessage?.poll?.state?.total == total)
                mark = delta.time
            }
        }
    }

    @Test("goes with who is no more")
    func erased() throws {
        let clock = ManualClock()
        try withPoll(
            .poll(settings: .multiple),
            environment: clock.environment
        ) { server, people, poll in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            try bob.vote([1, 2], in: poll)
            try carol.vote([2], in: poll)
            try bob.call(ProfileDeleteRequest(delete: true))
            clock.advance(ms: Int64(Limits.standard.profileDeleteDelayMs) + 1_000)
            let done = DispatchSemaphore(value: 0)
            server.server.messenger.housekeeper.run { done.signal() }
            done.wait()
            let page = try alice.history(poll.chat).messages ?? []
            let seen = page.first { $0.id == poll.message }?.poll
            #expect(Standing(seen?.state) == .open([[], [carol.userID], []]))
        }
    }
}

@Suite("VOTERS_LIST_BY_ANSWER (305) and GET_POLL_UPDATES (306)")
struct PollReadingTests {
    @Test("who voted, page by page")
    func pages() throws {
        try withPoll(limits: ["votersPageSize": 2, "maxVotersPage": 2]) { server, people, poll in
            for client in people { try client.vote([2], in: poll) }
            let ids = people.map(\.userID)
            for count in [nil, 2, 100] as [Int64?] {
                let first = try people[0].call(poll.voters(of: 2, count: count))
                #expect(first.votes.map(\.userID) == Array(ids.prefix(2)))
                let second = try people[0].call(
                    poll.voters(of: 2, count: count, after: first.marker)
                )
                #expect(second.votes.map(\.userID) == [ids[2]])
                #expect(second.marker == nil)
            }
            #expect(try people[0].call(poll.voters(of: 2, count: -3)).votes.count == 1)
            #expect(try people[0].call(poll.voters(of: 1)).votes.isEmpty)
        }
    }

    @Test("polls as they are now, without those one does not see")
    func updates() throws {
        try withPoll { server, people, poll in
            let (alice, bob) = (people[0], people[1])
            let second = try alice.ask(.poll("More?"), in: poll.chat, cid: 3)
            let gone = try alice.ask(.poll(), in: poll.chat, cid: 4)
            try alice.delete([gone.message], in: poll.chat)
            try bob.vote([1], in: second)
            let asked = [
                gone, second, Poll(chat: poll.chat, message: poll.message, id: 7), poll, second,
            ].map { PollReference(messageID: $0.message, pollID: $0.id) }
            let polls = try alice.call(
                GetPollUpdatesRequest(chatID: poll.chat, polls: asked)
            ).polls
            #expect(polls.map(\.pollID) == [second.id, poll.id])
            #expect(polls.map(\.title) == ["More?", "Who drums?"])
            #expect(polls.first.map { Standing($0.state) } == .open([[bob.userID], [], []]))
            #expect(polls.map(\.version) == [2, 1])
        }
    }
}
