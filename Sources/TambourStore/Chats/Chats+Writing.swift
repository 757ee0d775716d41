package import TambourProtocol
import TambourSQL

extension WriteTransaction {
    /// Returns the chat that `wireID` means for `user`, if the user is a member.
    ///
    /// - Returns: nil if the chat is unknown or `user` is not a member. Callers cannot distinguish
    ///   the two cases.
    package func chat(_ wireID: ChatID, visibleTo user: UserID) throws -> ChatState? {
        let key: ChatKey?
        if let partner = wireID.partner(of: user) {
            key = try pairKey(user, partner)
        } else {
            key = ChatKey(wireID.rawValue)
        }
        guard let key, let chat = try chat(key), try member(user, of: chat) != nil else {
            return nil
        }
        return chat
    }

    /// Returns the dialog of two users. If both are the same user, returns this user's saved
    /// messages. Nil if the chat is not stored.
    package func chat(of a: UserID, and b: UserID) throws -> ChatState? {
        guard let key = try pairKey(a, b) else { return nil }
        return try chat(key)
    }

    /// Returns the member's state; nil if `user` is not a member. The members of comments are the
    /// members of the channel.
    package func member(_ user: UserID, of chat: ChatState) throws -> MemberState? {
        let chat = chat.post?.channel ?? chat
        if let member = chat.members[user] { return member }
        guard chat.isBig else { return nil }
        let member = try store.members.byID.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
        } read: {
            MemberState(row: $0)
        }
        guard let member else { return nil }
        chat.members[user] = member
        return member
    }

    private func pairKey(_ a: UserID, _ b: UserID) throws -> ChatKey? {
        let pair = Pair(
            low: min(a.rawValue, b.rawValue),
            high: max(a.rawValue, b.rawValue)
        )
        if let key = pairs[pair] { return key }
        guard let key = try reader.pairKey(a, b) else { return nil }
        pairs[pair] = key
        return key
    }

    func chat(_ key: ChatKey) throws -> ChatState? {
        if let chat = chats[key] { return chat }
        // End the query before building the state. For comments, building the state loads the
        // channel, which runs the same query again.
        let stored = try store.chats.byID.one {
            $0.bind(1, key.rawValue)
        } read: {
            StoredChat(row: $0)
        }
        guard let stored else { return nil }
        let (kind, isBig) = (stored.kind, stored.isBig)
        let chat = ChatState(
            key: key,
            kind: kind,
            pair: kind.isPair ? (stored.low, stored.high) : nil,
            post: kind == .comments ? try post(of: key) : nil,
            details: stored.details,
            created: stored.created,
            isBig: isBig,
            head: try reader.head(of: key),
            changeClock: stored.changeClock,
            members: isBig ? [:] : try allMembers(of: key),
            memberIDs: try reader.memberIDs(of: key),
            blockers: kind == .dialog ? try reader.blockers(stored.low, stored.high) : []
        )
        chats[key] = chat
        return chat
    }

    private func allMembers(of chat: ChatKey) throws -> [UserID: MemberState] {
        var members: [UserID: MemberState] = [:]
        try store.members.ofChat.each {
            $0.bind(1, chat.rawValue)
        } do: { row in
            let member = MemberState(row: row)
            members[member.userID] = member
        }
        return members
    }

    /// Creates the dialog of two users. If both are the same user, creates this user's saved
    /// messages.
    package func createPairChat(_ a: UserID, _ b: UserID, by creator: UserID) throws -> ChatState {
        writes += 1
        lastChatKey += 1
        let low = min(a, b)
        let high = max(a, b)
        return try create(
            ChatKey(lastChatKey),
            kind: a == b ? .saved : .dialog,
            pair: (low, high),
            owner: creator,
            title: nil,
            memberIDs: a == b ? [a] : [low, high]
        )
    }

    /// Creates a group or a channel. Its id is `-(ct * 4096 + n)`. The id is unique and fits into
    /// 53 bits, as JSON clients need. For channels, `n` starts at `ChatID.channelBit`.
    ///
    /// - Parameter members: the members, without duplicates and including the owner.
    package func createGroup(
        _ kind: ChatKind = .group,
        title: Text,
        owner: UserID,
        members: [UserID]
    ) throws -> ChatState {
        writes += 1
        var number = ct * 4096 + (kind == .channel ? ChatID.channelBit : 0)
        while try chat(ChatKey(-number)) != nil { number += 1 }
        return try create(
            ChatKey(-number),
            kind: kind,
            pair: nil,
            owner: owner,
            title: title,
            memberIDs: members.sorted()
        )
    }

    private func create(
        _ key: ChatKey,
        kind: ChatKind,
        pair: (low: UserID, high: UserID)?,
        owner: UserID,
        title: Text?,
        memberIDs: [UserID]
    ) throws -> ChatState {
        // A channel is big from the start, so the cost of a post does not depend on the number of
        // members.
        let isBig = kind == .channel || memberIDs.count > store.limits.fanOutMembers
        try store.chats.insert.run {
            $0.bind(1, key.rawValue)
            $0.bind(2, kind.rawValue)
            $0.bind(3, pair?.low.rawValue)
            $0.bind(4, pair?.high.rawValue)
            $0.bind(5, owner.rawValue)
            $0.bindWords(6, title)
            $0.bind(7, ct)
            $0.bind(8, Int64(memberIDs.count))
            $0.bind(9, ct)
        }
        var members: [UserID: MemberState] = [:]
        members.reserveCapacity(memberIDs.count)
        for id in memberIDs {
            members[id] = MemberState(
                userID: id,
                joined: ct,
                readTime: 0,
                shownTime: 0,
                readNumber: 0,
                ct: ct,
                isBig: isBig
            )
        }
        let chat = ChatState(
            key: key,
            kind: kind,
            pair: pair,
            details: ChatDetails(owner: owner, title: title),
            created: ct,
            isBig: isBig,
            head: .empty,
            changeClock: ct,
            members: members,
            memberIDs: memberIDs
        )
        chats[key] = chat
        if let pair, pair.low != pair.high { try moveDrafts(of: pair.low, and: pair.high) }
        if let pair {
            pairs[Pair(low: pair.low.rawValue, high: pair.high.rawValue)] = key
        }
        for member in members.values { save(.row, of: member, in: chat) }
        if kind == .dialog, let pair { try addPartners(pair.low, pair.high) }
        if let pair { try showDelayed(of: pair.low, and: pair.high, in: chat) }
        return chat
    }

    /// Records a change that every member can see.
    func touch(_ chat: ChatState) {
        if chat.isBig {
            chat.changeClock = ct
            if !chat.isClockDirty {
                chat.isClockDirty = true
                touched.append(chat)
            }
        } else {
            for member in chat.members.values { touch(member, in: chat) }
        }
    }

    func touch(_ member: MemberState, in chat: ChatState) {
        // A change in comments does not change the rows of the channel's members.
        guard chat.kind != .comments else { return }
        member.touch(ct)
        save(.clock, of: member, in: chat)
    }

    /// Marks columns of a member's row as changed. The next flush writes these columns.
    func save(_ what: MemberState.Unsaved, of member: MemberState, in chat: ChatState) {
        if member.mustSave(what) { dirtyMembers.append((chat.key, member)) }
    }
}

