import TambourProtocol

/// Creates a group or channel.
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

/// Changes a chat's title, description or pinned message.
struct UpdateChatTask: ClientTask {
    static let kind = "chat.update"

    let chat: Int64
    var title: String?
    var about: String?
    /// The message to pin; 0 unpins the pinned message.
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

/// Adds members to a chat, removes them, or changes their rights.
struct UpdateMembersTask: ClientTask {
    static let kind = "chat.members"

    let chat: Int64
    let users: [Int64]
    let isRemoval: Bool
    var showsHistory = true
    /// If set, the task changes the users' rights as administrators, not their membership. The
    /// table of roles defines the bits.
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

/// Leaves a group or channel.
struct LeaveChatTask: ClientTask {
    static let kind = "chat.leave"

    let chat: Int64

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.show(.left, of: ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> ChatLeaveRequest {
        ChatLeaveRequest(chatID: ChatID(chat))
    }

    func succeeded(_ reply: ChatLeaveReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // A push before the reply may report that a member has added the account again.
        let asked = core.tasks.asked.transactions
        guard core.isCurrent(.chat(ChatID(chat)), since: asked, tx) else {
            if try !tx.isChangingDraft(in: ChatID(chat)) { try tx.forgetDraft(of: ChatID(chat)) }
            // The push may also be older than the departure. The reply to `refresh` decides.
            try tx.show(.left, of: ChatID(chat))
            return try core.refresh(ChatID(chat), tx)
        }
        try tx.removeChat(ChatID(chat))
        core.forgetHistory(of: ChatID(chat))
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.refresh(ChatID(chat), tx)
    }
}

/// Hides a chat until it gets a new message.
struct HideChatTask: ClientTask {
    static let kind = "chat.hide"

    let chat: Int64

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.show(.hidden, of: ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> ChatHideRequest {
        ChatHideRequest(chatID: ChatID(chat))
    }

    func succeeded(_ reply: ChatHideReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // A new message may have arrived just before or after the chat was hidden.
        if try tx.isListed(ChatID(chat)) { try core.refresh(ChatID(chat), tx) }
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.refresh(ChatID(chat), tx)
    }
}

/// Mutes a chat or pins it to the top of the list.
struct ConfigureChatTask: ClientTask {
    static let kind = "chat.configure"

    let chat: Int64
    /// The end of the mute, in Unix milliseconds; 0 if the chat is not muted, -1 if it is muted for
    /// ever.
    var mutedUntil: Int64?
    /// The number that orders the pinned chats; 0 for a chat that is not pinned.
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
        // The hash of the stored settings is now unknown until the next login.
        try tx.set(.configHash, nil)
        try core.learn(.settings(ChatID(chat)), tx) {
            if let settings = reply.chats { try tx.put(chatSettings: settings) }
        }
    }
}

extension StoreTransaction {
    /// Returns the changes of chat settings that are queued or in flight, oldest first.
    func settingsUnderWay() throws -> [ConfigureChatTask] {
        try openTasks(inLane: ConfigureChatTask.lane)
            .compactMap { TaskKinds.read($0) as? ConfigureChatTask }
    }
}

/// Adds, renames, removes, blocks or unblocks a contact.
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
        // Blocking does not create or remove a contact.
        let isContact: Bool? =
            switch action {
            case "ADD", "UPDATE": true
            case "REMOVE": false
            default: nil
            }
        try core.learn(.person(UserID(user)), tx) {
            if isContact == false {
                // The server's record of a removed contact has an older time, but must replace the
                // stored record.
                try tx.distrustPerson(UserID(user))
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

/// Changes the account's own names and description.
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
