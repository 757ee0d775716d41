package import TambourProtocol
import TambourSQL

enum PollChoiceColumn: Int, SQLColumn {
    case answer, voted
}

/// The columns of a vote, which the statement calls `p`. `$1` is the chat, `$2` is the message with
/// the poll, and `$3` is the answer.
enum PollVoteColumn: Int, SQLColumn {
    case userID, voted

    var sql: String {
        switch self {
        case .userID: "p.user_id"
        // The time comes from a subquery. If it were a plain column, SQLite would scan the votes
        // for all answers in the order of the primary key.
        case .voted:
            """
            (SELECT v.voted FROM poll_vote v
             WHERE v.chat = $1 AND v.message = $2 AND v.user_id = p.user_id AND v.answer = $3)
            """
        }
    }
}

/// The statements for poll votes. The poll itself is stored among the message's attachments, as it
/// is sent to clients, with its counts and some of its voters. A history page without polls
/// therefore needs no additional query.
struct PollStatements {
    let own: SQLQuery<PollChoiceColumn>
    let page: SQLQuery<PollVoteColumn>
    let voters: SQLQuery<UserIDColumn>
    let put: any SQLStatement
    let drop: any SQLStatement
    let dropAll: any SQLStatement
    let dropUpTo: any SQLStatement
    let setState: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let message = "chat = $1 AND message = $2"
        own = try sql.query(
            """
            SELECT \(PollChoiceColumn.list) FROM poll_vote WHERE \(message) AND user_id = $3
            ORDER BY answer
            """
        )
        page = try sql.query(
            """
            SELECT \(PollVoteColumn.list)
            FROM poll_vote p
            WHERE p.chat = $1 AND p.message = $2 AND p.answer = $3 AND p.user_id > $4
            ORDER BY p.user_id LIMIT $5
            """
        )
        voters = try sql.query(
            """
            SELECT DISTINCT \(UserIDColumn.list) FROM poll_vote WHERE \(message)
            ORDER BY user_id LIMIT $3
            """
        )
        put = try sql.prepare(
            """
            INSERT INTO poll_vote (chat, message, user_id, answer, voted)
            VALUES ($1, $2, $3, $4, $5)
            """
        )
        drop = try sql.prepare(
            "DELETE FROM poll_vote WHERE \(message) AND user_id = $3 AND answer = $4"
        )
        dropUpTo = try sql.prepare("DELETE FROM poll_vote WHERE chat = $1 AND message <= $2")
        dropAll = try sql.prepare("DELETE FROM poll_vote WHERE \(message)")
        setState = try sql.prepare(
            """
            UPDATE message SET attaches = $3, changed = $4, updated = $5
            WHERE chat = $1 AND id = $2
            """
        )
    }
}

/// The secret data of a message's poll, which the column `poll` contains. The attachments contain
/// the public data.
package struct PollMark: Hashable, Sendable {
    /// Bit 0 is always set, and bit n is set if answer n is right. The column contains 0 if there
    /// is no poll.
    package let rawValue: Int64

    init?(rawValue: Int64) {
        guard rawValue != 0 else { return nil }
        self.rawValue = rawValue
    }

    /// - Parameter right: the right answer of a quiz, from 1 to 62; nil for a poll that is not a
    ///   quiz.
    package init(right: Int64?) {
        rawValue = 1 | (right.map { 1 << $0 } ?? 0)
    }

    package func isRight(_ answer: Int64) -> Bool {
        (1...62).contains(answer) && rawValue >> answer & 1 == 1
    }
}

/// The options of a poll. The reference protocol assigns the bits.
package struct PollSettings: OptionSet, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    package static let anonymous = Self(rawValue: 1)
    package static let multiple = Self(rawValue: 2)
    package static let mayRevote = Self(rawValue: 4)
    package static let closed = Self(rawValue: 8)
    package static let quiz = Self(rawValue: 16)
    package static let mayForward = Self(rawValue: 32)
    package static let all = Self(rawValue: 63)
}

/// An answer that a user has chosen, and the time of this vote in Unix milliseconds.
package struct PollChoice: Hashable, Sendable {
    package let answer: Int64
    package let voted: Int64
}

extension Attach {
    package var pollSettings: PollSettings { PollSettings(rawValue: settings ?? 0) }

    /// Marks the right answers.
    package mutating func reveal(_ mark: PollMark) {
        for index in (state?.result ?? []).indices {
            guard let answer = state?.result?[index].answerID, mark.isRight(answer) else {
                continue
            }
            state?.result?[index].options = 1
        }
    }

    /// Adds the user to the voters of the answers that the user chose.
    fileprivate mutating func show(_ choices: [PollChoice], of user: UserID) {
        for choice in choices {
            let place = state?.result?.firstIndex { $0.answerID == choice.answer }
            guard let place, let votes = state?.result?[place].votes,
                !votes.contains(where: { $0.userID == user })
            else { continue }
            state?.result?[place].votes.append(
                PollVote(userID: user, timestamp: choice.voted)
            )
        }
    }
}

extension MessageRecord {
    /// The attachment with the poll, as all members receive it.
    package var pollAttach: Attach? {
        guard poll != nil else { return nil }
        return attaches?.stored?.first { $0.type == .poll }
    }

    /// Replaces the attachment with the poll.
    fileprivate mutating func setPoll(_ attach: Attach) {
        guard var list = attaches?.stored, let place = list.firstIndex(where: { $0.type == .poll })
        else { return }
        list[place] = attach
        attaches = Packed(list)
    }
}

