package import TambourProtocol
import TambourSQL

/// Changes the membership of chats, and the properties that members may change.
///
/// Each function changes the rows and the caches at the same time. If the batch fails, both changes
/// are discarded. Each function flushes the pending writes first. This is acceptable, because these
/// changes are rare.
extension WriteTransaction {
    /// Adds users who are not members. Earlier messages count as read for these users. If
    /// `showingHistory` is false, earlier messages are hidden from these users.
    ///
    /// If the chat then has more members than the fan-out threshold, it becomes big.
    package func add(_ ids: [UserID], to chat: ChatState, showingHistory: Bool) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        try flush()
        if !chat.isBig, chat.memberCount + ids.count > store.limits.fanOutMembers {
            try makeBig(chat)
        }
        let floor = showingHistory ? MessageID(0) : chat.head.id
        var added: [MemberState] = []
        // This mark reveals nothing about what the user has read, so other users may see it.
        let read = chat.head.number == 0 ? 0 : chat.head.id.timeMs
        for id in ids {
            let before = try revive(id, in: chat)
            let member = MemberState(
                userID: id,
                // The new membership always begins later than the former membership began, even if
                // the clock still shows the same time. A device that was offline therefore
                // recognizes the new membership.
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

    /// Deletes the record of a former membership and returns the time at which this membership
    /// began. Returns nil if there is no record.
    private func revive(_ user: UserID, in chat: ChatState) throws -> Int64? {
        // A statement that writes must run to its end, so the code reads all rows.
        try store.members.revive.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
        } read: {
            $0.int(.joined)
        }.last
    }

    /// Removes members. The next login delta of a removed member contains a tombstone of the chat.
    /// Afterwards the chat is unknown to this user.
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

    /// Removes all members from a group or channel. The number of statements does not depend on the
    /// number of members.
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

    /// Hides all messages up to `last` from one member and marks these messages as read.
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

    /// Makes a chat visible again for a member who has hidden it.
    ///
    /// - Returns: whether the chat was hidden before.
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
    /// comments, these are the members of the channel who can see the post.
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

    /// Returns the users who cannot see a message, because their view of the chat begins after the
    /// message or because they deleted it for themselves. The result may include former members.
    package func outsiders(of id: MessageID, in chat: ChatState) throws -> Set<UserID> {
        // A big chat does not have all its members in the cache.
        guard !chat.isBig else { return try reader.outsiders(of: id, in: chat.key) }
        let late = chat.members.values.filter { $0.floor >= id }.map(\.userID)
        return try reader.hiders(of: id, in: chat.key).union(late)
    }

    /// Returns the members whose view of the chat begins after a message, so that they cannot see
    /// it. Each member comes with the last message that is hidden from this member.
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

    /// Returns the chat that has this invitation or public name, without checking membership.
    package func chat(linkedBy link: Text) throws -> ChatState? {
        guard let found = try reader.card(linkedBy: link) else { return nil }
        return try chat(found.key)
    }

    /// Returns the administrators of a chat other than its owner.
    package func admins(of chat: ChatState) throws -> [Admin] {
        try flushedReader().admins(of: chat.key)
    }

    /// Makes a chat big. After this call, changes of the chat update the chat's own clock and no
    /// longer the members' rows.
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
    /// Returns the users who cannot see a message. Works for every chat, because it does not use
    /// the cached members.
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
