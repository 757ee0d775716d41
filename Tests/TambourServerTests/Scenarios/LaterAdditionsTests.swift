import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

/// The server never drops a part of an accepted message, whatever other users add to the message.
@Suite("What comes to a message that is as large as is taken")
struct LaterAdditionsTests {
    /// The ways in which an existing message can grow.
    enum Addition: CaseIterable {
        case votes, ownVote, reactions, pin, answer, end
    }

    private static let shares: [NewAttach] = (1...11).map { _ in
        let title = Text(String(repeating: "t", count: 200))
        return NewAttach(type: .share, url: "https://example.org/", title: title)
    }

    private static func elements(_ count: Int, last: Int) -> [Element] {
        let attributes = AnyValue(Text(String(repeating: "u", count: 100)))
        return (0..<count).map { index in
            let type = String(repeating: "T", count: index == 0 ? last : 300)
            return Element(type: Text(type), from: 0, length: 1, attributes: attributes)
        }
    }

    /// Sends the largest message with these attachments that the server accepts.
    private func sendLargest(
        _ attaches: [NewAttach],
        to chat: ChatID,
        by client: WireClient
    ) throws -> Message {
        var cid: Int64 = 100
        func send(_ count: Int, _ last: Int) throws -> Message? {
            cid += 1
            let message = NewMessage(
                cid: cid,
                text: "x",
                elements: Self.elements(count, last: last),
                attaches: attaches
            )
            do {
                return try client.call(MsgSendRequest(chatID: chat, message: message)).message
            } catch WireClient.Failure.refused(let error) {
                try #require(error.code == .protoPayload)
                return nil
            }
        }
        /// Returns the largest number in the range for which `take` returns true.
        func largest(_ range: Range<Int>, _ take: (Int) throws -> Bool) rethrows -> Int {
            var (low, high) = (range.lowerBound, range.upperBound)
            while high - low > 1 {
                let middle = (low + high) / 2
                if try take(middle) { low = middle } else { high = middle }
            }
            return low
        }
        let count = try largest(1..<200) { try send($0, 0) != nil }
        let last = try largest(0..<512) { try send(count, $0) != nil }
        return try #require(try send(count, last))
    }

    @Test(
        "takes nothing away from it, for anybody",
        arguments: Addition.allCases,
        [5, Limits.standard.maxPollVotesShown]
    )
    func whole(addition: Addition, shown: Int) throws {
        let limits = ["pollVotesShown": shown, "maxSoftErrors": 1_000]
        try withServer(limits: limits) { server in
            let alice = try server.signUp("Alice")
            let others = try (0..<shown + 2).map { try server.signUp("Voter \($0)") }
            let group = try alice.createGroup("Group", with: others, cid: 1)
            let poll = NewAttach.poll(answers: 12, settings: [.multiple, .mayRevote])
            let sent = try sendLargest([poll] + Self.shares, to: group, by: alice)
            let answers = Array(Int64(1)...12)
            let id = try #require(sent.attaches.stored?.first?.pollID)
            let vote = SendVoteRequest(
                chatID: group,
                messageID: sent.id,
                pollID: id,
                answersIDs: answers
            )
            switch addition {
            case .votes: for voter in others { try voter.call(vote) }
            case .ownVote:
                for voter in others.dropLast() { try voter.call(vote) }
                try alice.call(vote)
            case .reactions:
                for (voter, emoji) in zip(others, ["👍", "❤️", "🔥", "😂", "😮", "😢", "🎉"]) {
                    let reaction = NewReaction(id: Text(emoji))
                    try voter.call(
                        MsgReactionRequest(chatID: group, messageID: sent.id, reaction: reaction)
                    )
                }
            case .pin:
                try alice.call(ChatUpdateRequest(chatID: group, pinMessageID: sent.id))
            case .answer:
                let link = NewLink(type: .reply, messageID: sent.id)
                let message = NewMessage(cid: 2, text: "y", link: link)
                try others[0].call(MsgSendRequest(chatID: group, message: message))
            case .end:
                for voter in others { try voter.call(vote) }
                let closed = NewAttach.poll(
                    answers: 12,
                    settings: [.multiple, .mayRevote, .closed]
                )
                try alice.call(
                    MsgEditRequest(
                        chatID: group,
                        messageID: sent.id,
                        attachments: [closed] + Self.shares
                    )
                )
            }
            for reader in [alice, others[0], try #require(others.last)] {
                let one = MsgGetRequest(chatID: group, messageIDs: [sent.id])
                for seen in try reader.call(one).messages + (reader.history(group).messages ?? [])
                where seen.id == sent.id { expectWhole(seen, sent) }
                let pinned = try reader.chat(group)?.pinnedMessage
                #expect((pinned != nil) == (addition == .pin))
                if let pinned { expectWhole(pinned, sent) }
                let answered = try reader.history(group).messages?.compactMap(\.link).last
                #expect((answered != nil) == (addition == .answer))
                if let link = answered?.stored { expectWhole(link.message, sent) }
                // The server may have sent pushes in the meantime. They must also contain the whole
                // message.
                for push in try reader.takePushes() where push.opcode == .notifMessage {
                    let told = try push.decode(as: NotifMessage.self).message
                    if told.id == sent.id { expectWhole(told, sent) }
                }
            }
        }
    }

    private func expectWhole(
        _ seen: Message,
        _ sent: Message,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(seen.elements == sent.elements, sourceLocation: sourceLocation)
        let kinds = seen.attaches.stored?.map(\.type)
        #expect(kinds == sent.attaches.stored?.map(\.type), sourceLocation: sourceLocation)
        #expect(
            Packed(seen).bytes.count <= Limits.standard.maxMessageBytes,
            sourceLocation: sourceLocation
        )
    }

    @Test("a poll never shows more than was counted for it")
    func fullest() throws {
        let all = (1...Limits.standard.maxPollVotesShown).map {
            PollVote(userID: UserID(.max - Int64($0)), timestamp: .max)
        }
        let attach = NewAttach.poll(answers: 12, settings: .all.subtracting(.quiz))
        let (poll, _) = try PollRules.poll(attach, at: "", id: .max, instead: nil)
        let most = Packed(PollRules.fullest(poll, limits: .standard)).bytes.count
        var full = poll
        full.version = .max
        full.state?.total = .max
        full.state?.voterPreviewIDs = all.prefix(Limits.standard.pollVotersShown).map(\.userID)
        full.state?.result = poll.state?.result?.map {
            PollResult(answerID: $0.answerID, voteCount: .max, votes: all, rate: 100, options: 1)
        }
        #expect(Packed(full).bytes.count <= most)
    }
}
