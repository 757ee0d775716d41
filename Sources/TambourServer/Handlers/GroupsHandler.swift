import TambourProtocol
import TambourStore

/// Family `groups`: members, rights, titles, invitations, and the end of a chat. Wire: protocol-spec/opcodes/groups.yaml
struct GroupsHandler: Sendable {
    let limits: Limits
    let environment: Environment

    // MARK: - Members

    /// Answers `CHAT_MEMBERS_UPDATE` (77): adds or removes members, gives or takes rights.
    ///
    /// - Throws: `chat.not.found`, `user.not.found`, `not.allowed`, `proto.payload` for no users, too
    ///   many of them, and values that mean nothing.
    /// - Note: A command.
    func chatMembersUpdate(
        _ request: ChatMembersUpdateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatMembersUpdateReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        guard !request.userIDs.isEmpty else { throw RequestError.protoPayload("/userIds: empty") }
        let users = Set(request.userIDs).sorted()
        switch (request.type ?? .member, request.operation) {
        case (.member, .add):
            try add(users, to: chat, showingHistory: request.showHistory, by: caller, in: tx)
        case (.member, .remove):
            guard [0, -1].contains(request.cleanMsgPeriod) else {
                throw RequestError.protoPayload("/cleanMsgPeriod: neither 0 nor -1")
            }
            let withMessages = request.cleanMsgPeriod == -1
            try remove(users, from: chat, withMessages: withMessages, by: caller, in: tx)
        case (.admin, .add):
            guard let bits = request.permissions,
                1...RoleTable.Permissions.ofOwner.rawValue ~= bits
            else { throw RequestError.protoPayload("/permissions: not between 1 and 2047") }
            try appoint(users, RoleTable.Permissions(rawValue: bits), in: chat, by: caller, tx)
        case (.admin, .remove):
            try appoint(users, [], in: chat, by: caller, tx)
        case (.joinRequest, _), (.blocked, _), (.commentsBlacklist, _):
            throw RequestError.notAllowed
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
        for user in added { try tx.requireInvitable(user, by: caller.userID) }
        guard chat.memberCount + added.count <= limits.maxGroupMembers else {
            throw RequestError.protoPayload(
                "/userIds: \(chat.memberCount + added.count) members, "
                    + "limit \(limits.maxGroupMembers)"
            )
        }
        guard !added.isEmpty else { return }
        try tx.add(added, to: chat, showingHistory: showingHistory)
        let (message, previous) = try tx.appendEvent(
            Attach(type: .control, event: "add", userID: caller.userID, userIDs: added),
            to: chat,
            by: caller.userID
        )
        try tx.announce(chat, last: message, except: caller.connectionID)
        tx.tell(message, previous: previous, in: chat, except: caller.connectionID)
    }

    private func remove(
        _ users: [UserID],
        from chat: ChatState,
        withMessages: Bool,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws {
        let members = try users.compactMap { try tx.member($0, of: chat) }
        // Administrators are another right; whoever names nobody that is there needs the usual one.
        if members.isEmpty || members.contains(where: \.permissions.isEmpty) {
            try ChatRules.require(.removeMember, of: caller.userID, in: chat, tx)
        }
        if members.contains(where: { !$0.permissions.isEmpty }) {
            try ChatRules.require(.appoint, of: caller.userID, in: chat, tx)
        }
        let removed = members.map(\.userID)
        // To go oneself is to leave.
        guard !removed.contains(chat.owner), !removed.contains(caller.userID) else {
            throw RequestError.notAllowed
        }
        guard !removed.isEmpty else { return }
        var deleted: [MessageID] = []
        if withMessages {
            for user in removed { deleted += try tx.remove(from: user, in: chat) }
        }
        try tx.remove(removed, from: chat)
        let (message, previous) = try tx.appendEvent(
            Attach(type: .control, event: "remove", userID: caller.userID, userIDs: removed),
            to: chat,
            by: caller.userID
        )
        tellDeleted(deleted, in: chat, by: caller, in: tx)
        try tx.announce(chat, last: message, except: caller.connectionID)
        tx.tell(message, previous: previous, in: chat, except: caller.connectionID)
        tellGone(removed, from: chat, except: nil, in: tx)
    }

    /// - Parameter permissions: empty for those of a plain member.
    private func appoint(
        _ users: [UserID],
        _ permissions: RoleTable.Permissions,
        in chat: ChatState,
        by caller: Caller,
        _ tx: WriteTransaction
    ) throws {
        try ChatRules.require(.appoint, of: caller.userID, in: chat, tx)
        var changed: [UserID] = []
        for user in users {
            guard let member = try tx.member(user, of: chat) else {
                if permissions.isEmpty { continue }
                throw RequestError.userNotFound
            }
            guard user != chat.owner else { throw RequestError.notAllowed }
            if member.permissions != permissions { changed.append(user) }
        }
        let own = try tx.member(caller.userID, of: chat)?.permissions ?? []
        guard caller.userID == chat.owner || permissions.isSubset(of: own) else {
            throw RequestError.notAllowed
        }
        guard !changed.isEmpty else { return }
        for user in changed { try tx.setPermissions(permissions, of: user, in: chat) }
        try tx.announce(chat, last: nil, except: caller.connectionID)
    }

    /// Answers `CHAT_LEAVE` (58).
    ///
    /// - Throws: `chat.not.found`, `not.allowed` for the owner and outside of groups.
    /// - Note: A command.
    func chatLeave(
        _ request: ChatLeaveRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatLeaveReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        try ChatRules.require(.leave, of: caller.userID, in: chat, tx)
        let (message, previous) = try tx.appendEvent(
            Attach(type: .control, event: "leave", userID: caller.userID),
            to: chat,
            by: caller.userID
        )
        try tx.remove([caller.userID], from: chat)
        try tx.announce(chat, last: message, except: nil)
        tx.tell(message, previous: previous, in: chat, except: nil)
        tellGone([caller.userID], from: chat, except: caller.connectionID, in: tx)
        return ChatLeaveReply()
    }

    private func tellDeleted(
        _ deleted: [MessageID],
        in chat: ChatState,
        by caller: Caller,
        in tx: WriteTransaction
    ) {
        for start in stride(from: 0, to: deleted.count, by: limits.maxIDsPerRequest) {
            let ids = Array(deleted[start...].prefix(limits.maxIDsPerRequest))
            let push = NotifMsgDelete(chatID: chat.wireID, messageIDs: ids)
            tx.emit(.push(.notifMsgDelete(push), to: chat.memberIDs, except: caller.connectionID))
        }
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

    /// Answers `CHAT_MEMBERS` (59): a page of members in the order of their ids.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func chatMembers(
        _ request: ChatMembersRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatMembersReply {
        let view = try snapshot.knownView(request.chatID, of: caller.userID)
        try ChatRules.require(.read, of: view)
        let type = request.type ?? .member
        // Nobody has to ask to be let in, and nobody is kept out.
        guard type == .member || type == .admin && view.kind == .group else {
            return ChatMembersReply()
        }
        let asked = request.count ?? Int64(limits.membersPageSize)
        let query = request.query.map { "\($0)".lowercased() } ?? ""
        let page = try snapshot.members(
            of: view,
            after: UserID(request.marker ?? 0),
            limit: Int(min(max(1, asked), Int64(limits.maxMembersPage))),
            onlyAdmins: type == .admin
        ) { account in
            query.isEmpty || Self.isNamed(account, query)
        }
        return ChatMembersReply(members: page.members, marker: page.next?.rawValue)
    }

    /// Whether one of the names begins with `query`, which is in lower case.
    private static func isNamed(_ account: Account, _ query: String) -> Bool {
        [account.name, account.lastName ?? ""].contains { $0.lowercased().hasPrefix(query) }
    }

    // MARK: - The chat itself

    /// Answers `CHAT_UPDATE` (55): title, description, options, pinned message, owner.
    ///
    /// - Throws: `chat.not.found`, `not.allowed`, `not.found` for a message to pin that the caller does
    ///   not see, `user.not.found` for an owner who is no member, `proto.payload`.
    /// - Note: A command.
    func chatUpdate(
        _ request: ChatUpdateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatUpdateReply {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        let unserved = [
            ("photoToken", request.photoToken), ("access", request.access), ("link", request.link),
        ]
        for (key, value) in unserved where value != nil {
            throw RequestError.protoPayload("/\(key): not served")
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
        if request.revokePrivateLink {
            try require(.changeLink)
            details.link = newInvitation()
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
                tx.tell(message, previous: previous, in: chat, except: caller.connectionID)
            }
        }
        return ChatUpdateReply(chat: try tx.seen(chat, by: caller.userID))
    }

    /// 128 random bits: an invitation is found by who was given it and by nobody else.
    private func newInvitation() -> Text {
        let digits = environment.randomBytes(16).map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0\(text)" : text
        }
        return Text("join/\(digits.joined())")
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

    // MARK: - Invitations

    /// Answers `CHAT_JOIN` (57): makes the caller a member of the group that the link leads to.
    ///
    /// - Throws: `not.found` for a link that leads nowhere, `not.allowed` for a group that is full.
    /// - Note: A command.
    func chatJoin(
        _ request: ChatJoinRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatJoinReply {
        guard let link = invitation(in: request.link), let chat = try tx.chat(invitedBy: link)
        else { throw RequestError.notFound }
        if try tx.member(caller.userID, of: chat) == nil {
            guard chat.memberCount < limits.maxGroupMembers else { throw RequestError.notAllowed }
            try tx.add([caller.userID], to: chat, showingHistory: true)
            let (message, previous) = try tx.appendEvent(
                Attach(type: .control, event: "joinByLink", userID: caller.userID),
                to: chat,
                by: caller.userID
            )
            try tx.announce(chat, last: message, except: caller.connectionID)
            tx.tell(message, previous: previous, in: chat, except: caller.connectionID)
        }
        return ChatJoinReply(chat: try tx.seen(chat, by: caller.userID))
    }

    /// Answers `CHAT_CHECK_LINK` (56).
    ///
    /// - Throws: `not.found` for a link that leads nowhere.
    /// - Note: A query.
    func chatCheckLink(
        _ request: ChatCheckLinkRequest,
        in snapshot: ReadTransaction
    ) throws -> ChatCheckLinkReply {
        guard let link = invitation(in: request.link),
            try snapshot.chat(invitedBy: link) != nil
        else { throw RequestError.notFound }
        return ChatCheckLinkReply()
    }

    /// Answers `LINK_INFO` (89): the chat, or as much of it as one may know before joining.
    ///
    /// - Note: A query.
    func linkInfo(
        _ request: LinkInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> LinkInfoReply {
        guard let link = invitation(in: request.link),
            let found = try snapshot.chat(invitedBy: link)
        else { return LinkInfoReply() }
        guard let view = try snapshot.view(found.key, for: caller.userID) else {
            return LinkInfoReply(chat: found.chat)
        }
        return LinkInfoReply(chat: try snapshot.chat(view))
    }

    /// The part of a link that counts: clients send it alone, or with an address before it.
    private func invitation(in link: Text) -> Text? {
        let text = "\(link)"
        guard let start = text.ranges(of: "join/").last?.lowerBound else { return nil }
        return Text(String(text[start...]))
    }

    // MARK: - The end of a chat

    /// Answers `CHAT_CLEAR` (54): the history up to a time, for the caller or for everybody.
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
        if request.forAll {
            let deleted = try tx.remove(upTo: last, in: chat)
            tellDeleted(deleted, in: chat, by: caller, in: tx)
        } else {
            try tx.clear(chat, upTo: last, for: caller.userID)
        }
        let cleared = try tx.seen(chat, by: caller.userID)
        if !request.forAll {
            let push = NotifChat(chat: cleared)
            tx.emit(.push(.notifChat(push), to: [caller.userID], except: caller.connectionID))
        }
        return ChatClearReply(chat: cleared)
    }

    /// Answers `CHAT_DELETE` (52): ends a group, or leaves it.
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
        _ = try tx.remove(upTo: chat.head.id, in: chat)
        try tx.set(ChatDetails(owner: chat.owner), of: chat)
        try tx.remove(members, from: chat)
        tellGone(members, from: chat, except: caller.connectionID, in: tx)
        return ChatDeleteReply()
    }
}
