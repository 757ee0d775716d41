import GRDB
import TambourProtocol

/// A group or channel to be made.
struct CreateChatTask: ClientTask {
    static let kind = "chat.create"

    let cid: Int64
    let title: String
    let isChannel: Bool
    let members: [Int64]

    var lane: String? { "create" }
    var staysWhenRefused: Bool { true }

    func request(_ tx: StoreTransaction) throws -> MsgSendRequest {
        let event = NewAttach(
            type: .control,
            title: Text(title),
            event: "new",
            chatType: isChannel ? "CHANNEL" : "CHAT",
            userIDs: members.map(UserID.init)
        )
        return MsgSendRequest(message: NewMessage(cid: cid, attaches: [event]))
    }

    func succeeded(_ reply: MsgSendReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learnSent(reply, tx)
    }
}

/// What a chat is called, says of itself, and has pinned.
struct UpdateChatTask: ClientTask {
    static let kind = "chat.update"

    let chat: Int64
    var title: String?
    var about: String?
    /// 0 takes the pinned message down.
    var pinned: Int64?

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }

    func request(_ tx: StoreTransaction) throws -> ChatUpdateRequest {
        ChatUpdateRequest(
            chatID: ChatID(chat),
            theme: title.map { Text($0) },
            description: about.map { Text($0) },
            pinMessageID: pinned.map(MessageID.init)
        )
    }

    func succeeded(_ reply: ChatUpdateReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learn(reply.chat, tx)
    }
}

/// Who is a member of a chat.
struct UpdateMembersTask: ClientTask {
    static let kind = "chat.members"

    let chat: Int64
    let users: [Int64]
    let isRemoval: Bool
    var showsHistory = true
    /// Their rights as administrators are changed, not whether they are members; bits of the table of roles.
    var permissions: Int64?

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }

    func request(_ tx: StoreTransaction) throws -> ChatMembersUpdateRequest {
        ChatMembersUpdateRequest(
            chatID: ChatID(chat),
            userIDs: users.map(UserID.init),
            operation: isRemoval ? .remove : .add,
            type: permissions == nil ? nil : .admin,
            showHistory: showsHistory,
            permissions: isRemoval ? nil : permissions
        )
    }

    func succeeded(
        _ reply: ChatMembersUpdateReply,
        in core: ClientCore,
        _ tx: StoreTransaction
    ) throws {
        try core.learn(reply.chat, tx)
    }
}

/// A group or channel that is left.
struct LeaveChatTask: ClientTask {
    static let kind = "chat.leave"

    let chat: Int64

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try showLeft(tx)
    }

    private func showLeft(_ tx: StoreTransaction) throws {
        try tx.execute("UPDATE chat SET status = 'LEFT' WHERE id = ?", [chat])
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> ChatLeaveRequest {
        ChatLeaveRequest(chatID: ChatID(chat))
    }

    func succeeded(_ reply: ChatLeaveReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // Somebody may have added the account again, and that was pushed before the answer.
        let asked = core.taskAsked.transactions
        guard core.isCurrent(.chat(ChatID(chat)), since: asked, tx) else {
            if try !tx.isChangingDraft(in: ChatID(chat)) { try tx.forgetDraft(of: ChatID(chat)) }
            // The news may be older than the leaving: the answer to the refresh decides.
            try showLeft(tx)
            return try core.refresh(ChatID(chat), tx)
        }
        try tx.removeChat(ChatID(chat))
        core.forgetHistory(of: ChatID(chat))
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.refresh(ChatID(chat), tx)
    }
}

/// A chat that is put away until something new is said in it.
struct HideChatTask: ClientTask {
    static let kind = "chat.hide"

    let chat: Int64

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.execute("UPDATE chat SET status = 'HIDDEN' WHERE id = ?", [chat])
        tx.changes.chats.insert(ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> ChatHideRequest {
        ChatHideRequest(chatID: ChatID(chat))
    }

    func succeeded(_ reply: ChatHideReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // Something may have been said just before it was put away, or just after.
        let isKnown = try tx.row("SELECT 1 FROM chat WHERE id = ?", [chat]) != nil
        if isKnown { try core.refresh(ChatID(chat), tx) }
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.refresh(ChatID(chat), tx)
    }
}

/// Whether a chat alerts, and whether it is kept at the top of the list.
struct ConfigureChatTask: ClientTask {
    static let kind = "chat.configure"

