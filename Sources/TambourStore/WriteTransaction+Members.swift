package import TambourProtocol
import TambourSQL

/// Who is in a chat and what its people may change about it.
///
/// The rows change at once and what is cached with them; a batch that fails drops both. All of it is
/// rare, so what waits for the write-back goes out first.
extension WriteTransaction {
    /// Adds users who are no members. What was said before they have read, or never see.
    ///
    /// A chat that grows over the fan-out threshold becomes big here.
    package func add(_ ids: [UserID], to chat: ChatState, showingHistory: Bool) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        try flush()
        if !chat.isBig, chat.memberCount + ids.count > store.limits.fanOutMembers {
            try makeBig(chat)
        }
        let floor = showingHistory ? MessageID(0) : chat.head.id
        var added: [MemberState] = []
        // Coming in says nothing of reading: others see the same.
        let read = chat.head.number == 0 ? 0 : chat.head.id.timeMs
        for id in ids {
            let before = try revive(id, in: chat)
            let member = MemberState(
                userID: id,
                // While the clock stands, a device that was away must still see that it is another time.
                joined: max(ct, before.map { $0 + 1 } ?? 0),
                readTime: read,
                shownTime: read,
                readNumber: chat.head.number,
                ct: ct,
                isBig: chat.isBig,
                floor: floor
            )
            save(.row, of: member, in: chat)
            try discardRequest(of: id, in: chat)
            added.append(member)
        }
        try flush()
        chat.add(added)
        try countMembers(of: chat)
        touch(chat)
    }

    /// Forgets that somebody was in a chat: since when; nil when they were not.
    private func revive(_ user: UserID, in chat: ChatState) throws -> Int64? {
        let revive = store.members.revive
        defer { revive.reset() }
        revive.bind(1, user.rawValue)
        revive.bind(2, chat.key.rawValue)
        var joined: Int64?
        while try revive.step() { joined = revive.int(0) }
        return joined
    }

    /// Takes members out: their next delta has a tombstone, and for all else the chat is unknown.
    package func remove(_ ids: [UserID], from chat: ChatState) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        try flush()
        for id in ids {
            guard let member = try member(id, of: chat) else { continue }
            let remove = store.members.remove
            remove.bind(1, id.rawValue)
            remove.bind(2, chat.key.rawValue)
            try remove.run()
            let bury = store.members.bury
            bury.bind(1, id.rawValue)
            bury.bind(2, chat.key.rawValue)
            bury.bind(3, chat.owner.rawValue)
            bury.bind(4, member.joined)
            bury.bind(5, ct)
            try bury.run()
            try discardDraft(of: id, for: .group(chat.key))
            try forgetDelayed(of: id, for: .group(chat.key))
            chat.remove(id)
        }
        try countMembers(of: chat)
        touch(chat)
    }

    /// Takes everybody out of a group or channel at once: by the same five statements however many
    /// there are.
    package func removeEverybody(from chat: ChatState) throws {
        writes += 1
        try flush()
        try discardDrafts(for: .group(chat.key))
        try forgetDelayed(for: .group(chat.key))
        store.members.buryAll.bind(1, chat.key.rawValue)
        store.members.buryAll.bind(2, chat.owner.rawValue)
        store.members.buryAll.bind(3, ct)
        try store.members.buryAll.run()
        store.members.removeAll.bind(1, chat.key.rawValue)
        try store.members.removeAll.run()
        chat.removeEverybody()
        try countMembers(of: chat)
        touch(chat)
    }

    package func setPermissions(
        _ permissions: RoleTable.Permissions,
        of user: UserID,
        in chat: ChatState
    ) throws {
        guard let member = try member(user, of: chat) else { return }
        writes += 1
        try flush()
        let statement = store.members.setPermissions
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.key.rawValue)
        statement.bind(3, permissions.rawValue)
        try statement.run()
        member.setPermissions(permissions)
        touch(chat)
        // Owners and administrators comment.
        if chat.kind == .channel, !permissions.isEmpty || chat.owner == user {
            try setBanned(false, [user], from: chat)
        }
    }

    package func set(_ details: ChatDetails, of chat: ChatState) throws {
        writes += 1
        try flush()
        let statement = store.chats.setDetails
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, details.owner.rawValue)
        statement.bindWords(3, details.title)
        statement.bindWords(4, details.description)
        statement.bind(5, details.options.rawValue)
        statement.bind(6, details.pinned?.rawValue ?? 0)
        statement.bindWords(7, details.link)
        statement.bindBlob(8, details.reactions?.bytes)
        statement.bind(9, details.isPublic ? 1 : 0)
        try statement.run()
        if details.isPublic || chat.details.isPublic { try indexName(of: chat, as: details) }
        chat.set(details)
        touch(chat)
    }

    /// Makes everything up to a message unseen for one member, and read.
    package func clear(_ chat: ChatState, upTo last: MessageID, for user: UserID) throws {
        guard let member = try member(user, of: chat) else { return }
        let floor = min(last, chat.head.id)
        guard floor > member.floor else { return }
        writes += 1
        try flush()
        let statement = store.members.setFloor
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.key.rawValue)
        statement.bind(3, floor.rawValue)
        try statement.run()
        member.setFloor(floor)
        touch(member, in: chat)
        try raiseRead(to: floor.timeMs, of: user, in: chat)
    }

    /// Puts a chat away for one member, until there is a new message in it.
    ///
    /// - Returns: whether it was not away already.
    package func hide(_ chat: ChatState, for user: UserID) throws -> Bool {
        guard let member = try member(user, of: chat),
            member.hiddenNumber != chat.head.number
        else { return false }
        try setHidden(chat.head.number, of: member, in: chat)
        return true
    }

    /// Takes back that one member has put a chat away.
    ///
    /// - Returns: whether it was away.
    package func bringBack(_ chat: ChatState, for user: UserID) throws -> Bool {
        guard let member = try member(user, of: chat),
            member.hiddenNumber == chat.head.number, chat.head.number != 0
        else { return false }
        try setHidden(0, of: member, in: chat)
        return true
    }

    private func setHidden(_ number: Int64, of member: MemberState, in chat: ChatState) throws {
        writes += 1
        try flush()
        let statement = store.members.setHidden
        statement.bind(1, member.userID.rawValue)
        statement.bind(2, chat.key.rawValue)
        statement.bind(3, number)
        try statement.run()
        member.setHidden(number)
        touch(member, in: chat)
    }

    /// Everybody who hears of what happens in a chat, in the order of their ids: of comments those of the
    /// channel who see the post.
    package func audience(of chat: ChatState) throws -> [UserID] {
        guard let post = chat.post else { return chat.memberIDs }
        return try readers(of: post.id, in: post.channel)
    }

    /// Those for whom a message is there, in the order of their ids.
    package func readers(of id: MessageID, in chat: ChatState) throws -> [UserID] {
        let audience = try audience(of: chat)
        let outsiders = try outsiders(of: id, in: chat)
        return outsiders.isEmpty ? audience : audience.filter { !outsiders.contains($0) }
    }

    /// Those for whom a message is not there: it lies below where the chat begins for them, or they
    /// have deleted it for themselves. Some of them may have left.
    package func outsiders(of id: MessageID, in chat: ChatState) throws -> Set<UserID> {
        // Not all members of a big chat are known here.
        guard !chat.isBig else { return try reader.outsiders(of: id, in: chat.key) }
        let late = chat.members.values.filter { $0.floor >= id }.map(\.userID)
        return try reader.hiders(of: id, in: chat.key).union(late)
    }

    /// The members for whom a message is not there since the chat begins later for them, each with the last
    /// message of which that holds.
    package func floors(
        from id: MessageID,
        in chat: ChatState
    ) throws -> [UserID: MessageID] {
        var floors: [UserID: MessageID] = [:]
        guard chat.isBig else {
            for member in chat.members.values where member.floor >= id {
                floors[member.userID] = member.floor
            }
            return floors
        }
        let statement = store.members.floored
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, id.rawValue)
        while try statement.step() {
            floors[UserID(statement.int(0))] = MessageID(statement.int(1))
        }
        return floors
    }

    /// The chat that an invitation or a public name leads to, whoever asks.
    package func chat(linkedBy link: Text) throws -> ChatState? {
        guard let found = try reader.card(linkedBy: link) else { return nil }
        return try chat(found.key)
    }

    /// The administrators of a chat beside its owner.
    package func admins(of chat: ChatState) throws -> [Admin] {
        try flushedReader().admins(of: chat.key)
    }

    /// From now on the chat's own clock says when it changed; its members' rows stay as they are.
    private func makeBig(_ chat: ChatState) throws {
        store.members.makeBig.bind(1, chat.key.rawValue)
        try store.members.makeBig.run()
        chat.makeBig()
    }

    private func countMembers(of chat: ChatState) throws {
        store.chats.setMemberCount.bind(1, chat.key.rawValue)
        store.chats.setMemberCount.bind(2, Int64(chat.memberCount))
        try store.chats.setMemberCount.run()
    }
}

extension ReadTransaction {
    /// The same of a chat whose members are not all known.
    package func outsiders(of id: MessageID, in chat: ChatKey) throws -> Set<UserID> {
        try users(store.members.floored, of: id, in: chat).union(hiders(of: id, in: chat))
    }

    /// Those who have deleted a message for themselves.
    func hiders(of id: MessageID, in chat: ChatKey) throws -> Set<UserID> {
        try users(store.messages.hiders, of: id, in: chat)
    }

    private func users(
        _ statement: any SQLStatement,
        of id: MessageID,
        in chat: ChatKey
    ) throws -> Set<UserID> {
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, id.rawValue)
        var users: Set<UserID> = []
        while try statement.step() { users.insert(UserID(statement.int(0))) }
        return users
    }
}
