import TambourProtocol
import TambourTesting

/// Messages that `CrashWriter` does not send, and what hangs on messages.
extension CrashRegister {
    static func messages(_ place: CrashPlace) -> [CrashRegister] {
        let (me, square) = (place.me, place.square)
        let (emojis, votes): ([Text], [[Int64]]) = (["👍", "❤️"], [[1], [2, 3], []])
        return [
            saved(place), scheduled(place), reported(place),
            CrashRegister("reaction", of: me) { step, _ in
                if step % 3 == 2 {
                    return CrashCommand(
                        MsgCancelReactionRequest(chatID: square.chat, messageID: square.post)
                    )
                }
                let reaction = NewReaction(reactionType: "EMOJI", id: emojis[step % 3])
                return CrashCommand(
                    MsgReactionRequest(
                        chatID: square.chat,
                        messageID: square.post,
                        reaction: reaction
                    )
                )
            } value: { step, _ in
                step % 3 == 2 ? "none" : "\(emojis[step % 3])"
            } read: {
                let request = MsgGetReactionsRequest(chatID: square.chat, messageIDs: [square.post])
                let infos = try $0.client.call(request).messagesReactions
                return infos[square.post]?.yourReaction.described ?? "none"
            },
            CrashRegister("vote", of: me) { step, _ in
                CrashCommand(
                    SendVoteRequest(
                        chatID: square.chat,
                        messageID: square.post,
                        pollID: square.poll,
                        answersIDs: votes[step % 3]
                    )
                )
            } value: { step, _ in
                ["1", "2+3", "none"][step % 3]
            } read: { view in
                let chosen = try (1...3).filter { answer in
                    let request = VotersListByAnswerRequest(
                        chatID: square.chat,
                        messageID: square.post,
                        pollID: square.poll,
                        answerID: Int64(answer),
                        count: 100
                    )
                    return try view.client.call(request).votes.contains { $0.userID == me }
                }
                return chosen.isEmpty ? "none" : chosen.map { "\($0)" }.joined(separator: "+")
            },
        ]
    }

    /// Saved messages: sent, deleted by time, hidden and cleared.
    private static func saved(_ place: CrashPlace) -> CrashRegister {
        let chat = ChatID(0)
        var sent: Int64 = 0
        return CrashRegister("saved", of: place.me, initial: "[]") { step, mark in
            switch step % 6 {
            case 1:
                return CrashCommand(
                    MsgDeleteRangeRequest(chatID: chat, startTime: sent, endTime: sent)
                )
            case 3: return CrashCommand(ChatHideRequest(chatID: chat))
            case 5: return CrashCommand(ChatClearRequest(chatID: chat, lastEventTime: .max))
            default:
                let request = MsgSendRequest.text(
                    mark(step),
                    chat,
                    cid: 2_000_000_000 + Int64(step)
                )
                return CrashCommand(request) { sent = $0.message.time }
            }
        } value: { step, mark in
            switch step % 6 {
            case 0, 2: "\([mark(step)])"
            case 3: "hidden \([mark(step - 1)])"
            case 4: "\([mark(step - 2), mark(step)])"
            default: "[]"
            }
        } read: {
            let texts = try $0.messages(of: chat).map { "\($0.text)" }
            let isHidden = try !texts.isEmpty && $0.chat(chat)?.status == .hidden
            return (isHidden ? "hidden " : "") + "\(texts)"
        }
    }

    private static func scheduled(_ place: CrashPlace) -> CrashRegister {
        let chat = place.yard.chat
        let later = DelayedAttributes(timeToFire: place.later)
        var id = MessageID(0)
        return CrashRegister("scheduled", of: place.me, initial: "[]") { step, mark in
            let text = Text(mark(step))
            switch step % 3 {
            case 0:
                let message = NewMessage(
                    cid: 3_000_000_000 + Int64(step),
                    text: text,
                    delayedAttributes: later
                )
                return CrashCommand(MsgSendRequest(chatID: chat, message: message)) {
                    id = $0.message.id
                }
            case 1:
                return CrashCommand(MsgEditRequest(chatID: chat, messageID: id, text: text))
            default:
                return CrashCommand(
                    MsgDeleteRequest(chatID: chat, messageIDs: [id], itemType: .delayed)
                )
            }
        } value: { step, mark in
            "\(step % 3 == 2 ? [] : [mark(step)])"
        } read: {
            "\(try $0.messages(of: chat, .delayed).map { "\($0.text)" })"
        }
    }

    /// Messages that are sent and then reported; the value is the number of reports.
    private static func reported(_ place: CrashPlace) -> CrashRegister {
        let (me, chat) = (place.me, place.yard.chat)
        var id = MessageID(0)
        return CrashRegister("reported", of: me, initial: "0") { step, mark in
            if step % 2 == 0 {
                let request = MsgSendRequest.text(
                    mark(step),
                    chat,
                    cid: 4_000_000_000 + Int64(step)
                )
                return CrashCommand(request) { id = $0.message.id }
            }
            return CrashCommand(ComplainRequest(ids: [id.rawValue], parentID: chat))
        } value: { step, _ in
            "\((step + 1) / 2)"
        } read: {
            "\($0.reports.count { $0.contains("by \(me) message ") })"
        }
    }
}
