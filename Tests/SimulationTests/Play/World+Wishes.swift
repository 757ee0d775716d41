import GRDB
import TambourProtocol

@testable import TambourClient

/// Actions that people request on their devices.
extension World {
    /// Performs a move, if it makes sense now.
    func play(_ move: Move) {
        if Move.Kind.entities.contains(move.kind) { return entity(move) }
        if Move.Kind.photos.contains(move.kind) { return photo(move) }
        if Move.Kind.together.contains(move.kind) { return together(move) }
        if Move.Kind.comments.contains(move.kind) { return comment(move) }
        if Move.Kind.ownTogether.contains(move.kind) { return ownTogether(move) }
        let device = devices[move.a % devices.count]
        switch move.kind {
        case .send: send(on: device, to: chat(on: device, move.b))
        case .burst:
            let chat = chat(on: device, move.b)
            for _ in 0...(move.c % 8) { send(on: device, to: chat) }
        case .reply:
            let chat = chat(on: device, move.b)
            guard let row = row(on: device, in: chat, move.c) else { return }
            send(on: device, to: chat) { $0.replyTo = row.message?.rawValue }
        case .forward:
            let chat = chat(on: device, move.b)
            guard let row = row(on: device, in: chat, move.c), row.event == nil else { return }
            forward(row, of: chat, on: device, to: self.chat(on: device, move.c))
        case .edit:
            let chat = chat(on: device, move.b)
            guard let row = row(on: device, in: chat, move.c, isOwn: true), let id = row.message
            else {
                return
            }
            want(
                EditTask(chat: chat.rawValue, message: id.rawValue, text: "\(row.text)'"),
                on: device
            )
        case .delete, .deleteForMe:
            let chat = chat(on: device, move.b)
            let isForMe = move.kind == .deleteForMe
            guard let row = row(on: device, in: chat, move.c, isOwn: !isForMe), let id = row.message
            else { return }
            want(
                DeleteTask(chat: chat.rawValue, messages: [id.rawValue], isForMe: isForMe),
                on: device
            )
        case .editAndDelete: editAndDelete(move, on: device)
        case .react, .unreact: react(move, on: device)
        case .markRead, .markUnread:
            let chat = chat(on: device, move.b)
            guard let id = row(on: device, in: chat, move.c)?.message else { return }
            let isUnread = move.kind == .markUnread
            want(
                MarkTask(chat: chat.rawValue, message: id.rawValue, isUnread: isUnread),
                on: device
            )
        case .draft: draft(move, on: device)
        case .look, .scrollBack, .lookAway: look(move, on: device)
        case .cancel, .retry: changeOutgoing(move, on: device)
        case .contact, .profile: person(move, on: device)
        case .createChat, .title, .pin, .addMember, .removeMember, .leave, .hide, .mute, .favourite:
            changeChat(move, on: device)
        default: fault(move, device)
        }
    }

    func want(_ task: some ClientTask, on device: Device) {
        _ = device.wish { core, tx in try core.queue(task, tx) }
    }

    // MARK: - Choosing

    /// Returns a chat that a device knows, or a dialog that may not exist yet.
    func chat(on device: Device, _ number: Int) -> ChatID {
        let known = chats(on: device)
        let users = plan.devices.map(\.user).max() ?? 0
        let partner = Templates.shared.user(number % (users + 1))
        if known.isEmpty || number % 7 == 0 { return .dialog(device.me, partner) }
        return known[number % known.count]
    }

    func chats(on device: Device) -> [ChatID] {
        let ids = device.read { reader in
            try Int64.fetchAll(
                reader.store.db,
                sql: "SELECT id FROM chat WHERE status NOT IN ('REMOVED', 'LEFT') ORDER BY id"
            )
        }
        return (ids ?? []).map { ChatID($0) }
    }

    func groups(on device: Device) -> [ChatID] { chats(on: device).filter(\.isGroup) }

    func row(on device: Device, in chat: ChatID, _ number: Int, isOwn: Bool = false) -> HistoryRow?
    {
        let page = device.read { try $0.history(of: chat, .newest, count: 12) }
        let rows = (page?.rows ?? []).filter { row in
            row.message != nil && (!isOwn || row.isOwn && row.event == nil)
        }
        return rows.isEmpty ? nil : rows[number % rows.count]
    }

    // MARK: - Messages

    func send(
        on device: Device,
        to chat: ChatID,
        _ change: @escaping (inout SendTask) -> Void = { _ in }
    ) {
        guard let place = devices.firstIndex(where: { $0 === device }) else { return }
        let text = device.nextText()
        let made = device.wish { core, tx in
            var task = SendTask(chat: chat.rawValue, cid: core.nextClientID(), text: text)
            change(&task)
            return (task.cid, try core.queue(task, tx))
        }
        guard let (cid, task) = made else { return }
        sends.append(Sent(device: place, chat: chat, cid: cid, task: task, text: text))
    }

    private func forward(
        _ row: HistoryRow,
        of source: ChatID,
        on device: Device,
        to chat: ChatID
    ) {
        _ = device.wish { core, tx in
            try core.queue(
                SendTask(
                    chat: chat.rawValue,
                    cid: core.nextClientID(),
                    text: "",
                    forwardOf: row.message?.rawValue,
                    forwardFrom: source.rawValue
                ),
                tx
            )
        }
    }

    private func editAndDelete(_ move: Move, on device: Device) {
        let chat = chat(on: device, move.b)
        guard let row = row(on: device, in: chat, move.c, isOwn: true), let id = row.message else {
            return
        }
        for other in devices where other !== device { lookAtNewest(chat, on: other) }
        want(EditTask(chat: chat.rawValue, message: id.rawValue, text: "\(row.text)!"), on: device)
        loop.after(Int64(move.c % 40) * 1000) { [weak self] in
            self?.want(
                DeleteTask(chat: chat.rawValue, messages: [id.rawValue], isForMe: false),
                on: device
            )
        }
    }

