package import TambourProtocol
import TambourSQL

extension WriteTransaction {
    /// Returns the chat that `wireID` names for `user`, who must be a member of it.
    ///
    /// - Returns: nil both for an unknown chat and for one that `user` is not in: the two look
    ///   alike.
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

    /// Returns the dialog of two users, or the saved messages of one; nil until it is created.
    package func chat(of a: UserID, and b: UserID) throws -> ChatState? {
        guard let key = try pairKey(a, b) else { return nil }
        return try chat(key)
    }

    /// Returns the member's state; nil when `user` is not a member. The members of comments are
    /// those of the channel.
    package func member(_ user: UserID, of chat: ChatState) throws -> MemberState? {
        let chat = chat.post?.channel ?? chat
        if let member = chat.members[user] { return member }
        guard chat.isBig else { return nil }
        let statement = store.members.byID
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.key.rawValue)
        guard try statement.step() else { return nil }
        let member = MemberState(row: statement)
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
        let statement = store.chats.byID
        statement.bind(1, key.rawValue)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let kind = ChatKind(rawValue: statement.int(1)) ?? .group
        let isBig = statement.int(15) != 0 || kind == .channel || kind == .comments
        let low = UserID(statement.int(2))
        let high = UserID(statement.int(3))
        // Read the row first: loading the channel of comments binds this statement again.
        let details = ChatDetails(
            owner: UserID(statement.int(4)),
            title: statement.isNull(5) ? nil : Text(unchecked: Bytes(statement.bytes(5))),
            description: statement.isNull(9)
                ? nil : Text(unchecked: Bytes(statement.bytes(9))),
            options: RoleTable.Options(rawValue: statement.int(10)),
            pinned: statement.int(11) == 0 ? nil : MessageID(statement.int(11)),
            link: statement.isNull(12) ? nil : Text(unchecked: Bytes(statement.bytes(12))),
            isPublic: statement.int(14) != 0,
            reactions: statement.isNull(13)
                ? nil : Packed(unchecked: Bytes(statement.bytes(13)))
        )
        let (created, changeClock) = (statement.int(6), statement.int(8))
        statement.reset()
        let chat = ChatState(
            key: key,
            kind: kind,
            pair: kind.isPair ? (low, high) : nil,
            post: kind == .comments ? try post(of: key) : nil,
            details: details,
            created: created,
            isBig: isBig,
            head: try reader.head(of: key),
            changeClock: changeClock,
            members: isBig ? [:] : try allMembers(of: key),
            memberIDs: try reader.memberIDs(of: key),
            blockers: kind == .dialog ? try reader.blockers(low, high) : []
        )
        chats[key] = chat
        return chat
    }

    private func allMembers(of chat: ChatKey) throws -> [UserID: MemberState] {
        let statement = store.members.ofChat
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        var members: [UserID: MemberState] = [:]
        while try statement.step() {
            let member = MemberState(row: statement)
            members[member.userID] = member
        }
        return members
    }

    /// Creates the dialog of two users, or the saved messages of one.
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

    /// Creates a group or a channel; its id is `-(ct * 4096 + n)`, unique and within 53 bits for
    /// JSON clients. In the ids of channels `n` begins at `ChatID.channelBit`.
    ///
    /// - Parameter members: without duplicates, including the owner.
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
        // A channel is big from the start, so a post costs the same for any number of readers.
        let isBig = kind == .channel || memberIDs.count > store.limits.fanOutMembers
        let insert = store.chats.insert
        insert.bind(1, key.rawValue)
        insert.bind(2, kind.rawValue)
        insert.bind(3, pair?.low.rawValue)
        insert.bind(4, pair?.high.rawValue)
        insert.bind(5, owner.rawValue)
        insert.bindWords(6, title)
        insert.bind(7, ct)
        insert.bind(8, Int64(memberIDs.count))
        insert.bind(9, ct)
        try insert.run()
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
        // Comments do not change the channel's readers.
        guard chat.kind != .comments else { return }
        member.touch(ct)
        save(.clock, of: member, in: chat)
    }

    /// Schedules these columns of a member's row for the next flush.
    func save(_ what: MemberState.Unsaved, of member: MemberState, in chat: ChatState) {
        if member.mustSave(what) { dirtyMembers.append((chat.key, member)) }
    }
}

extension MemberState {
    convenience init(row: any SQLStatement) {
        self.init(
            userID: UserID(row.int(0)),
            joined: row.int(1),
            readTime: row.int(2),
            shownTime: row.int(9),
            readNumber: row.int(3),
            ct: row.int(4),
            isBig: row.int(5) != 0,
            permissions: RoleTable.Permissions(rawValue: row.int(6)),
            floor: MessageID(row.int(7)),
            hiddenNumber: row.int(8)
        )
    }
}
