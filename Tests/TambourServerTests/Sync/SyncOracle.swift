import TambourEvents
import TambourProtocol
import TambourStore

/// An error: two states that must be equal differ. The text describes the difference.
struct Divergence: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The state that the messenger should have, in plain arrays. The oracle learns it only from the
/// replies of commands.
struct SyncOracle {
    /// A name of a chat that is the same for all viewers. The wire id of a dialog differs from
    /// viewer to viewer.
    enum Name: Hashable {
        case pair(low: UserID, high: UserID)
        case group(ChatID)

        init(_ wireID: ChatID, for viewer: UserID) {
            if wireID.rawValue < 0 {
                self = .group(wireID)
            } else {
                let other = UserID(wireID.rawValue ^ viewer.rawValue)
                self = .pair(low: min(viewer, other), high: max(viewer, other))
            }
        }

        func wireID(for viewer: UserID) -> ChatID {
            switch self {
            case .pair(let low, let high): ChatID(low.rawValue ^ high.rawValue)
            case .group(let id): id
            }
        }
    }

    struct Message {
        let id: MessageID
        let sender: UserID
        var text: String
        var isRemoved = false
        var hiddenFor: Set<UserID> = []
        /// Whether the message is an event of the group. No user owns an event.
        var isEvent = false
        var reactions: [UserID: String] = [:]
        var poll: Poll?

        func isVisible(to user: UserID) -> Bool { !isRemoved && !hiddenFor.contains(user) }
    }

    struct Chat {
        let name: Name
        var members: [UserID]
        var title: String?
        var description: String?
        var options: Set<String> = []
        var pinned: MessageID?
        /// The owner; nil for a dialog.
        var owner: UserID?
        /// The public name; nil for a private chat.
        var publicName: String?
        /// The users with an open join request.
        var requests: Set<UserID> = []
        /// For each user who has hidden the chat, the newest message at that time.
        var hidden: [UserID: MessageID] = [:]
        var permissions: [UserID: Int64] = [:]
        /// For each user, a message: the user sees only later messages.
        var floors: [UserID: MessageID] = [:]
        /// Whether the chat is a channel, or ever had more members than `fanOutMembers`.
        var wasBig = false
        var messages: [Message] = []
        /// The read mark of each member.
        var marks: [UserID: Int64]
        /// The read marks that other members see.
        var shownMarks: [UserID: Int64]

        init(name: Name, members: [UserID], title: String?) {
            self.name = name
            self.members = members.sorted()
            self.title = title
            marks = Dictionary(uniqueKeysWithValues: members.map { ($0, 0) })
            shownMarks = marks
            wasBig = isChannel
        }

        var isChannel: Bool {
            guard case .group(let id) = name else { return false }
            return id.isChannel
        }

        func visible(to user: UserID) -> [Message] {
            let floor = floors[user] ?? MessageID(0)
            return messages.filter { $0.id > floor && $0.isVisible(to: user) }
        }

        mutating func append(_ event: Message) {
            messages.append(event)
            wrote(event.sender, at: event.id.timeMs)
        }

        /// Records that a user has written. The user has then read everything, and all members see
        /// this.
        mutating func wrote(_ user: UserID, at time: Int64) {
            marks[user] = time
            shownMarks[user] = time
        }

        mutating func read(by user: UserID, upTo time: Int64, isShown: Bool) {
            marks[user] = max(marks[user] ?? 0, time)
            if isShown { shownMarks[user] = max(shownMarks[user] ?? 0, time) }
        }

        mutating func mark(_ request: ChatMarkRequest, by user: UserID, isShown: Bool) {
            let last = messages.last?.id.timeMs ?? 0
            let asked = request.messageID?.timeMs ?? request.mark ?? last
            switch request.type {
            case .readReaction: break
            case .readMessage: read(by: user, upTo: max(0, min(asked, last)), isShown: isShown)
            case .setAsUnread:
                let time = max(max(1, min(asked, last)) - 1, floors[user]?.timeMs ?? 0)
                marks[user] = min(marks[user] ?? 0, time)
            }
        }

        mutating func add(_ users: [UserID], showingHistory: Bool) {
            for user in users {
                requests.remove(user)
                members.append(user)
                wrote(user, at: messages.last?.id.timeMs ?? 0)
                floors[user] = showingHistory ? nil : messages.last?.id
            }
            members.sort()
        }

        mutating func remove(_ users: [UserID]) {
            members.removeAll { users.contains($0) }
            for user in users {
                marks[user] = nil
                shownMarks[user] = nil
                floors[user] = nil
                permissions[user] = nil
                hidden[user] = nil
            }
        }

        mutating func forgetReactions(of user: UserID, butTo left: Set<MessageID>) {
            for index in messages.indices where !left.contains(messages[index].id) {
                messages[index].reactions[user] = nil
                messages[index].poll?.votes[user] = nil
            }
        }

        func unread(of user: UserID) -> Int {
            visible(to: user).count { $0.id.timeMs > marks[user, default: 0] }
        }

