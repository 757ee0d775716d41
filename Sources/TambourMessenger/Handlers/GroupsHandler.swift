import TambourEvents
import TambourProtocol
import TambourStore

/// Family `groups`: members, rights, titles, links, and deletion of groups and channels.
/// Wire: protocol-spec/opcodes/groups.yaml
struct GroupsHandler: Sendable {
    let limits: Limits
    let environment: Environment
    let found: FoundPeople

    // MARK: - Members

    /// Answers `CHAT_MEMBERS_UPDATE` (77): adds or removes members, grants or revokes rights,
    /// decides requests to join, or bans commenters.
    ///
    /// - Throws: `chat.not.found`, `user.not.found`. Throws `not.allowed`, also for an unsupported
    ///   kind of member. Throws `proto.payload` for an empty list of users, too many members and
    ///   invalid values.
    /// - Note: A command.
    func chatMembersUpdate(
        _ request: ChatMembersUpdateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatMembersUpdateReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        guard !request.userIDs.isEmpty else { throw RequestError.protoPayload("/userIds: empty") }
        let users = Set(request.userIDs).sorted()
        // Some clients send the operation without a type when they change administrators.
        let (type, adds): (MemberType, Bool) =
            switch request.operation {
            case .admin: (.admin, true)
            case .revokeAdmin: (.admin, false)
            case .add: (request.type ?? .member, true)
            case .remove: (request.type ?? .member, false)
            }
        switch (type, adds) {
        case (.member, true):
            try add(users, to: chat, showingHistory: request.showHistory, by: caller, in: tx)
        case (.member, false):
            guard [0, -1].contains(request.cleanMsgPeriod) else {
                throw RequestError.protoPayload("/cleanMsgPeriod: neither 0 nor -1")
            }
            let withMessages = request.cleanMsgPeriod == -1
            try remove(users, from: chat, withMessages: withMessages, by: caller, in: tx)
        case (.admin, true):
            let bits = request.permissions ?? RoleTable.Permissions.ofNewAdmin.rawValue
            guard 1...RoleTable.Permissions.ofOwner.rawValue ~= bits else {
                throw RequestError.protoPayload("/permissions: not between 1 and 2047")
            }
            try appoint(users, RoleTable.Permissions(rawValue: bits), in: chat, by: caller, tx)
        case (.admin, false):
            try appoint(users, [], in: chat, by: caller, tx)
        case (.joinRequest, true):
            try letIn(users, to: chat, showingHistory: request.showHistory, by: caller, in: tx)
        case (.joinRequest, false):
            try decline(users, in: chat, by: caller, in: tx)
        case (.blocked, _):
            throw RequestError.notAllowed("nobody is kept out")
        case (.commentsBlacklist, let isBanned):
            try setBanned(isBanned, users, as: request, in: chat, by: caller, tx)
        }
        return ChatMembersUpdateReply(chat: try tx.seen(chat, by: caller.userID))
    }

    private func add(
        _ users: [UserID],
        to chat: ChatState,
        showingHistory: Bool,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        try ChatRules.require(.addMember, of: caller.userID, in: chat, tx)
        let added = try users.filter { try tx.member($0, of: chat) == nil }
        var sight = Sight(of: caller.userID, found: found, limits: limits)
        for user in added { try tx.requireInvitable(user, by: caller.userID, &sight) }
        try requireRoom(for: added.count, in: chat)
        guard !added.isEmpty else { return }
        try tx.add(added, to: chat, showingHistory: showingHistory)
        try tx.tellArrival(
            of: added,
            Attach(type: .control, event: "add", userID: caller.userID, userIDs: added),
            in: chat,
            by: caller.userID,
            except: caller.connectionID
        )
    }

    /// - Throws: `proto.payload` when the group would exceed its member limit. Channels have no
    ///   limit.
    private func requireRoom(for added: Int, in chat: ChatState) throws {
        guard chat.kind == .channel || chat.memberCount + added <= limits.maxGroupMembers else {
            throw RequestError.protoPayload(
                "/userIds: \(chat.memberCount + added) members, limit \(limits.maxGroupMembers)"
            )
        }
    }