/// A row of `chat`.
private struct StoredChat {
    let kind: ChatKind
    let low: UserID
    let high: UserID
    let details: ChatDetails
    let created: Int64
    let changeClock: Int64
    let isBig: Bool

    init(row: SQLRow<ChatColumn>) {
        kind = ChatKind(rawValue: row.int(.kind)) ?? .group
        low = UserID(row.int(.lowUser))
        high = UserID(row.int(.highUser))
        details = ChatDetails(
            owner: UserID(row.int(.owner)),
            title: row.optionalText(.title),
            description: row.optionalText(.description),
            options: RoleTable.Options(rawValue: row.int(.options)),
            pinned: row.nonZero(.pinned).map { MessageID($0) },
            link: row.optionalText(.link),
            isPublic: row.bool(.isPublic),
            reactions: row.packed(.reactions)
        )
        created = row.int(.created)
        changeClock = row.int(.ctHead)
        isBig = row.bool(.big) || kind == .channel || kind == .comments
    }
}

extension MemberState {
    convenience init(row: SQLRow<MemberColumn>) {
        self.init(
            userID: UserID(row.int(.userID)),
            joined: row.int(.joined),
            readTime: row.int(.readTime),
            shownTime: row.int(.shownTime),
            readNumber: row.int(.readN),
            ct: row.int(.ct),
            isBig: row.bool(.big),
            permissions: RoleTable.Permissions(rawValue: row.int(.permissions)),
            floor: MessageID(row.int(.floor)),
            hiddenNumber: row.int(.hiddenN)
        )
    }
}