    private func react(_ move: Move, on device: Device) {
        let chat = chat(on: device, move.b)
        guard let id = row(on: device, in: chat, move.c)?.message else { return }
        if move.kind == .react {
            let emoji = ["👍", "❤️", "🔥"][move.c % 3]
            want(ReactTask(chat: chat.rawValue, message: id.rawValue, emoji: emoji), on: device)
        } else {
            want(CancelReactionTask(chat: chat.rawValue, message: id.rawValue), on: device)
        }
    }

    private func draft(_ move: Move, on device: Device) {
        let chat = chat(on: device, move.b)
        let text = move.c % 3 == 0 ? "" : "draft \(move.c)"
        _ = device.wish { core, tx in
            let known = try tx.row("SELECT text FROM draft WHERE chat = ?", [chat.rawValue])
            if text.isEmpty {
                guard known != nil else { return }
                try core.queue(DiscardDraftTask(chat: chat.rawValue), tx)
            } else {
                try core.queue(SaveDraftTask(chat: chat.rawValue, text: text), tx)
            }
        }
    }

    private func changeOutgoing(_ move: Move, on device: Device) {
        let own = sends.indices.filter { devices[sends[$0].device] === device }
        guard !own.isEmpty else { return }
        let place = own[own.count - 1 - move.b % min(own.count, 6)]
        let task = sends[place].task
        let done: Void? = device.wish { core, tx in
            if move.kind == .cancel { try core.cancel(task, tx) } else { try core.retry(task, tx) }
        }
        guard done != nil else { return }
        if move.kind == .cancel {
            sends[place].isCancelled = true
        } else {
            sends[place].wasRetried = true
        }
    }

    // MARK: - Reading

    func lookAtNewest(_ chat: ChatID, on device: Device) {
        _ = device.wish { core, tx in
            try core.look(
                at: chat,
                position: nil,
                isGoingBack: true,
                rowsOnScreen: 5,
                visible: [],
                tx
            )
        }
    }

    private func look(_ move: Move, on device: Device) {
        let chat = chat(on: device, move.b)
        switch move.kind {
        case .look: lookAtNewest(chat, on: device)
        case .scrollBack:
            let page = device.read { try $0.history(of: chat, .newest, count: 10 + move.c % 30) }
            let shown = (page?.rows ?? []).compactMap(\.message)
            _ = device.wish { core, tx in
                try core.look(
                    at: chat,
                    position: shown.first,
                    isGoingBack: true,
                    rowsOnScreen: 5,
                    visible: shown,
                    tx
                )
            }
        default: _ = device.call { $0.lookAway(from: chat) }
        }
    }

    // MARK: - Chats and people

    private func person(_ move: Move, on device: Device) {
        let other = Templates.shared.user(move.b % Templates.users)
        if move.kind == .profile {
            return want(UpdateProfileTask(firstName: "Name \(move.c % 100)"), on: device)
        }
        guard other != device.me else { return }
        // Do not block anybody: the server would refuse most of the following moves.
        let action = ["ADD", "UPDATE", "REMOVE"][move.c % 3]
        let name = action == "REMOVE" ? nil : "Contact \(move.c % 100)"
        want(
            UpdateContactTask(user: other.rawValue, action: action, firstName: name),
            on: device
        )
    }

    private func changeChat(_ move: Move, on device: Device) {
        let users = (plan.devices.map(\.user).max() ?? 0) + 1
        if move.kind == .createChat {
            let members = (0..<users).map { Templates.shared.user($0) }.filter { $0 != device.me }
            let count = 1 + move.b % members.count
            _ = device.wish { core, tx in
                try core.queue(
                    CreateChatTask(
                        cid: core.nextClientID(),
                        title: "Group \(move.c)",
                        isChannel: move.c % 5 == 0,
                        members: members.prefix(count).map(\.rawValue)
                    ),
                    tx
                )
            }
            return
        }
        if move.kind == .hide || move.kind == .mute || move.kind == .favourite {
            let chat = chat(on: device, move.b).rawValue
            switch move.kind {
            case .hide: want(HideChatTask(chat: chat), on: device)
            case .mute:
                want(
                    ConfigureChatTask(chat: chat, mutedUntil: move.c % 2 == 0 ? -1 : 0),
                    on: device
                )
            default:
                want(ConfigureChatTask(chat: chat, favourite: Int64(move.c % 2)), on: device)
            }
            return
        }
        let groups = groups(on: device)
        guard !groups.isEmpty else { return }
        let chat = groups[move.b % groups.count]
        let user = Templates.shared.user(move.c % Templates.users).rawValue
        switch move.kind {
        case .title:
            want(UpdateChatTask(chat: chat.rawValue, title: "Title \(move.c % 1000)"), on: device)
        case .pin:
            let pinned = row(on: device, in: chat, move.c)?.message?.rawValue ?? 0
            want(UpdateChatTask(chat: chat.rawValue, pinned: pinned), on: device)
        case .addMember:
            var task = UpdateMembersTask(chat: chat.rawValue, users: [user], isRemoval: false)
            task.showsHistory = move.a % 3 != 0
            want(task, on: device)
        case .removeMember:
            want(UpdateMembersTask(chat: chat.rawValue, users: [user], isRemoval: true), on: device)
        case .leave: want(LeaveChatTask(chat: chat.rawValue), on: device)
        default: break
        }
    }
}
