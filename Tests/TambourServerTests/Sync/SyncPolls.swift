import TambourProtocol
import TambourStore
import TambourTesting

extension SyncOracle {
    /// The poll of a message, and its votes.
    struct Poll {
        let id: Int64
        var settings: PollSettings
        let answers: Int64
        var votes: [UserID: Set<Int64>] = [:]

        /// Reads the poll of a new or edited message; nil if the message has no poll.
        init?(_ attaches: Packed<[Attach]>) {
            guard let attach = attaches.stored?.first(where: { $0.type == .poll }),
                let id = attach.pollID, let answers = attach.answers
            else { return nil }
            self.id = id
            settings = attach.pollSettings
            self.answers = Int64(answers.count)
        }
    }

    /// The votes in a poll as one user sees them.
    struct Votes: Equatable {
        /// The result of an answer.
        struct Result: Equatable {
            var count: Int64
            var shown: [UserID]
            var isRight: Bool
        }

        let id: Int64
        let settings: Int64
        let total: Int64
        let results: [Result]
        let voters: [UserID]

        init?(_ attaches: Packed<[Attach]>?) {
            guard let attach = attaches?.stored?.first(where: { $0.type == .poll }) else {
                return nil
            }
            id = attach.pollID ?? 0
            settings = attach.settings ?? 0
            total = attach.state?.total ?? -1
            results = (attach.state?.result ?? []).map { result in
                Result(
                    count: result.voteCount,
                    shown: result.votes.map(\.userID),
                    isRight: result.options == 1
                )
            }
            voters = attach.state?.voterPreviewIDs ?? []
        }

        /// - Parameter poll: The poll. In these tests, the first answer of a quiz is the right
        ///   answer.
        init?(_ poll: Poll?, for viewer: UserID, inChannel: Bool = false) {
            guard let poll else { return nil }
            let isAnonymous = poll.settings.contains(.anonymous) || inChannel
            let own = poll.votes[viewer] ?? []
            let voters = poll.votes.filter { !$0.value.isEmpty }.keys.sorted()
            id = poll.id
            settings = poll.settings.rawValue
            total = Int64(voters.count)
            results = (1...poll.answers).map { answer in
                let all = voters.filter { poll.votes[$0]!.contains(answer) }
                var shown = isAnonymous ? [] : Array(all.prefix(SyncSequence.pollVotesShown))
                if own.contains(answer), !shown.contains(viewer) { shown.append(viewer) }
                return Result(
                    count: Int64(all.count),
                    shown: shown,
                    isRight: answer == 1 && poll.settings.contains(.quiz)
                        && (poll.settings.contains(.closed) || !own.isEmpty)
                )
            }
            self.voters = isAnonymous ? [] : Array(voters.prefix(SyncSequence.pollVotersShown))
        }
    }

    /// - Throws: `Divergence` if the message does not show its poll as `viewer` should see it.
    static func check(
        _ seen: TambourProtocol.Message,
        _ expected: Message,
        for viewer: UserID
    ) throws {
        let votes = Votes(seen.attaches)
        let inChannel = seen.chatID?.isChannel ?? false
        let wanted = Votes(expected.poll, for: viewer, inChannel: inChannel)
        guard votes != wanted else { return }
        throw Divergence(
            "the poll of message \(seen.id.rawValue) for \(viewer.rawValue) is "
                + "\(String(describing: votes)), not \(String(describing: wanted))"
        )
    }
}

extension SyncSequence {
    static let pollVotesShown = 1
    static let pollVotersShown = 2

    func poll() -> NewAttach {
        let some: [PollSettings] = [
            .mayRevote, .anonymous, .multiple, .mayForward, [.mayRevote, .multiple], .quiz,
            [.mayRevote, .anonymous, .mayForward], .mayRevote,
        ]
        return poll(random.any(of: some)!, answers: 2 + random.below(2))
    }

    private func poll(_ settings: PollSettings, answers: Int) -> NewAttach {
        NewAttach(
            type: .poll,
            title: "Which?",
            answers: (1...answers).map {
                NewPollAnswer(text: Text("\($0)"), options: $0 == 1 ? 1 : 0)
            },
            settings: settings.rawValue
        )
    }

    /// Returns the poll of a message with the setting that closes it, for an edit; nil if the
    /// message has no poll.
    func closing(_ message: SyncOracle.Message) -> NewAttach? {
        message.poll.map { poll($0.settings.union(.closed), answers: Int($0.answers)) }
    }

    /// Returns a step in which the user votes in a visible poll, usually one of the newest polls.
    func vote(_ index: Int) -> Step {
        let user = clients[index].user
        let asked = oracle.chats(of: user).flatMap { chat in
            chat.visible(to: user).filter { $0.poll != nil }.map { (chat.name, $0) }
        }
        let newest = asked.filter { name, message in
            oracle.chats[name]?.visible(to: user).last?.id == message.id
        }
        guard let (name, message) = random.any(of: random.chance(60) ? newest : asked),
            let poll = message.poll
        else { return anySend(index) }
        let most = poll.settings.contains(.multiple) ? 3 : 2
        let all = (1...poll.answers).shuffled(using: &random)
        let answers = Array(all.prefix(random.below(most)))
        let request = SendVoteRequest(
            chatID: name.wireID(for: user),
            messageID: message.id,
            pollID: poll.id,
            answersIDs: answers
        )
        return call(.sendVote(request), clients[index].requester()) { answer in
            let reply: SendVoteReply = try self.machine.reply(answer)
            self.oracle.change(name) { chat in
                chat.change(message.id) {
                    $0.poll?.votes[user] = answers.isEmpty ? nil : Set(answers)
                }
            }
            guard let now = self.oracle.chats[name]?.messages.first(where: { $0.id == message.id }),
                reply.state.total == SyncOracle.Votes(now.poll, for: user)?.total
            else { throw Divergence("the reply to a vote is \(reply.state)") }
        }
    }
}