        mutating func change(_ id: MessageID, _ body: (inout Message) -> Void) {
            guard let index = messages.firstIndex(where: { $0.id == id }) else { return }
            body(&messages[index])
        }
    }

    /// An owner's data about a user.
    struct Contact: Equatable {
        var isAdded = false
        var isBlocked = false
        var name: String?
    }

    /// A pair of an owner and a user.
    struct Link: Hashable {
        let owner: UserID
        let user: UserID
    }

    /// The idempotency key of a sent message. `chat` is nil if the message creates a group.
    struct SendKey: Hashable {
        let sender: UserID
        let device: DeviceID
        let cid: Int64
        let chat: Name?
    }

    let fanOutMembers: Int
    private(set) var chats: [Name: Chat] = [:]
    var contacts: [Link: Contact] = [:]
    /// For each user, who may see the user's phone: ALL, CONTACTS or NONE.
    var phoneAudience: [UserID: String] = [:]
    /// Users who show their read marks to nobody.
    var hidesMarks: Set<UserID> = []
    /// The first names of the users who have changed their names.
    var names: [UserID: String] = [:]
    /// The chats in the order of their creation. With this list, no result depends on the order of
    /// a dictionary.
    private var order: [Name] = []
    private var sent: [SendKey: MessageID] = [:]
    /// The drafts of each author.
    var drafts: [UserID: [Name: Draft]] = [:]
    /// The folders of each owner, in the owner's order. The folder of all chats has no title.
    var folders: [UserID: [Folder]] = [:]

    init(fanOutMembers: Int) {
        self.fanOutMembers = fanOutMembers
    }

    var all: [Chat] { order.compactMap { chats[$0] } }

    func chats(of user: UserID) -> [Chat] { all.filter { $0.members.contains(user) } }

    mutating func change(_ name: Name, _ body: (inout Chat) throws -> Void) rethrows {
        guard let members = chats[name]?.members else { return }
        try body(&chats[name]!)
        // A user who leaves the chat loses the draft for this chat.
        for user in members where !chats[name]!.members.contains(user) {
            drafts[user]?[name] = nil
        }
        if chats[name]!.members.count > fanOutMembers { chats[name]!.wasBig = true }
    }

    /// Records an accepted message.
    mutating func sent(
        _ reply: MsgSendReply,
        as key: SendKey,
        by sender: UserID,
        newGroup: (title: String, members: [UserID])?
    ) throws {
        let name = Name(reply.chatID, for: sender)
        let id = reply.message.id
        if let first = sent[key] {
            guard first == id else {
                throw Divergence("the same cid made \(id.rawValue), before \(first.rawValue)")
            }
            return
        }
        sent[key] = id
        var chat =
            chats[name]
            ?? {
                if let newGroup {
                    return Chat(name: name, members: newGroup.members, title: newGroup.title)
                }
                let other = UserID(reply.chatID.rawValue ^ sender.rawValue)
                let members = other == sender ? [sender] : [sender, other]
                return Chat(name: name, members: members, title: nil)
            }()
        if let last = chat.messages.last {
            guard last.id < id, last.id.timeMs < id.timeMs else {
                throw Divergence("message \(id.rawValue) came after \(last.id.rawValue)")
            }
        }
        guard reply.prevMessageID == chat.messages.last?.id else {
            throw Divergence("message \(id.rawValue) names a wrong predecessor")
        }
        let text = String(describing: reply.message.text)
        var message = Message(id: id, sender: sender, text: text)
        message.poll = Poll(reply.message.attaches)
        if newGroup != nil, chat.messages.isEmpty {
            message.isEvent = true
            chat.owner = sender
        }
        if chat.members.count > fanOutMembers { chat.wasBig = true }
        chat.messages.append(message)
        chat.wrote(sender, at: id.timeMs)
        if chats.updateValue(chat, forKey: name) == nil { order.append(name) }
        guard reply.unread == 0, reply.mark == id.timeMs else {
            throw Divergence("after an own message the unread count is not 0 or the mark is off")
        }
    }

    /// Returns whether other members see the read mark of `user` in a chat.
    func showsMark(of user: UserID, in chat: ChatID) -> Bool {
        guard !hidesMarks.contains(user) else { return false }
        guard let partner = chat.partner(of: user) else { return true }
        return contacts[Link(owner: user, user: partner)]?.isBlocked != true
            && contacts[Link(owner: partner, user: user)]?.isBlocked != true
    }

