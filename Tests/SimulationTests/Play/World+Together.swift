import TambourProtocol
import TambourTesting

@testable import TambourClient

/// Simultaneous actions of two users. The server may perform the two actions in one transaction. A
/// user may then receive the push about the other user's action before the reply to their own
/// request.
extension World {
    func together(_ move: Move) {
        let device = devices[move.a % devices.count]
        let chat = chat(on: device, move.b)
        if move.kind == .leaveTogether { return leave(chat, on: device) }
        let isEdit = move.kind == .editTogether
        guard let row = row(on: device, in: chat, move.c, isOwn: isEdit), let id = row.message
        else { return }
        let users = 1 + (plan.devices.map(\.user).max() ?? 0)
        let other = (device.user + 1 + move.c % (users - 1)) % users
        switch move.kind {
        case .reactTogether:
            reactBehind(.msgReaction, to: id, in: chat, by: other)
            want(ReactTask(chat: chat.rawValue, message: id.rawValue, emoji: "👍"), on: device)
        case .editTogether:
            if move.a >> 10 & 1 == 0 {
                behind(.msgEdit) { world in
                    let text = Text("\(row.text)''")
                    let request = MsgEditRequest(chatID: chat, messageID: id, text: text)
                    world.command(.msgEdit(request), by: device.user)
                }
            } else {
                reactBehind(.msgEdit, to: id, in: chat, by: other)
            }
            let task = EditTask(chat: chat.rawValue, message: id.rawValue, text: "\(row.text)'")
            want(task, on: device)
        default:
            let cid = Int64(truncatingIfNeeded: loop.random.next() >> 1)
            behind(.chatMark) { world in
                let message = NewMessage(cid: cid, text: "behind a mark")
                let request = MsgSendRequest(chatID: chat, message: message)
                world.command(.msgSend(request), by: other)
            }
            want(
                MarkTask(chat: chat.rawValue, message: id.rawValue, isUnread: false),
                on: device
            )
        }
    }

    private func reactBehind(
        _ opcode: Opcode,
        to message: MessageID,
        in chat: ChatID,
        by user: Int
    ) {
        behind(opcode) { world in
            let request = MsgReactionRequest(
                chatID: chat,
                messageID: message,
                reaction: NewReaction(id: "🔥")
            )
            world.command(.msgReaction(request), by: user)
        }
    }

    /// Lets a user leave a chat and be added again.
    private func leave(_ chat: ChatID, on device: Device) {
        guard let (owner, _) = owner(of: chat, on: device), owner != device.user else { return }
        behind(.chatLeave) { world in
            let request = ChatMembersUpdateRequest(
                chatID: chat,
                userIDs: [device.me],
                operation: .add,
                showHistory: true
            )
            world.command(.chatMembersUpdate(request), by: owner)
        }
        want(LeaveChatTask(chat: chat.rawValue), on: device)
    }

    func behind(_ opcode: Opcode, _ body: @escaping (World) -> Void) {
        behindNext[opcode, default: []].append { [weak self] in
            if let self { body(self) }
        }
    }
}