    /// Admits users who requested to join. Skips users who have withdrawn their request.
    private func letIn(
        _ users: [UserID],
        to chat: ChatState,
        showingHistory: Bool,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        try ChatRules.require(.decideRequests, of: caller.userID, in: chat, tx)
        let asking = try users.filter { try tx.hasRequest(of: $0, in: chat) && tx.isListed($0) }
        try requireRoom(for: asking.count, in: chat)
        guard !asking.isEmpty else { return }
        try tx.add(asking, to: chat, showingHistory: showingHistory)
        try tx.tellArrival(
            of: asking,
            Attach(type: .control, event: "add", userID: caller.userID, userIDs: asking),
            in: chat,
            by: caller.userID,
            except: caller.connectionID
        )
    }

    private func decline(
        _ users: [UserID],
        in chat: ChatState,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        try ChatRules.require(.decideRequests, of: caller.userID, in: chat, tx)
        for user in users where try tx.hasRequest(of: user, in: chat) {
            try tx.discardRequest(of: user, in: chat)
        }
    }

    private func remove(
        _ users: [UserID],
        from chat: ChatState,
        withMessages: Bool,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        let members = try users.compactMap { try tx.member($0, of: chat) }
        // The caller needs one right to remove plain members, and another to remove administrators.
        // If none of the named users is a member, the caller needs the right for plain members.
        if members.isEmpty || members.contains(where: \.permissions.isEmpty) {
            try ChatRules.require(.removeMember, of: caller.userID, in: chat, tx)
        }
        if members.contains(where: { !$0.permissions.isEmpty }) {
            try ChatRules.require(.appoint, of: caller.userID, in: chat, tx)
        }
        let removed = members.map(\.userID)
        // Members cannot remove themselves; they leave with CHAT_LEAVE.
        guard !removed.contains(chat.owner), !removed.contains(caller.userID) else {
            throw RequestError.notAllowed
        }
        guard !removed.isEmpty else { return }
        let deleted =
            withMessages ? try tx.remove(upTo: chat.head.id, sentBy: removed, in: chat) : []
        try tx.remove(removed, from: chat)
        if chat.kind == .channel {
            try tx.tellDeleted(deleted, in: chat, except: caller.connectionID, limits: limits)
            return tellGone(removed, from: chat, except: nil, in: tx)
        }
        let (message, previous) = try tx.appendEvent(
            Attach(type: .control, event: "remove", userID: caller.userID, userIDs: removed),
            to: chat,
            by: caller.userID
        )
        try tx.tellDeleted(deleted, in: chat, except: caller.connectionID, limits: limits)
        try tx.announce(chat, last: message, except: caller.connectionID)
        try tx.tell(message, previous: previous, in: chat, except: caller.connectionID)
        tellGone(removed, from: chat, except: nil, in: tx)
    }

    /// Bans users from commenting in a channel, or lifts the ban.
    private func setBanned(
        _ isBanned: Bool,
        _ users: [UserID],
        as request: ChatMembersUpdateRequest,
        in channel: ChatState,
        by caller: Caller,
        _ tx: WriteTransaction
    ) throws {
        try ChatRules.require(.banCommenters, of: caller.userID, in: channel, tx)
        guard [0, -1].contains(request.cleanMsgPeriod) else {
            throw RequestError.protoPayload("/cleanMsgPeriod: neither 0 nor -1")
        }
        // Look up the post only for a ban. A ban can be lifted even after the post is deleted.
        let comments =
            isBanned && request.cleanMsgPeriod == -1
            ? try request.postID.map { try tx.known(channel.wireID, $0, to: caller.userID) } : nil
        if isBanned {
            var sight = Sight(of: caller.userID, found: found, limits: limits)
            for user in users {
                let member = try tx.member(user, of: channel)
                // An administrator cannot be banned before losing the administrator's rights.
                guard user != channel.owner, member?.permissions.isEmpty != false else {
                    throw RequestError.notAllowed
                }
                guard try member != nil || sight.sees(user, in: tx) else {
                    throw RequestError.userNotFound
                }
            }
            let added = try users.filter { try !tx.reader.isBanned($0, from: channel.key) }
            let count = try tx.banCount(of: channel) + added.count
            guard count <= limits.maxCommentBans else {
                throw RequestError.protoPayload(
                    "/userIds: \(count) users, limit \(limits.maxCommentBans)"
                )
            }
        }
        try tx.setBanned(isBanned, users, from: channel)
        if let comments {
            try tx.deleteMessages(of: users, in: comments, by: caller, limits: limits)
        }
    }