    let chat: Int64
    /// -1 for ever, 0 not, else Unix milliseconds.
    var mutedUntil: Int64?
    /// 0 is not at the top; the others are in the order of these numbers.
    var favourite: Int64?

    static let lane = "config"
    var lane: String? { Self.lane }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.applySettings(of: [ChatID(chat)])
    }

    func request(_ tx: StoreTransaction) throws -> ConfigRequest {
        var names: [(Text, AnyValue)] = []
        if let mutedUntil { names.append(("dontDisturbUntil", AnyValue(mutedUntil))) }
        if let favourite { names.append(("favIndex", AnyValue(favourite))) }
        let chats = IDMap<ChatID, NameMap<AnyValue>>([(ChatID(chat), NameMap(names))])
        return ConfigRequest(settings: SettingsChange(chats: chats))
    }

    func succeeded(_ reply: ConfigReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // The hash of what is held is not known until the next login names it.
        try tx.set(.configHash, nil)
        try core.learn(.settings(ChatID(chat)), tx) {
            if let settings = reply.chats { try tx.put(chatSettings: settings) }
        }
    }
}

extension StoreTransaction {
    /// Settings of chats that are changed here and that the server has not answered yet, oldest first.
    func settingsUnderWay() throws -> [ConfigureChatTask] {
        try rows(
            """
            SELECT * FROM task
            WHERE lane = ? AND state IN ('blocked', 'ready', 'waiting', 'running') ORDER BY place
            """,
            [ConfigureChatTask.lane]
        )
        .compactMap { TaskKinds.read(TaskRecord($0)) as? ConfigureChatTask }
    }
}

/// A contact to be added, renamed, removed, blocked or unblocked.
struct UpdateContactTask: ClientTask {
    static let kind = "contact.update"

    let user: Int64
    /// ADD, UPDATE, REMOVE, BLOCK or UNBLOCK.
    let action: String
    var firstName: String?
    var lastName: String?

    var lane: String? { "contact:\(user)" }

    func request(_ tx: StoreTransaction) throws -> ContactUpdateRequest {
        guard let action = ContactAction.named(action) else {
            throw ClientError.invalid(reason: "no such action: \(action)")
        }
        return ContactUpdateRequest(
            contactID: UserID(user),
            action: action,
            firstName: firstName.map { Text($0) },
            lastName: lastName.map { Text($0) }
        )
    }

    func succeeded(_ reply: ContactUpdateReply, in core: ClientCore, _ tx: StoreTransaction) throws
    {
        guard let contact = reply.contact else { return }
        // Blocking makes nobody a contact, and no contact a stranger.
        let isContact: Bool? =
            switch action {
            case "ADD", "UPDATE": true
            case "REMOVE": false
            default: nil
            }
        try core.learn(.person(UserID(user)), tx) {
            if isContact == false {
                // Who is no contact any more is older than the contact was, and replaces it all the same.
                try tx.execute("UPDATE person SET isStale = 1 WHERE id = ?", [user])
            }
            try tx.put(contact, isContact: isContact)
        }
    }
}

extension ContactAction {
    fileprivate static func named(_ name: String) -> ContactAction? {
        switch name {
        case "ADD": .add
        case "UPDATE": .update
        case "REMOVE": .remove
        case "BLOCK": .block
        case "UNBLOCK": .unblock
        default: nil
        }
    }
}

/// The account's own names and what it says of itself.
struct UpdateProfileTask: ClientTask {
    static let kind = "profile.update"

    var firstName: String?
    var lastName: String?
    var about: String?

    var lane: String? { "profile" }

    func request(_ tx: StoreTransaction) throws -> ProfileRequest {
        ProfileRequest(
            firstName: firstName.map { Text($0) },
            lastName: lastName.map { Text($0) },
            description: about.map { Text($0) }
        )
    }

    func succeeded(_ reply: ProfileReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learn(.person(reply.profile.contact.id), tx) {
            try tx.put(reply.profile.contact)
            tx.changes.account = true
        }
    }
}
