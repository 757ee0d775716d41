import TambourProtocol
import TambourStore

/// Decides which polls are valid. Defines how edits and forwards change a poll.
enum PollRules {
    /// The settings that an edit may change without replacing the poll by a new one.
    private static let changeable: PollSettings = [.closed, .mayForward]

    /// Returns the stored form of a poll, and the part of the poll that only the server sees.
    ///
    /// - Parameters:
    ///   - path: the path of the poll in the request, for errors.
    ///   - id: the id for a new poll. If an edit keeps the poll, the poll keeps its id instead.
    ///   - old: the message that is edited; nil for a new message.
    /// - Throws: `proto.payload`, `error.message.invalid`.
    static func poll(
        _ asked: NewAttach,
        at path: String,
        id: @autoclosure () -> Int64,
        instead old: MessageRecord?
    ) throws -> (attach: Attach, mark: PollMark) {
        guard let title = asked.title, !title.isEmpty else {
            throw RequestError.protoPayload("\(path)/title: missing")
        }
        let answers = asked.answers ?? []
        guard answers.count >= 2 else {
            throw RequestError.protoPayload("\(path)/answers: fewer than two")
        }
        if let empty = answers.firstIndex(where: \.text.isEmpty) {
            throw RequestError.protoPayload("\(path)/answers/\(empty)/text: empty")
        }
        let settings = PollSettings(rawValue: asked.settings ?? 0).intersection(.all)
        let isQuiz = settings.contains(.quiz)
        guard !isQuiz || settings.isDisjoint(with: [.multiple, .mayRevote]) else {
            throw RequestError.errorMessageInvalid(
                "\(path)/settings: a quiz takes one answer for good"
            )
        }
        let right = answers.indices.filter { isQuiz && answers[$0].options & 1 == 1 }
        guard right.count < 2 else {
            throw RequestError.errorMessageInvalid("\(path)/answers: one of a quiz is right")
        }
        if let old, let mark = old.poll, let known = old.pollAttach, known.title == title,
            known.answers?.map(\.text) == answers.map(\.text),
            known.pollSettings.subtracting(changeable) == settings.subtracting(changeable)
        {
            return (try change(known, to: settings, mark, at: path), mark)
        }
        let mark = PollMark(right: right.first.map { Int64($0) + 1 })
        var attach = Attach(
            type: .poll,
            title: title,
            answers: answers.enumerated().map { index, answer in
                PollAnswer(text: answer.text, answerID: Int64(index) + 1)
            },
            settings: settings.rawValue,
            pollID: id(),
            version: 1,
            state: PollState(
                result: answers.indices.map { PollResult(answerID: Int64($0) + 1) }
            )
        )
        if settings.contains(.closed) { attach.reveal(mark) }
        return (attach, mark)
    }

    private static func change(
        _ known: Attach,
        to settings: PollSettings,
        _ mark: PollMark,
        at path: String
    ) throws -> Attach {
        let before = known.pollSettings
        guard settings.contains(.closed) || !before.contains(.closed) else {
            throw RequestError.errorMessageInvalid("\(path)/settings: a closed poll stays closed")
        }
        guard settings != before else { return known }
        var attach = known
        attach.settings = settings.rawValue
        attach.version = (known.version ?? 0) + 1
        if settings.contains(.closed) { attach.reveal(mark) }
        return attach
    }

    /// Returns a poll with the largest possible encoding. Every answer shows the maximum number of
    /// votes and the reader's own vote. Every number has its longest encoding.
    static func fullest(_ poll: Attach, limits: Limits) -> Attach {
        let vote = PollVote(userID: UserID(.max), timestamp: .max)
        var poll = poll
        poll.version = .max
        var state = poll.state ?? PollState()
        state.total = .max
        state.voterPreviewIDs = Array(repeating: UserID(.max), count: limits.pollVotersShown)
        state.result = state.result?.map { result in
            PollResult(
                answerID: result.answerID,
                voteCount: .max,
                votes: Array(repeating: vote, count: limits.maxPollVotesShown),
                rate: 100,
                options: 1
            )
        }
        poll.state = state
        return poll
    }

    /// Returns the message in the form that a forward contains. Its poll is closed and does not
    /// reveal the voters.
    ///
    /// - Throws: `not.allowed` for a poll that may not be forwarded.
    static func copy(of record: MessageRecord) throws -> MessageRecord {
        guard record.poll != nil, var attaches = record.attaches?.stored else { return record }
        for index in attaches.indices where attaches[index].type == .poll {
            let settings = attaches[index].pollSettings
            guard settings.contains(.mayForward) else { throw RequestError.notAllowed }
            attaches[index].settings = settings.union(.closed).rawValue
            var state = attaches[index].state ?? PollState()
            state.voterPreviewIDs = []
            state.result = state.result?.map { result in
                var result = result
                result.votes = []
                return result
            }
            attaches[index].state = state
        }
        var copy = record
        copy.attaches = Packed(attaches)
        return copy
    }

    /// Returns the poll of a message, if the poll has this id.
    static func poll(_ id: Int64, of record: MessageRecord) -> Attach? {
        guard let attach = record.pollAttach, attach.pollID == id else { return nil }
        return attach
    }
}