    /// - Parameter permissions: the new permissions; empty to make the users plain members.
    private func appoint(
        _ users: [UserID],
        _ permissions: RoleTable.Permissions,
        in chat: ChatState,
        by caller: Caller,
        _ tx: WriteTransaction
    ) throws {
        try ChatRules.require(.appoint, of: caller.userID, in: chat, tx)
        var changed: [UserID] = []
        var added = 0
        for user in users {
            guard let member = try tx.member(user, of: chat) else {
                if permissions.isEmpty { continue }
                throw RequestError.userNotFound
            }
            guard user != chat.owner else { throw RequestError.notAllowed }
            if member.permissions != permissions { changed.append(user) }
            if member.permissions.isEmpty, !permissions.isEmpty { added += 1 }
        }
        let own = try tx.member(caller.userID, of: chat)?.permissions ?? []
        guard caller.userID == chat.owner || permissions.isSubset(of: own) else {
            throw RequestError.notAllowed
        }
        guard !changed.isEmpty else { return }
        if added > 0 {
            // The owner counts as an administrator.
            let count = try tx.admins(of: chat).count + 1 + added
            guard count <= limits.maxChatAdmins else {
                throw RequestError.protoPayload(
                    "/userIds: \(count) administrators, limit \(limits.maxChatAdmins)"
                )
            }
        }
        for user in changed { try tx.setPermissions(permissions, of: user, in: chat) }
        try tx.announce(chat, last: nil, except: caller.connectionID)
    }

