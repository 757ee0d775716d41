public import TambourProtocol

/// A poll in a message, as this account sees it.
public struct Poll: Hashable, Sendable, Identifiable {
    public struct Answer: Hashable, Sendable, Identifiable {
        /// The number of the answer in the poll, from 1.
        public let id: Int64
        public let text: String
        /// The number of votes; 0 if this account may not see the votes.
        public let votes: Int
        /// Whether this account has voted for the answer.
        public let isChosen: Bool
    }

    public let id: Int64
    public let question: String
    public let answers: [Answer]
    /// The number of people who have voted.
    public let voters: Int
    public let isClosed: Bool
    /// Whether one person may choose several answers.
    public let allowsSeveral: Bool
    /// Whether the poll hides who voted for which answer.
    public let isAnonymous: Bool
    /// Whether votes may be changed and taken back.
    public let isChangeable: Bool

    public static let mostAnswers = Limits.standard.maxPollAnswers

    /// The bits of `settings` in the protocol.
    enum Setting {
        static let anonymous: Int64 = 1
        static let several: Int64 = 2
        static let changeable: Int64 = 4
        static let closed: Int64 = 8
    }

    /// - Returns: nil for an attachment that is not a poll.
    init?(_ attach: Attach, me: UserID) {
        guard attach.type == .poll, let id = attach.pollID else { return nil }
        self.id = id
        question = attach.title.map { "\($0)" } ?? ""
        let results = attach.state?.result ?? []
        answers = (attach.answers ?? []).map { answer in
            let result = results.first { $0.answerID == answer.answerID }
            return Answer(
                id: answer.answerID,
                text: "\(answer.text)",
                votes: Int(clamping: result?.voteCount ?? 0),
                isChosen: result?.votes.contains { $0.userID == me } == true
            )
        }
        voters = Int(clamping: attach.state?.total ?? 0)
        let settings = attach.settings ?? 0
        isAnonymous = settings & Setting.anonymous != 0
        allowsSeveral = settings & Setting.several != 0
        isChangeable = settings & Setting.changeable != 0
        isClosed = settings & Setting.closed != 0
    }
}

/// A poll to be sent.
public struct NewPoll: Hashable, Sendable, Codable {
    public var question: String
    /// At least two, at most `Poll.mostAnswers`.
    public var answers: [String]
    public var allowsSeveral: Bool
    public var isAnonymous: Bool

    public init(
        _ question: String,
        _ answers: [String],
        allowsSeveral: Bool = false,
        isAnonymous: Bool = false
    ) {
        self.question = question
        self.answers = answers
        self.allowsSeveral = allowsSeveral
        self.isAnonymous = isAnonymous
    }

    /// The poll as an attachment. Votes may be changed.
    var attach: NewAttach {
        var settings = Poll.Setting.changeable
        if allowsSeveral { settings |= Poll.Setting.several }
        if isAnonymous { settings |= Poll.Setting.anonymous }
        return NewAttach(
            type: .poll,
            title: Text(question),
            answers: answers.map { NewPollAnswer(text: Text($0)) },
            settings: settings
        )
    }

    /// The poll in words, shown until the server has stored the message.
    var text: String {
        (["[poll] \(question)"] + answers.map { "• \($0)" }).joined(separator: "\n")
    }
}

extension Client {
    /// Sends a poll.
    ///
    /// - Throws: `ClientError.invalid` for a poll without a question, with fewer than two answers,
    ///   or with too many answers.
    @discardableResult
    public func send(_ poll: NewPoll, to chat: ChatID) async throws(ClientError) -> OutgoingID {
        let texts = [poll.question] + poll.answers
        guard texts.allSatisfy({ !$0.allSatisfy(\.isWhitespace) }),
            (2...Poll.mostAnswers).contains(poll.answers.count)
        else {
            throw .invalid(
                reason: "a poll needs a question and 2 to \(Poll.mostAnswers) answers"
            )
        }
        return try await wish { core, tx in
            try tx.requireMembership(of: chat)
            try tx.requireNoComments(chat, "a comment cannot have a poll")
            var task = SendTask(chat: chat.rawValue, cid: core.nextClientID(), text: "")
            task.poll = poll
            return try core.queue(task, tx)
        }
    }

    /// Votes in a poll. The answers replace earlier answers; an empty list withdraws the vote.
    public func vote(
        for answers: [Int64],
        in poll: Int64,
        of message: MessageID,
        in chat: ChatID
    ) async throws(ClientError) {
        try await wish { core, tx in
            try core.queue(
                VoteTask(
                    chat: chat.rawValue,
                    message: message.rawValue,
                    pollID: poll,
                    answers: answers
                ),
                tx
            )
        }
    }
}

/// Votes in a poll.
struct VoteTask: ClientTask {
    static let kind = "poll.vote"

    let chat: Int64
    let message: Int64
    let pollID: Int64
    let answers: [Int64]

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }
    var coalescingKey: String? { "vote:\(message)" }

    func request(_ tx: StoreTransaction) throws -> SendVoteRequest {
        SendVoteRequest(
            chatID: ChatID(chat),
            messageID: MessageID(message),
            pollID: pollID,
            answersIDs: answers
        )
    }

    func succeeded(_ reply: SendVoteReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // The reply contains the votes but not the message's version, so request the changes.
        try tx.noteMissingChanges(of: ChatID(chat))
        try core.askChanges(of: ChatID(chat), tx)
    }
}
