import Foundation
import TambourProtocol
import TambourTesting

extension CommandPlay {
    /// Plays MSG_SEND, MSG_EDIT, MSG_DELETE, MSG_DELETE_RANGE, MSG_DELETE_USER_COMMENTS, SEND_VOTE,
    /// MSG_REACTION and MSG_CANCEL_REACTION.
    static let messages: [Maker] = [
        sending, polls, scheduling, editing, deleting, deletingRanges, commenting,
        voting, reacting,
    ]

    private static let sending: Maker = { player, mark in
        let chat = try player.group()
        return CommandPlay(
            "messages",
            mark,
            change: { mark.message($0, to: chat) },
            read: { try mark.numbers(in: chat, $0.own) },
            after: growing
        )
    }

    private static let polls: Maker = { player, mark in
        let chat = try player.group()
        return CommandPlay(
            "polls",
            mark,
            change: { number in
                let message = NewMessage(
                    cid: mark.cid(number),
                    attaches: [poll(mark.text(number), answers: 2)]
                )
                return ChangeRequest(MsgSendRequest(chatID: chat, message: message))
            },
            read: { try mark.numbers(in: chat, $0.own) },
            after: growing
        )
    }

    private static func poll(_ title: Text, answers: Int) -> NewAttach {
        NewAttach(
            type: .poll,
            title: title,
            answers: (1...answers).map { NewPollAnswer(text: Text("\($0)")) },
            // Permits changing votes.
            settings: 4
        )
    }

    /// Schedules a message with one change, and cancels this message with the next change.
    private static let scheduling: Maker = { player, mark in
        let chat = try player.group()
        let time = Int64(Date().timeIntervalSince1970 * 1_000) + 30 * 86_400_000
        var last = MessageID(0)
        return CommandPlay(
            "scheduled messages",
            mark,
            change: { number in
                guard number % 2 == 1 else {
                    let request = MsgDeleteRequest(
                        chatID: chat,
                        messageIDs: [last],
                        itemType: .delayed
                    )
                    return ChangeRequest(request)
                }
                let message = NewMessage(
                    cid: mark.cid(number),
                    text: mark.text(number),
                    delayedAttributes: DelayedAttributes(timeToFire: time)
                )
                return ChangeRequest(MsgSendRequest(chatID: chat, message: message))
            },
            learn: { number, payload in
                guard number % 2 == 1 else { return }
                last = try MsgSendReply.decode(payload, limits: .standard).message.id
            },
            read: { try mark.numbers(in: chat, $0.own, .delayed) },
            after: { $0 % 2 == 1 ? [$0] : [] }
        )
    }

    private static let editing: Maker = { player, mark in
        let chat = try player.group()
        let message = try player.messages(1, in: chat, by: player.own)[0]
        return CommandPlay(
            "edits",
            mark,
            change: {
                ChangeRequest(
                    MsgEditRequest(chatID: chat, messageID: message, text: mark.text($0))
                )
            },
            read: { try mark.numbers(in: chat, $0.own) },
            after: { $0 == 0 ? [] : [$0] }
        )
    }

    /// Deletes each message it sends, every second one only for the user.
    private static let deleting: Maker = { player, mark in
        let chat = try player.group()
        var last = MessageID(0)
        return CommandPlay(
            "deletions",
            mark,
            change: { number in
                guard number % 2 == 0 else { return mark.message(number, to: chat) }
                return ChangeRequest(
                    MsgDeleteRequest(chatID: chat, messageIDs: [last], forMe: number % 4 == 0)
                )
            },
            learn: { number, payload in
                guard number % 2 == 1 else { return }
                last = try MsgSendReply.decode(payload, limits: .standard).message.id
            },
            read: { try mark.numbers(in: chat, $0.own) },
            after: { $0 % 2 == 1 ? [$0] : [] }
        )
    }