    /// Answers `CHAT_LEAVE` (58): leaves the chat, or withdraws the caller's request to join it.
    ///
    /// - Throws: `chat.not.found`. Throws `not.allowed` for the owner, and for chats that nobody
    ///   joins, such as dialogs.
    /// - Note: A command.
    func chatLeave(
        _ request: ChatLeaveRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatLeaveReply {
        if try tx.takeBackRequest(of: caller.userID, in: request.chatID) {
            return ChatLeaveReply()
        }
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        try ChatRules.require(.leave, of: caller.userID, in: chat, tx)
        if chat.kind == .channel {
            try tx.remove([caller.userID], from: chat)
            tellGone([caller.userID], from: chat, except: caller.connectionID, in: tx)
            return ChatLeaveReply()
        }
        let (message, previous) = try tx.appendEvent(
            Attach(type: .control, event: "leave", userID: caller.userID),
            to: chat,
            by: caller.userID
        )
        try tx.remove([caller.userID], from: chat)
        try tx.announce(chat, last: message, except: nil)
        try tx.tell(message, previous: previous, in: chat, except: nil)
        tellGone([caller.userID], from: chat, except: caller.connectionID, in: tx)
        return ChatLeaveReply()
    }

    private func tellGone(
        _ users: [UserID],
        from chat: ChatState,
        except connection: ConnectionID?,
        in tx: WriteTransaction
    ) {
        let push = NotifChat(
            chat: Chat.left(
                chat.key,
                owner: chat.owner,
                created: chat.created,
                joined: chat.created,
                at: tx.ct
            )
        )
        tx.emit(.push(.notifChat(push), to: users, except: connection))
    }

    /// Answers `CHAT_MEMBERS` (59): returns a page of members in the order of their ids.
    ///
    /// - Throws: `chat.not.found`, `not.allowed` for callers who may not see the requested list.
    /// - Note: A query.
    func chatMembers(
        _ request: ChatMembersRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatMembersReply {
        let view = try snapshot.knownView(request.chatID, of: caller.userID)
        let type = request.type ?? .member
        let action: RoleTable.Action =
            switch type {
            case .joinRequest: .decideRequests
            case .commentsBlacklist: .banCommenters
            case .member, .admin, .blocked: .seeMembers
            }
        try ChatRules.require(action, of: view)
        let asked = request.count ?? Int64(limits.membersPageSize)
        let query = request.query.map { "\($0)".lowercased() } ?? ""
        func isWanted(_ account: Account) -> Bool {
            query.isEmpty || Self.isNamed(account, query)
        }
        let marker = UserID(request.marker ?? 0)
        let limit = Int(clamping: min(max(1, asked), Int64(limits.maxMembersPage)))
        let page: (members: [ChatMember], next: UserID?)
        switch type {
        case .joinRequest:
            page = try snapshot.joinRequests(
                of: view.key,
                after: marker,
                limit: limit,
                budget: caller.replyBudget,
                where: isWanted
            )
        case .member,
            .admin where !view.kind.isPair:
            page = try snapshot.members(
                of: view,
                after: marker,
                limit: limit,
                budget: caller.replyBudget,
                onlyAdmins: type == .admin,
                where: isWanted
            )
        case .commentsBlacklist:
            page = try snapshot.banned(
                from: view.key,
                after: marker,
                limit: limit,
                budget: caller.replyBudget,
                where: isWanted
            )
        case .admin, .blocked:
            // Dialogs have no administrators, and the server keeps no list of blocked members.
            page = ([], nil)
        }
        return ChatMembersReply(members: page.members, marker: page.next?.rawValue)
    }

    /// Returns whether the first or the last name begins with `query`, which is in lower case.
    private static func isNamed(_ account: Account, _ query: String) -> Bool {
        [account.name, account.lastName ?? ""].contains { $0.lowercased().hasPrefix(query) }
    }

    // MARK: - Changing chats

    /// Answers `CHAT_UPDATE` (55): changes title, description, options, pinned message, links or
    /// owner.
    ///
    /// - Throws: `chat.not.found`, `not.allowed`, `link.taken`, `proto.payload`. Throws one of the
    ///   first two also for a dialog in which one partner has blocked the other. Throws `not.found`
    ///   when the caller does not see the message to pin, and `user.not.found` when the new owner
    ///   is not a member.
    /// - Note: A command.
    func chatUpdate(
        _ request: ChatUpdateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatUpdateReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        try ChatRules.requireOpen(chat, for: caller.userID)
        guard request.photoToken == nil else {
            throw RequestError.protoPayload("/photoToken: not served")
        }
        func require(_ action: RoleTable.Action) throws {
            try ChatRules.require(action, of: caller.userID, in: chat, tx)
        }
        var details = chat.details
        var events: [Attach] = []
        if let title = request.theme {
            try require(.changeTitle)
            guard !title.isEmpty else { throw RequestError.protoPayload("/theme: empty") }
            if title != details.title {
                details.title = title
                events.append(
                    Attach(type: .control, title: title, event: "title", userID: caller.userID)
                )
            }
        }
        if let description = request.description {
            try require(.changeDescription)
            details.description = description.isEmpty ? nil : description
        }
        if let options = request.options {
            try require(.changeOptions)
            details.options = try changed(details.options, by: options)
        }
        if let id = request.pinMessageID {
            try require(.pin)
            let pinned = id.rawValue == 0 ? nil : id
            if let pinned, try tx.message(pinned, in: chat, visibleTo: caller.userID) == nil {
                throw RequestError.notFound
            }
            if pinned != details.pinned, request.notifyPin {
                let event: Text = pinned == nil ? "unpin" : "pin"
                events.append(Attach(type: .control, event: event, userID: caller.userID))
            }
            details.pinned = pinned
        }
        if request.access != nil || request.link != nil {
            try require(.changeAccess)
            try setAccess(request.access, request.link, of: chat, in: &details, tx)
        }
        if request.revokePrivateLink {
            try require(.changeLink)
            guard !details.isPublic else {
                throw RequestError.protoPayload("/revokePrivateLink: the chat has a public name")
            }
            details.link = ChatLink.newInvitation(environment)
        }
        if let owner = request.changeOwnerID {
            try require(.changeOwner)
            guard try tx.member(owner, of: chat) != nil, try tx.isListed(owner) else {
                throw RequestError.userNotFound
            }
            details.owner = owner
        }

        if details != chat.details {
            let before = chat.owner
            try tx.set(details, of: chat)
            if details.owner != before {
                try tx.setPermissions(.ofOwner, of: before, in: chat)
                try tx.setPermissions([], of: details.owner, in: chat)
            }
            let stored = try events.map { try tx.appendEvent($0, to: chat, by: caller.userID) }
            try tx.announce(chat, last: stored.last?.message, except: caller.connectionID)
            for (message, previous) in stored {
                try tx.tell(message, previous: previous, in: chat, except: caller.connectionID)
            }
        }
        return ChatUpdateReply(chat: try tx.seen(chat, by: caller.userID))
    }

    private func changed(
        _ options: RoleTable.Options,
        by changes: NameMap<Bool>
    ) throws -> RoleTable.Options {
        var options = options
        for (name, isSet) in changes.pairs {
            guard let option = RoleTable.Options.named.first(where: { name == Text($0.name) })
            else { throw RequestError.protoPayload("/options/\(name): unknown option") }
            if isSet { options.insert(option.value) } else { options.remove(option.value) }
        }
        return options
    }

    // MARK: - Clearing and deleting chats

    /// Answers `CHAT_CLEAR` (54): clears the history up to a time, for the caller or for everybody.
    ///
    /// - Throws: `chat.not.found`, `not.allowed`.
    /// - Note: A command.
    func chatClear(
        _ request: ChatClearRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatClearReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        let action: RoleTable.Action = request.forAll ? .clearForAll : .clear
        try ChatRules.require(action, of: caller.userID, in: chat, tx)
        let last = request.lastEventTime.map { MessageID.last(at: $0) } ?? chat.head.id
        let member = try tx.member(caller.userID, of: chat)
        let shown = member?.shownTime
        if request.forAll {
            let deleted = try tx.remove(upTo: last, sentBy: nil, in: chat)
            try tx.tellDeleted(deleted, in: chat, except: caller.connectionID, limits: limits)
        } else {
            try tx.clear(chat, upTo: last, for: caller.userID)
        }
        let cleared = try tx.seen(chat, by: caller.userID)
        if !request.forAll {
            let push = NotifChat(chat: cleared)
            tx.emit(.push(.notifChat(push), to: [caller.userID], except: caller.connectionID))
        }
        if let member, member.shownTime != shown, !chat.isBig {
            // Clearing the history also marks it as read.
            let push = NotifMark(
                chatID: chat.wireID,
                userID: caller.userID,
                mark: member.shownTime,
                setAsUnread: false
            )
            let others = chat.memberIDs.filter { $0 != caller.userID }
            tx.emit(.push(.notifMark(push), to: others, except: caller.connectionID))
        }
        return ChatClearReply(chat: cleared)
    }

    /// Answers `CHAT_DELETE` (52): deletes a group or channel for everybody, or only leaves it.
    ///
    /// - Throws: `chat.not.found`, `not.allowed`.
    /// - Note: A command.
    func chatDelete(
        _ request: ChatDeleteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatDeleteReply {
        guard request.forAll else {
            _ = try chatLeave(ChatLeaveRequest(chatID: request.chatID), from: caller, in: tx)
            return ChatDeleteReply()
        }
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        try ChatRules.require(.deleteChat, of: caller.userID, in: chat, tx)
        let members = chat.memberIDs
        try tx.discardRequests(in: chat)
        try tx.unbanAll(from: chat)
        // If the history is long, this removes only a part of it. The rest is invisible, because
        // the chat then has no members.
        _ = try tx.remove(upTo: chat.head.id, sentBy: nil, in: chat)
        try tx.set(ChatDetails(owner: chat.owner), of: chat)
        try tx.removeEverybody(from: chat)
        tellGone(members, from: chat, except: caller.connectionID, in: tx)
        return ChatDeleteReply()
    }
}
