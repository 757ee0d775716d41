package import TambourProtocol
import TambourSQL

/// Changes the membership of chats, and the properties that members may change.
///
/// Rows and caches change at the same time; a failed batch discards both. Each change flushes the
/// pending writes first; such changes are rare.
extension WriteTransaction {
    /// Adds users who are not members. Earlier messages count as read for them, and without
    /// `showingHistory` are hidden from them.
    ///
    /// A chat that grows above the fan-out threshold becomes big.
    package func add(_ ids: [UserID], to chat: ChatState, showingHistory: Bool) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        try flush()
        if !chat.isBig, chat.memberCount + ids.count > store.limits.fanOutMembers {
            try makeBig(chat)
        }
        let floor = showingHistory ? MessageID(0) : chat.head.id
        var added: [MemberState] = []
        // Joining does not reveal reading activity, so other users see the same mark.
        let read = chat.head.number == 0 ? 0 : chat.head.id.timeMs
        for id in ids {
            let before = try revive(id, in: chat)
            let member = MemberState(
                userID: id,
                // Later than the start of the former membership, even if the clock has not moved. A
                // device that was offline therefore recognizes the new membership.
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

    /// Deletes the record of a former membership and returns when that membership began; nil if
    /// there is no record.
    private func revive(_ user: UserID, in chat: ChatState) throws -> Int64? {
        // A writing statement must run to its end, so this reads all rows.
        try store.members.revive.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
        } read: {
            $0.int(.joined)
        }.last
    }

    /// Removes members. Their next login delta contains a tombstone; after that, the chat is
    /// unknown to them.
    package func remove(_ ids: [UserID], from chat: ChatState) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        try flush()
        for id in ids {
            guard let member = try member(id, of: chat) else { continue }
            try store.members.remove.run {
                $0.bind(1, id.rawValue)
                $0.bind(2, chat.key.rawValue)
            }
            try store.members.bury.run {
                $0.bind(1, id.rawValue)
                $0.bind(2, chat.key.rawValue)
                $0.bind(3, chat.owner.rawValue)
                $0.bind(4, member.joined)
                $0.bind(5, ct)
            }
            try discardDraft(of: id, for: .group(chat.key))
            try forgetDelayed(of: id, for: .group(chat.key))
            chat.remove(id)
        }
        try countMembers(of: chat)
        touch(chat)
    }