extension ReadTransaction {
    /// Returns the answers that `user` chose in the poll of a message, in the order of the answers.
    package func choices(of user: UserID, in record: MessageRecord) throws -> [PollChoice] {
        guard record.poll != nil else { return [] }
        return try store.polls.own.all {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bind(3, user.rawValue)
        } read: {
            PollChoice(answer: $0.int(.answer), voted: $0.int(.voted))
        }
    }

    /// Returns a page of the users who chose an answer, in the order of their ids.
    ///
    /// - Returns: the votes, and the start of the next page; nil if there is no next page.
    package func votes(
        for answer: Int64,
        in record: MessageRecord,
        after marker: UserID,
        limit: Int
    ) throws -> (votes: [PollVote], next: UserID?) {
        var votes: [PollVote] = []
        var next: UserID?
        try store.polls.page.each {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bind(3, answer)
            $0.bind(4, marker.rawValue)
            $0.bind(5, Int64(limit) + 1)
        } while: { row in
            if votes.count == limit {
                next = votes.last?.userID
                return false
            }
            let user = UserID(row.int(.userID))
            votes.append(PollVote(userID: user, timestamp: row.int(.voted)))
            return true
        }
        return (votes, next)
    }

    /// Returns at most `limit` voters, in the order of their ids.
    fileprivate func voters(in record: MessageRecord, limit: Int) throws -> [UserID] {
        try store.polls.voters.all {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bind(3, Int64(limit))
        } read: {
            UserID($0.int(.userID))
        }
    }

    /// Returns the message as `viewer` may see it. If the viewer has voted in the poll, the
    /// returned message contains the viewer's votes and the right answer. Otherwise it is
    /// unchanged.
    package func record(_ record: MessageRecord, seenBy viewer: UserID?) throws -> MessageRecord {
        guard let mark = record.poll, let viewer else { return record }
        let choices = try choices(of: viewer, in: record)
        guard !choices.isEmpty, var attach = record.pollAttach else { return record }
        attach.show(choices, of: viewer)
        attach.reveal(mark)
        var seen = record
        seen.setPoll(attach)
        return seen
    }
}

extension WriteTransaction {
    /// Returns a new poll id. No earlier poll has this id.
    package func newPollID() -> Int64 {
        counter &+= 1
        return MessageID(timeMs: ct, counter: counter).rawValue
    }

    /// Sets the answers of `user` in the poll of a message. An empty list withdraws the vote.
    ///
    /// - Parameters:
    ///   - answers: the chosen answers of the poll, without duplicates.
    ///   - before: the user's previous answers.
    /// - Returns: the updated row.
    package func setChoices(
        _ answers: [Int64],
        insteadOf before: [PollChoice],
        of user: UserID,
        in record: MessageRecord,
        of chat: ChatState
    ) throws -> MessageRecord {
        guard var attach = record.pollAttach, var state = attach.state else { return record }
        writes += 1
        let old = before.map(\.answer)
        let added = answers.filter { !old.contains($0) }
        let dropped = old.filter { !answers.contains($0) }
        for answer in dropped { try write(store.polls.drop, answer, user, record) }
        for answer in added {
            store.polls.put.bind(5, ct)
            try write(store.polls.put, answer, user, record)
        }

        state.total += (answers.isEmpty ? 0 : 1) - (old.isEmpty ? 0 : 1)
        // A poll in a channel is treated as anonymous, because a channel does not reveal its
        // readers.
        let isAnonymous = attach.pollSettings.contains(.anonymous) || chat.kind == .channel
        var results = state.result ?? []
        for index in results.indices {
            let answer = results[index].answerID
            results[index].voteCount += added.contains(answer) ? 1 : 0
            results[index].voteCount -= dropped.contains(answer) ? 1 : 0
            results[index].rate = Self.rate(results[index].voteCount, of: state.total)
            guard !isAnonymous, added.contains(answer) || dropped.contains(answer) else { continue }
            results[index].votes = try reader.votes(
                for: answer,
                in: record,
                after: UserID(0),
                limit: min(store.limits.pollVotesShown, store.limits.maxPollVotesShown - 1)
            ).votes
        }
        state.result = results
        if !isAnonymous {
            state.voterPreviewIDs = try reader.voters(
                in: record,
                limit: store.limits.pollVotersShown
            )
        }
        attach.state = state
        attach.version = (attach.version ?? 0) + 1
        var changed = record
        changed.setPoll(attach)
        changed.updated = nextUpdate(of: record)
        try store.polls.setState.run {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bindBlob(3, changed.attaches?.bytes)
            $0.bind(4, ct)
            $0.bind(5, changed.updated)
        }
        touch(chat)
        return changed
    }

    private func write(
        _ statement: any SQLStatement,
        _ answer: Int64,
        _ user: UserID,
        _ record: MessageRecord
    ) throws {
        statement.bind(1, record.chat.rawValue)
        statement.bind(2, record.id.rawValue)
        statement.bind(3, user.rawValue)
        statement.bind(4, answer)
        try statement.run()
    }

    /// Returns a percentage, rounded to the nearest integer.
    private static func rate(_ count: Int64, of total: Int64) -> Int64 {
        total == 0 ? 0 : (count * 100 + total / 2) / total
    }

    /// Deletes the votes in the poll of a message. The message has been deleted, or its poll has
    /// been replaced.
    func dropVotes(in id: MessageID, of chat: ChatKey) throws {
        try store.polls.dropAll.run {
            $0.bind(1, chat.rawValue)
            $0.bind(2, id.rawValue)
        }
    }
}
