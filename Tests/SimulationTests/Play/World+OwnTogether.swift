import GRDB
import TambourProtocol

@testable import TambourClient

/// Simultaneous actions of two devices of one person.
extension World {
    func ownTogether(_ move: Move) {
        let device = devices[move.a % devices.count]
        switch move.kind {
        case .contactTogether: contact(move, on: device)
        case .profileTogether:
            behind(.profile, on: device) {
                .profile(ProfileRequest(firstName: Text("Behind \(move.c % 100)")))
            }
            want(UpdateProfileTask(firstName: "Name \(move.c % 100)"), on: device)
        case .draftTogether: draft(in: chat(on: device, move.b), move, on: device)
        default:
            let chat = chat(on: device, move.b)
            let isMuted = move.c % 2 == 0
            behind(.config, on: device) {
                let until = AnyValue(Int64(isMuted ? 0 : -1))
                let names = NameMap([(Text("dontDisturbUntil"), until)])
                return .config(
                    ConfigRequest(settings: SettingsChange(chats: IDMap([(chat, names)])))
                )
            }
            want(
                ConfigureChatTask(chat: chat.rawValue, mutedUntil: isMuted ? -1 : 0),
                on: device
            )
        }
    }

    private func contact(_ move: Move, on device: Device) {
        let user = Templates.shared.user(move.b % Templates.users)
        guard user != device.me else { return }
        let isRemoved = move.c % 2 == 0
        behind(.contactUpdate, on: device) {
            .contactUpdate(
                ContactUpdateRequest(
                    contactID: user,
                    action: isRemoved ? .add : .remove,
                    firstName: isRemoved ? Text("Behind \(move.c % 100)") : nil
                )
            )
        }
        let task = UpdateContactTask(
            user: user.rawValue,
            action: isRemoved ? "REMOVE" : "ADD",
            firstName: isRemoved ? nil : "Contact \(move.c % 100)"
        )
        want(task, on: device)
    }

    private func draft(in chat: ChatID, _ move: Move, on device: Device) {
        let isDiscarded = move.c % 3 == 0
        let isDiscardedBehind = move.c % 3 == 1
        behind(isDiscarded ? .draftDiscard : .draftSave, on: device) {
            if isDiscardedBehind {
                return .draftDiscard(DraftDiscardRequest(chatID: chat))
            }
            let draft = NewDraft(text: Text("behind \(move.c)"))
            return .draftSave(DraftSaveRequest(chatID: chat, draft: draft))
        }
        _ = device.wish { core, tx in
            if isDiscarded {
                try core.queue(DiscardDraftTask(chat: chat.rawValue), tx)
            } else {
                try core.queue(SaveDraftTask(chat: chat.rawValue, text: "draft \(move.c)"), tx)
            }
        }
    }

    private func behind(
        _ opcode: Opcode,
        on device: Device,
        _ request: @escaping () -> CommandRequest
    ) {
        behind(opcode) { $0.command(request(), by: device.user) }
    }
}
