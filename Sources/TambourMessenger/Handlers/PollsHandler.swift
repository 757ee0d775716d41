import TambourProtocol
import TambourStore

/// Family `polls`: votes and the results of polls. Wire: protocol-spec/opcodes/polls.yaml
struct PollsHandler: Sendable {
    let limits: Limits

    /// Answers `SEND_VOTE` (304): replaces the caller's answers. An empty list withdraws the vote.
    ///
    /// - Throws: `chat.not.found`. Throws `not.found` for an unknown poll or answer. Throws
    ///   `not.allowed` for a closed poll, and in a dialog with a user whom the caller has blocked.
    ///   Throws it also for a second answer or a second vote, if the poll allows only one.
    /// - Note: A command.
    func sendVote(
        _ request: SendVoteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> SendVoteReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        try ChatRules.require(.react, of: caller.userID, in: chat, tx)
        try ChatRules.requireOpen(chat, for: caller.userID)
        let answers = Set(request.answersIDs).sorted()
        guard let record = try tx.message(request.messageID, in: chat, visibleTo: caller.userID),
            let poll = PollRules.poll(request.pollID, of: record),
            answers.allSatisfy({ answer in
                poll.answers?.contains { $0.answerID == answer } == true
            })
        else { throw RequestError.notFound }
        let before = try tx.reader.choices(of: caller.userID, in: record)
        guard answers != before.map(\.answer) else {
            return SendVoteReply(state: try state(of: record, for: caller, tx))
        }
        let settings = poll.pollSettings
        guard !settings.contains(.closed), before.isEmpty || settings.contains(.mayRevote),
            answers.count < 2 || settings.contains(.multiple)
        else { throw RequestError.notAllowed }
        let changed = try tx.setChoices(
            answers,
            insteadOf: before,
            of: caller.userID,
            in: record,
            of: chat
        )
        try tell(changed, in: chat, caller, tx)
        return SendVoteReply(state: try state(of: changed, for: caller, tx))
    }

    private func state(
        of record: MessageRecord,
        for caller: Caller,
        _ tx: WriteTransaction
    ) throws -> PollState {
        let seen = try tx.reader.record(record, seenBy: caller.userID)
        return seen.pollAttach?.state ?? PollState()
    }

    /// Pushes a vote. Other users receive the public state of the poll. The caller's devices also
    /// receive the caller's own vote.
    private func tell(
        _ record: MessageRecord,
        in chat: ChatState,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) throws {
        try tx.tellPoll(of: record, in: chat, but: caller.userID)
        try tx.tellPoll(
            of: record,
            in: chat,
            seenBy: caller.userID,
            to: [caller.userID],
            except: caller.connectionID
        )
    }

    // MARK: - Reading

    /// Answers `VOTERS_LIST_BY_ANSWER` (305): returns a page of the users who chose an answer, in
    /// the order of their ids.
    ///
    /// - Throws: `chat.not.found`, `not.found`, `not.allowed` for an anonymous poll.
    /// - Note: A query.
    func votersListByAnswer(
        _ request: VotersListByAnswerRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> VotersListByAnswerReply {
        let view = try snapshot.knownView(request.chatID, of: caller.userID)
        try ChatRules.require(.seeReactions, of: view)
        guard let record = try visible(request.messageID, in: view, snapshot),
            let poll = PollRules.poll(request.pollID, of: record),
            poll.answers?.contains(where: { $0.answerID == request.answerID }) == true
        else { throw RequestError.notFound }
        guard !poll.pollSettings.contains(.anonymous) else { throw RequestError.notAllowed }
        let asked = request.count ?? Int64(limits.votersPageSize)
        let page = try snapshot.votes(
            for: request.answerID,
            in: record,
            after: UserID(request.marker ?? 0),
            limit: Int(clamping: min(max(1, asked), Int64(limits.maxVotersPage)))
        )
        return VotersListByAnswerReply(votes: page.votes, marker: page.next?.rawValue)
    }

    /// Answers `GET_POLL_UPDATES` (306): returns the state of the requested polls. Omits polls that
    /// the caller does not see, and polls that do not fit the reply.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func getPollUpdates(
        _ request: GetPollUpdatesRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> GetPollUpdatesReply {
        let view = try snapshot.knownView(request.chatID, of: caller.userID)
        var seen: Set<PollReference> = []
        var polls: [Attach] = []
        var budget = caller.replyBudget
        for reference in request.polls where seen.insert(reference).inserted {
            guard let record = try visible(reference.messageID, in: view, snapshot),
                PollRules.poll(reference.pollID, of: record) != nil,
                let poll = try snapshot.record(record, seenBy: caller.userID).pollAttach
            else { continue }
            budget -= Packed(poll).bytes.count
            if budget < 0, !polls.isEmpty { break }
            polls.append(poll)
        }
        return GetPollUpdatesReply(polls: polls)
    }

    private func visible(
        _ id: MessageID,
        in view: ChatView,
        _ snapshot: ReadTransaction
    ) throws -> MessageRecord? {
        try snapshot.visibleRecord(id, in: view.key, for: view.viewer, above: view.floor)
    }
}