    /// Compares a chat as `viewer` sees it with the chat that the oracle expects, field by field.
    func check(_ seen: TambourProtocol.Chat, for viewer: UserID) throws {
        guard let chat = chats[Name(seen.id, for: viewer)] else {
            throw Divergence("chat \(seen.id.rawValue) should not be there")
        }
        func expect<Value: Equatable>(_ what: String, _ value: Value, _ expected: Value) throws {
            guard value != expected else { return }
            throw Divergence(
                "chat \(seen.id.rawValue) for \(viewer.rawValue): \(what) is \(value), "
                    + "not \(expected)"
            )
        }
        let last = chat.visible(to: viewer).last
        try expect("last message", seen.lastMessage?.id, last?.id)
        let isHidden = chat.hidden[viewer].map { $0 == chat.messages.last?.id } ?? false
        try expect("status", seen.status, isHidden ? .hidden : .active)
        try expect("last text", seen.lastMessage.map { "\($0.text)" }, last?.text)
        try expect(
            "reactions",
            try Reactions(seen.lastMessage?.reactionInfo),
            Reactions(last?.reactions ?? [:], for: viewer)
        )
        if let message = seen.lastMessage, let last { try Self.check(message, last, for: viewer) }
        try expect("unread", seen.newMessages, Int64(chat.unread(of: viewer)))
        try expect("title", seen.title.map { "\($0)" }, chat.title)
        let before = last.flatMap { last in chat.messages.last { $0.id < last.id } }
        try expect("predecessor", seen.prevMessageID, before?.id)
        try expect("last event", seen.lastEventTime, chat.messages.last?.id.timeMs ?? seen.created)
        if case .group = chat.name {
            let shown = chat.pinned.flatMap { id in
                chat.visible(to: viewer).first { $0.id == id }
            }
            try expect("pinned message", seen.pinnedMessage?.id, shown?.id)
            try expect("description", seen.description.map { "\($0)" }, chat.description)
            let options = Set((seen.options?.pairs ?? []).map { "\($0.0)" })
            try expect("options", options, chat.options)
            try expect("access", seen.access, chat.publicName == nil ? .private : .public)
            if let name = chat.publicName {
                try expect("link", seen.link.map { "\($0)" }, name)
            }
            try expect("owner", seen.owner, chat.owner ?? UserID(0))
            let admins = [seen.owner] + chat.permissions.keys.sorted()
            try expect("administrators", seen.admins, admins)
            try expect("count", seen.participantsCount, Int64(chat.members.count))
        }
        let marks = (chat.wasBig ? [viewer] : chat.members).map {
            ($0, ($0 == viewer ? chat.marks : chat.shownMarks)[$0] ?? 0)
        }
        try expect("participants", seen.participants, IDMap(marks))
    }

    /// Compares the contacts of `owner` with the expected contacts: added users, blocked users, and
    /// partners in dialogs.
    func check(_ seen: [UserID: User], of owner: UserID) throws {
        var expected: [UserID: Contact] = [:]
        for case .pair(let low, let high) in chats(of: owner).map(\.name) where low != high {
            expected[low == owner ? high : low] = Contact()
        }
        for (link, contact) in contacts
        where link.owner == owner
            && (contact.isAdded || contact.isBlocked || expected[link.user] != nil)
        {
            expected[link.user] = contact
        }
        guard Set(seen.keys) == Set(expected.keys) else {
            throw Divergence(
                "contacts of \(owner.rawValue) are \(seen.keys.sorted()), not "
                    + "\(expected.keys.sorted())"
            )
        }
        for (id, contact) in expected {
            guard let user = seen[id] else { continue }
            let showsPhone =
                switch phoneAudience[id] {
                case "NONE": false
                case "CONTACTS": contacts[Link(owner: id, user: owner)]?.isAdded == true
                default: true
                }
            let own = user.names.last.map { "\($0.firstName ?? "")" }
            let given = user.names.first { $0.type == "CUSTOM" }.map { "\($0.name ?? "")" }
            guard (user.phone != nil) == (contact.isAdded && showsPhone),
                (user.status == "BLOCKED") == contact.isBlocked, given == contact.name,
                names[id] == nil || own == names[id]
            else {
                throw Divergence("contact \(id.rawValue) of \(owner.rawValue) is \(user)")
            }
        }
    }

    /// Compares the newest page of a chat's history with the page that `viewer` should see.
    ///
    /// - Parameter isCut: Whether the page may be shorter because the reply limit is small.
    func check(
        _ page: [TambourProtocol.Message],
        of chat: Chat,
        for viewer: UserID,
        isCut: Bool
    ) throws {
        var expected = chat.visible(to: viewer)
        if isCut, !page.isEmpty { expected = expected.suffix(page.count) }
        guard page.map(\.id) == expected.map(\.id) else {
            throw Divergence("the history of \(chat.name) for \(viewer.rawValue) is another one")
        }
        for (message, expected) in zip(page, expected) {
            let sender = chat.isChannel ? nil : expected.sender
            guard "\(message.text)" == expected.text, message.sender == sender else {
                throw Divergence("message \(message.id.rawValue) has another text or sender")
            }
            try Self.check(message, expected, for: viewer)
            let reactions = try Reactions(message.reactionInfo)
            guard reactions == Reactions(expected.reactions, for: viewer) else {
                throw Divergence("message \(message.id.rawValue) has other reactions: \(reactions)")
            }
        }
    }
}