    private static let deletingRanges: Maker = { player, mark in
        let chat = try player.group()
        var times: [Int: Int64] = [:]
        return CommandPlay(
            "deleted ranges",
            mark,
            change: { number in
                guard number % 3 == 0 else { return mark.message(number, to: chat) }
                return ChangeRequest(
                    MsgDeleteRangeRequest(
                        chatID: chat,
                        startTime: times[1] ?? 0,
                        endTime: times[2] ?? 0
                    )
                )
            },
            learn: { number, payload in
                guard number % 3 != 0 else { return }
                times[number % 3] = try MsgSendReply.decode(payload, limits: .standard).message.time
            },
            read: { try mark.numbers(in: chat, $0.own) },
            after: { [[], [$0], [$0 - 1, $0]][$0 % 3] }
        )
    }

    /// Writes comments; every third change deletes them.
    private static let commenting: Maker = { player, mark in
        let chat = try player.own.channel("News", with: [player.other], cid: player.nextCID())
        let post = try player.messages(1, in: chat, by: player.own)[0]
        return CommandPlay(
            "comments",
            mark,
            change: { number in
                guard number % 3 == 0 else {
                    let message = NewMessage(cid: mark.cid(number), text: mark.text(number))
                    return ChangeRequest(
                        MsgSendRequest(chatID: chat, postID: post, message: message)
                    )
                }
                return ChangeRequest(
                    MsgDeleteUserCommentsRequest(
                        chatID: chat,
                        postID: post,
                        userID: player.own.userID
                    )
                )
            },
            read: { player in
                let request = ChatHistoryRequest(
                    chatID: chat,
                    from: -1,
                    backward: 200,
                    postID: post
                )
                let comments = try player.own.call(request).messages ?? []
                return comments.flatMap { mark.numbers(in: "\($0.text)") }
            },
            after: { [[], [$0], [$0 - 1, $0]][$0 % 3] }
        )
    }

    private static let voting: Maker = { player, mark in
        let chat = try player.group()
        let attach = poll("Which?", answers: 12)
        let message = try player.own.call(
            MsgSendRequest(
                chatID: chat,
                message: NewMessage(cid: player.nextCID(), attaches: [attach])
            )
        ).message
        let poll = try message.attaches.value(limits: .standard).first?.pollID ?? 0
        let reference = PollReference(messageID: message.id, pollID: poll)
        return CommandPlay(
            "votes",
            mark,
            change: {
                ChangeRequest(
                    SendVoteRequest(
                        chatID: chat,
                        messageID: message.id,
                        pollID: poll,
                        answersIDs: [Int64($0 % 12 + 1)]
                    )
                )
            },
            read: { player in
                let request = GetPollUpdatesRequest(chatID: chat, polls: [reference])
                let state = try player.own.call(request).polls.first?.state
                return (state?.result ?? []).filter { $0.voteCount > 0 }.map { Int($0.answerID) }
            },
            after: { $0 == 0 ? [] : [$0 % 12 + 1] }
        )
    }

    /// Adds reactions; every third change removes the reaction.
    private static let reacting: Maker = { player, mark in
        let chat = try player.group()
        let message = try player.messages(1, in: chat, by: player.other)[0]
        let emojis: [Text] = ["👍", "🔥", "❤️", "😂", "🎉"]
        return CommandPlay(
            "reactions",
            mark,
            change: { number in
                guard number % 3 > 0 else {
                    return ChangeRequest(
                        MsgCancelReactionRequest(chatID: chat, messageID: message)
                    )
                }
                let reaction = NewReaction(id: emojis[number % 5])
                return ChangeRequest(
                    MsgReactionRequest(chatID: chat, messageID: message, reaction: reaction)
                )
            },
            read: { player in
                let request = MsgGetReactionsRequest(chatID: chat, messageIDs: [message])
                let found = try player.own.call(request).messagesReactions[message]
                return (found?.counters ?? []).map { counter in
                    counter.count == 1 ? emojis.firstIndex(of: counter.reaction) ?? -1 : -1
                }
            },
            after: { $0 % 3 == 0 ? [] : [$0 % 5] }
        )
    }
}