    /// Removes everyone from a group or channel with five statements, regardless of the number of
    /// members.
    package func removeEverybody(from chat: ChatState) throws {
        writes += 1
        try flush()
        try discardDrafts(for: .group(chat.key))
        try forgetDelayed(for: .group(chat.key))
        try store.members.buryAll.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, chat.owner.rawValue)
            $0.bind(3, ct)
        }
        try store.members.removeAll.run { $0.bind(1, chat.key.rawValue) }
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
        try store.members.setPermissions.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
            $0.bind(3, permissions.rawValue)
        }
        member.setPermissions(permissions)
        touch(chat)
        // Owners and administrators may always comment.
        if chat.kind == .channel, !permissions.isEmpty || chat.owner == user {
            try setBanned(false, [user], from: chat)
        }
    }

    package func set(_ details: ChatDetails, of chat: ChatState) throws {
        writes += 1
        try flush()
        try store.chats.setDetails.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, details.owner.rawValue)
            $0.bindWords(3, details.title)
            $0.bindWords(4, details.description)
            $0.bind(5, details.options.rawValue)
            $0.bind(6, details.pinned?.rawValue ?? 0)
            $0.bindWords(7, details.link)
            $0.bindBlob(8, details.reactions?.bytes)
            $0.bind(9, details.isPublic ? 1 : 0)
        }
        if details.isPublic || chat.details.isPublic { try indexName(of: chat, as: details) }
        chat.set(details)
        touch(chat)
    }

    /// Hides all messages up to `last` from one member and marks them as read.
    package func clear(_ chat: ChatState, upTo last: MessageID, for user: UserID) throws {
        guard let member = try member(user, of: chat) else { return }
        let floor = min(last, chat.head.id)
        guard floor > member.floor else { return }
        writes += 1
        try flush()
        try store.members.setFloor.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
            $0.bind(3, floor.rawValue)
        }
        member.setFloor(floor)
        touch(member, in: chat)
        try raiseRead(to: floor.timeMs, of: user, in: chat)
    }

    /// Hides a chat from one member until it gets a new message.
    ///
    /// - Returns: whether the chat was visible before.
    package func hide(_ chat: ChatState, for user: UserID) throws -> Bool {
        guard let member = try member(user, of: chat),
            member.hiddenNumber != chat.head.number
        else { return false }
        try setHidden(chat.head.number, of: member, in: chat)
        return true
    }

    /// Unhides a chat for one member who has hidden it.
    ///
    /// - Returns: whether the chat was hidden.
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
        try store.members.setHidden.run {
            $0.bind(1, member.userID.rawValue)
            $0.bind(2, chat.key.rawValue)
            $0.bind(3, number)
        }
        member.setHidden(number)
        touch(member, in: chat)
    }

    /// Returns the users who are notified of changes in a chat, in the order of their ids. For
    /// comments these are the members of the channel who see the post.
    package func audience(of chat: ChatState) throws -> [UserID] {
        guard let post = chat.post else { return chat.memberIDs }
        return try readers(of: post.id, in: post.channel)
    }

    /// Returns the users who can see a message, in the order of their ids.
    package func readers(of id: MessageID, in chat: ChatState) throws -> [UserID] {
        let audience = try audience(of: chat)
        let outsiders = try outsiders(of: id, in: chat)
        return outsiders.isEmpty ? audience : audience.filter { !outsiders.contains($0) }
    }

    /// Returns the users who cannot see a message: their view of the chat begins after it, or they
    /// deleted it for themselves. The result may include former members.
    package func outsiders(of id: MessageID, in chat: ChatState) throws -> Set<UserID> {
        // A big chat does not have all its members in the cache.
        guard !chat.isBig else { return try reader.outsiders(of: id, in: chat.key) }
        let late = chat.members.values.filter { $0.floor >= id }.map(\.userID)
        return try reader.hiders(of: id, in: chat.key).union(late)
    }

    /// Returns the members who cannot see a message because their view of the chat begins after it.
    /// Each comes with the last message that is hidden from the member.
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
        try store.members.floored.each {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, id.rawValue)
        } do: {
            floors[UserID($0.int(.userID))] = MessageID($0.int(.floor))
        }
        return floors
    }

    /// Returns the chat of an invitation or a public name, without checking membership.
    package func chat(linkedBy link: Text) throws -> ChatState? {
        guard let found = try reader.card(linkedBy: link) else { return nil }
        return try chat(found.key)
    }

    /// Returns the administrators of a chat other than its owner.
    package func admins(of chat: ChatState) throws -> [Admin] {
        try flushedReader().admins(of: chat.key)
    }

    /// From this call on, the chat's own clock records changes; the members' rows stay unchanged.
    private func makeBig(_ chat: ChatState) throws {
        try store.members.makeBig.run { $0.bind(1, chat.key.rawValue) }
        chat.makeBig()
    }

    private func countMembers(of chat: ChatState) throws {
        try store.chats.setMemberCount.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, Int64(chat.memberCount))
        }
    }
}

extension ReadTransaction {
    /// Returns the users who cannot see a message, for a chat that does not have all its members in
    /// the cache.
    package func outsiders(of id: MessageID, in chat: ChatKey) throws -> Set<UserID> {
        try users(store.members.floored, .userID, of: id, in: chat)
            .union(hiders(of: id, in: chat))
    }

    /// Returns the users who deleted a message for themselves.
    func hiders(of id: MessageID, in chat: ChatKey) throws -> Set<UserID> {
        try users(store.messages.hiders, .userID, of: id, in: chat)
    }

    private func users<Column>(
        _ query: SQLQuery<Column>,
        _ user: Column,
        of id: MessageID,
        in chat: ChatKey
    ) throws -> Set<UserID> {
        var users: Set<UserID> = []
        try query.each {
            $0.bind(1, chat.rawValue)
            $0.bind(2, id.rawValue)
        } do: {
            users.insert(UserID($0.int(user)))
        }
        return users
    }
}
