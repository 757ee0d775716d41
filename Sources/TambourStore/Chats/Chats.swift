package import TambourProtocol
import TambourSQL

struct ChatStatements {
    /// The columns of `chat` and `member` from which a `Chat` for one member is built.
    static let viewColumns =
        "c.id, c.kind, c.low_user, c.high_user, c.owner, c.title, c.created, c.member_count, "
        + "c.ct_head, m.user_id, m.joined, m.read_time, m.read_n, m.ct, m.big, "
        + "c.description, c.options, c.pinned, m.permissions, m.floor, c.link, c.reactions, "
        + "c.is_public, m.hidden_n, m.delayed_updated, m.delayed_failed"
    /// The number of columns in `viewColumns`.
    static let viewColumnCount = 26
    /// The columns shown before joining.
    static let cardColumns =
        "c.id, c.kind, c.owner, c.title, c.created, c.member_count, c.description, c.is_public, "
        + "c.link, c.options"
    static let cardColumnCount = 10
    static let chatColumns =
        "id, kind, low_user, high_user, owner, title, created, member_count, ct_head, "
        + "description, options, pinned, link, reactions, is_public"

    let byID: any SQLStatement
    let byPair: any SQLStatement
    let begun: any SQLStatement
    let lastPositiveID: any SQLStatement
    let insert: any SQLStatement
    let setClock: any SQLStatement
    let setDetails: any SQLStatement
    let setMemberCount: any SQLStatement
    let byLink: any SQLStatement
    let view: any SQLStatement
    let changedViews: any SQLStatement
    let changedBigViews: any SQLStatement
    let pageOfViews: any SQLStatement
    let tiedCount: any SQLStatement
    let recentPartners: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        // Whether the chat is big is read from a member's row: the limit may have changed since the
        // chat was created.
        byID = try sql.prepare(
            """
            SELECT \(Self.chatColumns),
              (SELECT m.big FROM member m WHERE m.chat = chat.id ORDER BY m.user_id LIMIT 1)
            FROM chat WHERE id = $1
            """
        )
        byPair = try sql.prepare("SELECT id FROM chat WHERE low_user = $1 AND high_user = $2")
        begun = try sql.prepare(
            """
            SELECT created FROM chat WHERE kind = 0 AND owner = $1 AND created > $2
            ORDER BY created DESC LIMIT 1 OFFSET $3
            """
        )
        lastPositiveID = try sql.prepare("SELECT max(id) FROM chat WHERE id > 0")
        insert = try sql.prepare(
            """
            INSERT INTO chat
              (id, kind, low_user, high_user, owner, title, created, member_count, ct_head)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """
        )
        setClock = try sql.prepare("UPDATE chat SET ct_head = $2 WHERE id = $1")
        setDetails = try sql.prepare(
            """
            UPDATE chat SET owner = $2, title = $3, description = $4, options = $5, pinned = $6,
              link = $7, reactions = $8, is_public = $9
            WHERE id = $1
            """
        )
        byLink = try sql.prepare(
            """
            SELECT \(Self.cardColumns) FROM chat c WHERE c.link = $1
            """
        )
        setMemberCount = try sql.prepare("UPDATE chat SET member_count = $2 WHERE id = $1")
        view = try sql.prepare(
            """
            SELECT \(Self.viewColumns) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1 AND m.chat = $2
            """
        )
        changedViews = try sql.prepare(
            """
            SELECT \(Self.viewColumns) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1 AND m.big = 0 AND m.ct > $2 AND m.ct <= $3
            ORDER BY m.ct DESC, m.chat LIMIT $4
            """
        )
        // A change in a big chat moves the chat's own clock, not every member's row: the query reads
        // one row per big chat.
        changedBigViews = try sql.prepare(
            """
            SELECT \(Self.viewColumns) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1 AND m.big = 1 AND (m.ct > $2 OR c.ct_head > $2)
              AND m.ct <= $3 AND c.ct_head <= $3
            ORDER BY c.ct_head DESC, m.chat
            """
        )
        let ofUserByActivity = """
            SELECT \(Self.viewColumns), COALESCE(
              (SELECT max(x.id) FROM message x WHERE x.chat = m.chat) / 65536, c.created) AS active
            FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1
            """
        pageOfViews = try sql.prepare(
            """
            SELECT * FROM (\(ofUserByActivity)) AS mine WHERE active <= $2
            ORDER BY active DESC, id LIMIT $3 OFFSET $4
            """
        )
        tiedCount = try sql.prepare(
            """
            SELECT count(*) FROM (\(ofUserByActivity)) AS mine WHERE active = $2
            """
        )
        recentPartners = try sql.prepare(
            """
            SELECT a.id, a.seen
            FROM (SELECT chat FROM member WHERE user_id = $1 AND ct > $3
              ORDER BY ct DESC LIMIT $2) AS recent
            JOIN chat c ON c.id = recent.chat
            JOIN account a ON a.id = c.low_user + c.high_user - $1
            WHERE c.kind = 0 AND a.privacy % 2 = 0 AND NOT EXISTS (
              SELECT 1 FROM contact k WHERE k.owner = a.id AND k.user_id = $1 AND k.blocked = 1)
            """
        )
    }
}

struct MemberStatements {
    let byID: any SQLStatement
    let ofChat: any SQLStatement
    let idsOfChat: any SQLStatement
    let marksOfChat: any SQLStatement
    let readersOfBig: any SQLStatement
    let floored: any SQLStatement
    let adminsOfChat: any SQLStatement
    let pageOfChat: any SQLStatement
    let pageOfAdmins: any SQLStatement
    let insert: any SQLStatement
    let setMarks: any SQLStatement
    let setClock: any SQLStatement
    let remove: any SQLStatement
    let makeBig: any SQLStatement
    let setPermissions: any SQLStatement
    let setFloor: any SQLStatement
    let setHidden: any SQLStatement
    let bury: any SQLStatement
    let removeAll: any SQLStatement
    let buryAll: any SQLStatement
    let revive: any SQLStatement
    let formerChanged: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let columns =
            "user_id, joined, read_time, read_n, ct, big, permissions, floor, hidden_n, shown_time"
        byID = try sql.prepare(
            "SELECT \(columns) FROM member WHERE user_id = $1 AND chat = $2"
        )
        ofChat = try sql.prepare("SELECT \(columns) FROM member WHERE chat = $1 ORDER BY user_id")
        idsOfChat = try sql.prepare("SELECT user_id FROM member WHERE chat = $1 ORDER BY user_id")
        marksOfChat = try sql.prepare(
            "SELECT user_id, shown_time, permissions FROM member WHERE chat = $1 ORDER BY user_id"
        )
        // In a big chat, the index alone answers this query.
        readersOfBig = try sql.prepare(
            """
            SELECT count(*) FROM (
              SELECT 1 FROM member
              WHERE chat = $1 AND big = 1 AND read_time >= $2 AND read_time < $3 LIMIT $4) AS part
            """
        )
        floored = try sql.prepare(
            "SELECT user_id, floor FROM member WHERE chat = $1 AND floor > 0 AND floor >= $2"
        )
        let accountsOfChat = """
            SELECT \(AccountStatements.columns(of: "a")), m.shown_time, m.permissions
            FROM member m JOIN account a ON a.id = m.user_id
            WHERE m.chat = $1 AND m.user_id > $2
            """
        // `m.user_id` is the column of the index: by `a.id` SQLite would sort all members.
        pageOfChat = try sql.prepare("\(accountsOfChat) ORDER BY m.user_id LIMIT $3")
        // The owner's row does not contain the owner's rights, so it is found by its key.
        pageOfAdmins = try sql.prepare(
            """
            \(accountsOfChat) AND m.permissions > 0
            UNION ALL
            \(accountsOfChat) AND m.permissions = 0 AND m.user_id = $4
            ORDER BY 1 LIMIT $3
            """
        )
        adminsOfChat = try sql.prepare(
            """
            SELECT user_id, permissions FROM member WHERE chat = $1 AND permissions > 0
            ORDER BY user_id
            """
        )
        insert = try sql.prepare(
            """
            INSERT INTO member
              (user_id, chat, ct, read_time, read_n, shown_time, joined, big, floor)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """
        )
        setMarks = try sql.prepare(
            """
            UPDATE member SET ct = $3, read_time = $4, read_n = $5, shown_time = $6
            WHERE user_id = $1 AND chat = $2
            """
        )
        setClock = try sql.prepare("UPDATE member SET ct = $3 WHERE user_id = $1 AND chat = $2")
        remove = try sql.prepare("DELETE FROM member WHERE user_id = $1 AND chat = $2")
        makeBig = try sql.prepare("UPDATE member SET big = 1 WHERE chat = $1")
        setPermissions = try sql.prepare(
            "UPDATE member SET permissions = $3 WHERE user_id = $1 AND chat = $2"
        )
        setFloor = try sql.prepare(
            "UPDATE member SET floor = $3 WHERE user_id = $1 AND chat = $2"
        )
        setHidden = try sql.prepare(
            "UPDATE member SET hidden_n = $3 WHERE user_id = $1 AND chat = $2"
        )
        bury = try sql.prepare(
            """
            INSERT INTO former_member (user_id, chat, owner, joined, ct)
            VALUES ($1, $2, $3, $4, $5)
            """
        )
        removeAll = try sql.prepare("DELETE FROM member WHERE chat = $1")
        buryAll = try sql.prepare(
            """
            INSERT INTO former_member (user_id, chat, owner, joined, ct)
            SELECT user_id, chat, CAST($2 AS bigint), joined, CAST($3 AS bigint)
            FROM member WHERE chat = $1
            """
        )
        revive = try sql.prepare(
            "DELETE FROM former_member WHERE user_id = $1 AND chat = $2 RETURNING joined"
        )
        formerChanged = try sql.prepare(
            """
            SELECT f.chat, f.owner, f.joined, f.ct, c.created FROM former_member f
            JOIN chat c ON c.id = f.chat
            WHERE f.user_id = $1 AND f.ct > $2 AND f.ct <= $3
            ORDER BY f.ct DESC, f.chat LIMIT $4
            """
        )
    }
}

/// A user with rights in a group or channel.
package typealias Admin = (id: UserID, permissions: RoleTable.Permissions)

/// A chat as one member sees it, without its messages.
package struct ChatView: Sendable {
    package private(set) var key: ChatKey
    package private(set) var kind: ChatKind
    /// The post of `channel` that this chat holds the comments on; nil for other chats.
    package private(set) var post: (channel: ChatKey, id: MessageID)?
    package let viewer: UserID
    /// The other user of a dialog, the viewer in saved messages, nil in chats that people join.
    package let partner: UserID?
    package let owner: UserID
    package let title: Text?
    /// Unix milliseconds.
    package let created: Int64
    package let memberCount: Int64
    package let joined: Int64
    /// The viewer's own read mark, Unix milliseconds.
    package let readTime: Int64
    package let readNumber: Int64
    /// Commit clock of the last change that the viewer can see.
    package let modified: Int64
    /// Whether the chat is above the fan-out threshold, so that changes move the chat's own clock.
    package let isBig: Bool
    package let description: Text?
    package let options: RoleTable.Options
    package let pinned: MessageID?
    /// The viewer's rights as an administrator.
    package let permissions: RoleTable.Permissions
    /// The last message that is not visible to the viewer; everything up to it is hidden.
    package let floor: MessageID
    /// The public name, or the invitation if the viewer may see it.
    package let link: Text?
    /// Whether `link` is a public name.
    package let isPublic: Bool
    /// The dense number of the newest message when the viewer hid the chat; 0 for never.
    package let hiddenNumber: Int64
    /// The reactions that the chat allows; nil for all.
    package let reactions: Packed<ChatReactionsSettings>?
    /// When the viewer's scheduled messages last changed, Unix milliseconds; 0 for never.
    package let delayedUpdated: Int64
    /// When one of the viewer's scheduled messages last failed to send, Unix milliseconds; 0 for
    /// never.
    package let delayedFailed: Int64

    /// The chat id that this viewer sees on the wire.
    package var wireID: ChatID {
        switch kind {
        case .group, .channel, .comments: ChatID((post?.channel ?? key).rawValue)
        case .dialog, .saved: .dialog(viewer, partner ?? viewer)
        }
    }

    /// The address of the chat's messages for clients.
    package var address: MessageAddress { MessageAddress(chatID: wireID, postID: post?.id) }

    /// Returns the comments on a post of this channel, with the channel's visibility for the
    /// viewer.
    ///
    /// - Parameter key: the key of the comments.
    func comments(on post: MessageID, key: ChatKey) -> ChatView {
        var view = self
        view.post = (self.key, post)
        view.key = key
        view.kind = .comments
        return view
    }

    init(row: any SQLStatement) {
        key = ChatKey(row.int(0))
        kind = ChatKind(rawValue: row.int(1)) ?? .group
        viewer = UserID(row.int(9))
        partner = kind.isPair ? UserID(row.int(2) + row.int(3) - row.int(9)) : nil
        owner = UserID(row.int(4))
        title = row.isNull(5) ? nil : Text(unchecked: Bytes(row.bytes(5)))
        created = row.int(6)
        memberCount = row.int(7)
        joined = row.int(10)
        readTime = row.int(11)
        readNumber = row.int(12)
        isBig = row.int(14) != 0
        modified = isBig ? max(row.int(8), row.int(13)) : row.int(13)
        description = row.isNull(15) ? nil : Text(unchecked: Bytes(row.bytes(15)))
        options = RoleTable.Options(rawValue: row.int(16))
        pinned = row.int(17) == 0 ? nil : MessageID(row.int(17))
        permissions = RoleTable.Permissions(rawValue: row.int(18))
        floor = MessageID(row.int(19))
        isPublic = row.int(22) != 0
        hiddenNumber = row.int(23)
        let place = RoleTable.Place(
            of: viewer,
            in: kind,
            owner: owner,
            permissions: permissions,
            options: options,
            isBanned: false
        )
        let showsLink = isPublic || RoleTable.allows(.seeLink, in: place)
        link = !showsLink || row.isNull(20) ? nil : Text(unchecked: Bytes(row.bytes(20)))
        reactions = row.isNull(21) ? nil : Packed(unchecked: Bytes(row.bytes(21)))
        delayedUpdated = row.int(24)
        delayedFailed = row.int(25)
    }
}

extension ReadTransaction {
    /// Returns the key of the dialog of two users, or of the saved messages when they are the same.
    package func pairKey(_ a: UserID, _ b: UserID) throws -> ChatKey? {
        let statement = store.chats.byPair
        defer { statement.reset() }
        statement.bind(1, min(a.rawValue, b.rawValue))
        statement.bind(2, max(a.rawValue, b.rawValue))
        return try statement.step() ? ChatKey(statement.int(0)) : nil
    }

    /// Returns the creation time of the dialog at `place`, counted from the newest, among those
    /// that `user` began after `time` (both Unix milliseconds); nil when there are fewer.
    package func dialog(begunBy user: UserID, after time: Int64, place: Int) throws -> Int64? {
        let statement = store.chats.begun
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, time)
        statement.bind(3, Int64(place - 1))
        return try statement.step() ? statement.int(0) : nil
    }

    /// Returns the chat that `wireID` names for `viewer`, if it exists and the viewer is a member.
    package func view(_ wireID: ChatID, for viewer: UserID) throws -> ChatView? {
        guard let key = try key(wireID, for: viewer) else { return nil }
        return try view(key, for: viewer)
    }

    /// Returns the key that `wireID` has for `viewer`; does not check membership of groups.
    func key(_ wireID: ChatID, for viewer: UserID) throws -> ChatKey? {
        guard let partner = wireID.partner(of: viewer) else { return ChatKey(wireID.rawValue) }
        return try pairKey(viewer, partner)
    }

    package func view(_ key: ChatKey, for viewer: UserID) throws -> ChatView? {
        let statement = store.chats.view
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, key.rawValue)
        return try statement.step() ? ChatView(row: statement) : nil
    }

    /// Returns the chats that changed for `viewer` after `since` (commit clock): small chats, then
    /// big ones, each with the newest change first.
    ///
    /// - Parameters:
    ///   - end: the last commit clock that is included.
    ///   - limit: the maximum number of small chats.
    package func changedViews(
        for viewer: UserID,
        since: Int64,
        upTo end: Int64 = .max,
        limit: Int = .max
    ) throws -> [ChatView] {
        let (small, big) = (store.chats.changedViews, store.chats.changedBigViews)
        small.bind(3, end)
        small.bind(4, Int64(limit))
        big.bind(3, end)
        return try views(small, viewer, since) + views(big, viewer, since)
    }

    private func views(
        _ statement: any SQLStatement,
        _ viewer: UserID,
        _ bound: Int64
    ) throws -> [ChatView] {
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, bound)
        var views: [ChatView] = []
        while try statement.step() { views.append(ChatView(row: statement)) }
        return views
    }

    /// Returns the members of a chat in the order of their ids.
    package func memberIDs(of chat: ChatKey) throws -> [UserID] {
        let statement = store.members.idsOfChat
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        var ids: [UserID] = []
        while try statement.step() { ids.append(UserID(statement.int(0))) }
        return ids
    }

    /// Passes to `take` the groups of `viewer` that all of `users` are in, the most recently active
    /// first.
    ///
    /// - Parameters:
    ///   - cursor: where to start.
    ///   - take: accepts a group; returns false when the page has no room for it. An empty page
    ///     always has room.
    /// - Returns: where to continue when the page is full or the request has read its limit of
    ///   rows; nil at the end.
    package func commonGroups(
        of viewer: UserID,
        and users: Set<UserID>,
        from cursor: ChatCursor,
        take: (ChatView) throws -> Bool
    ) throws -> ChatCursor? {
        guard !users.isEmpty else { return nil }
        let skipped = try skippedChats(of: viewer, cursor)
        let statement = store.chats.pageOfViews
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, cursor.time)
        // One row above the limit shows that there are more.
        statement.bind(3, Int64(limits.maxScannedRows) + 1)
        statement.bind(4, Int64(skipped))
        var scan = ScanBudget(limits)
        // When the chats scanned so far were last active.
        var times: [Int64] = []
        while try statement.step() {
            let active = statement.int(ChatStatements.viewColumnCount)
            let view = ChatView(row: statement)
            var goesOn = times.isEmpty || !scan.isSpent
            scan.take(rows: 1)
            if goesOn, view.kind == .group,
                try users.allSatisfy({
                    scan.take(rows: 1)
                    return try isMember($0, of: view.key)
                })
            {
                goesOn = try take(view)
            }
            guard goesOn else {
                guard let last = times.last, last == active else {
                    return ChatCursor(before: times.last ?? .max)
                }
                let taken = times.count { $0 == last } + (last == cursor.time ? skipped : 0)
                let left = try chatCount(of: viewer, lastActiveAt: last) - taken
                return ChatCursor(at: last, remaining: Int64(left))
            }
            times.append(active)
        }
        return nil
    }

    private func isMember(_ user: UserID, of chat: ChatKey) throws -> Bool {
        let statement = store.members.byID
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.rawValue)
        return try statement.step()
    }

    /// Returns the dialog partners among the `limit` most recently changed chats that changed after
    /// `since` (commit clock), and when the store last recorded each as online (Unix milliseconds,
    /// 0 for never). Partners who block the viewer or hide their presence are omitted.
    package func recentPartners(
        of viewer: UserID,
        since: Int64,
        limit: Int
    ) throws -> [(id: UserID, seen: Int64)] {
        let statement = store.chats.recentPartners
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, limit)
        statement.bind(3, since)
        var partners: [(id: UserID, seen: Int64)] = []
        while try statement.step() { partners.append((UserID(statement.int(0)), statement.int(1))) }
        return partners
    }

    /// Counts the messages of the chat that the viewer has not read, without removed and hidden
    /// ones.
    package func unread(
        in chat: ChatKey,
        viewer: UserID,
        readTime: Int64,
        readNumber: Int64,
        head: ChatHead
    ) throws -> Int64 {
        let candidates = head.number - readNumber
        guard candidates > 0 else { return 0 }
        let read = MessageID.last(at: readTime)
        let removed = store.messages.removedAfter
        defer { removed.reset() }
        removed.bind(1, chat.rawValue)
        removed.bind(2, read.rawValue)
        removed.bind(3, limits.maxSubtractedMessages)
        let removedCount = try removed.step() ? removed.int(0) : 0
        let hidden = store.messages.hiddenAfter
        defer { hidden.reset() }
        hidden.bind(1, viewer.rawValue)
        hidden.bind(2, chat.rawValue)
        hidden.bind(3, read.rawValue)
        hidden.bind(4, limits.maxSubtractedMessages)
        let hiddenCount = try hidden.step() ? hidden.int(0) : 0
        store.noteCounted(Int(clamping: removedCount + hiddenCount))
        return max(0, candidates - removedCount - hiddenCount)
    }

    /// Returns the chat object that is sent to `view.viewer`.
    package func chat(_ view: ChatView) throws -> Chat {
        let head = try head(of: view.key)
        let wireID = view.wireID
        var lastMessage: Message?
        var previous: MessageID?
        if head.number > 0,
            let last = try lastVisible(in: view.key, for: view.viewer, above: view.floor)
        {
            lastMessage = try message(last, at: view.address, for: view.viewpoint)
            previous = try previousID(of: last.id, in: view.key)
        }
        let isGroup = view.kind.isJoined
        let (participants, admins) = try people(of: view)
        return Chat(
            id: wireID,
            type: view.kind.onWire,
            // Any new message makes the chat active again.
            status: view.hiddenNumber > 0 && view.hiddenNumber == head.number ? .hidden : .active,
            owner: view.owner,
            participants: participants,
            title: view.title,
            lastMessage: lastMessage,
            lastEventTime: head.number > 0 ? head.id.timeMs : view.created,
            lastDelayedUpdateTime: view.delayedUpdated,
            lastFireDelayedErrorTime: view.delayedFailed,
            created: view.created,
            joinTime: view.joined,
            modified: view.modified,
            newMessages: try unread(
                in: view.key,
                viewer: view.viewer,
                readTime: view.readTime,
                readNumber: view.readNumber,
                head: head
            ),
            participantsCount: isGroup ? view.memberCount : nil,
            prevMessageID: previous,
            access: isGroup ? view.isPublic ? .public : .private : nil,
            link: view.link,
            description: view.description,
            options: isGroup ? view.options.onWire : nil,
            pinnedMessage: try pinnedMessage(of: view),
            admins: isGroup ? [view.owner] + admins.map(\.id) : nil,
            adminParticipants: isGroup ? .admins(admins, owner: view.owner) : nil,
            reactions: view.reactions
        )
    }

    /// Returns the pinned message; nil also when it was deleted or is not visible to the viewer.
    private func pinnedMessage(of view: ChatView) throws -> Message? {
        guard let id = view.pinned,
            let record = try visibleRecord(id, in: view.key, for: view.viewer, above: view.floor)
        else { return nil }
        return try message(record, at: view.address, for: view.viewpoint)
    }

    /// Returns the administrators other than the owner, in the order of their ids.
    package func admins(of chat: ChatKey) throws -> [Admin] {
        let statement = store.members.adminsOfChat
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        var admins: [Admin] = []
        while admins.count < store.limits.maxChatAdmins - 1, try statement.step() {
            admins.append(
                (UserID(statement.int(0)), RoleTable.Permissions(rawValue: statement.int(1)))
            )
        }
        return admins
    }

    /// Returns a page of members in the order of their ids, reading until it is full.
    ///
    /// - Parameters:
    ///   - onlyAdmins: omits members without rights in a group.
    ///   - isWanted: returns whether an account belongs on the page.
    /// - Returns: the members and where the next page starts; nil at the end.
    package func members(
        of view: ChatView,
        after marker: UserID,
        limit: Int,
        onlyAdmins: Bool,
        where isWanted: (Account) -> Bool
    ) throws -> (members: [ChatMember], next: UserID?) {
        let statement = onlyAdmins ? store.members.pageOfAdmins : store.members.pageOfChat
        defer { statement.reset() }
        statement.bind(1, view.key.rawValue)
        statement.bind(2, marker.rawValue)
        // One row above the limit shows that there are more.
        statement.bind(3, limits.maxScannedRows + 1)
        if onlyAdmins { statement.bind(4, view.owner.rawValue) }
        let joined = AccountStatements.columnCount
        return try page(of: statement, limit: limit, where: isWanted) { account in
            let isOwner = view.kind.isJoined && account.id == view.owner
            let permissions =
                isOwner ? .ofOwner : RoleTable.Permissions(rawValue: statement.int(joined + 1))
            let shown = view.isBig ? nil : statement.int(joined)
            return ChatMember(
                contact: account.user(showingPhone: account.id == view.viewer),
                presence: Presence(),
                readMark: account.id == view.viewer ? view.readTime : shown,
                permissions: permissions.isEmpty ? nil : permissions.rawValue
            )
        }
    }

    /// Reads rows that start with an account until there are `limit` members, the reply is full, or
    /// the request has read its limit of rows.
    func page(
        of statement: any SQLStatement,
        limit: Int,
        where isWanted: (Account) -> Bool,
        as member: (Account) -> ChatMember
    ) throws -> (members: [ChatMember], next: UserID?) {
        var budget = limits.maxReplyBytes
        var scan = ScanBudget(limits)
        var lastSeen: UserID?
        var members: [ChatMember] = []
        while try statement.step() {
            if scan.isSpent, let lastSeen { return (members, lastSeen) }
            let account = Account(row: statement)
            scan.take(rows: 1)
            lastSeen = account.id
            guard isWanted(account) else { continue }
            budget -= account.wireSizeEstimate
            if members.count == limit || budget < 0, let last = members.last {
                return (members, last.contact.id)
            }
            members.append(member(account))
        }
        return (members, nil)
    }

    /// Returns tombstones of the chats that `viewer` left or was removed from after `since` (commit
    /// clock), the newest first. They contain nothing later than the viewer's last moment in the
    /// chat.
    package func leftChats(
        of viewer: UserID,
        since: Int64,
        upTo end: Int64 = .max,
        limit: Int = .max
    ) throws -> [(chat: Chat, changed: Int64)] {
        let statement = store.members.formerChanged
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, since)
        statement.bind(3, end)
        statement.bind(4, Int64(limit))
        var left: [(chat: Chat, changed: Int64)] = []
        while try statement.step() {
            let ct = statement.int(3)
            let chat = Chat.left(
                ChatKey(statement.int(0)),
                owner: UserID(statement.int(1)),
                created: statement.int(4),
                joined: statement.int(2),
                at: ct
            )
            left.append((chat, ct))
        }
        return left
    }

    /// Returns the read marks that the viewer sees, by user, and the administrators of a group
    /// without its owner, in the order of their ids. Up to the fan-out threshold there is a mark
    /// for every member, above it only the viewer's own.
    package func people(
        of view: ChatView
    ) throws -> (participants: IDMap<UserID, Int64>, admins: [Admin]) {
        if view.isBig {
            return (IDMap([(view.viewer, view.readTime)]), try admins(of: view.key))
        }
        return try everybody(in: view)
    }

    /// Returns the read marks of all members as the viewer sees them, even where `people` returns
    /// only the viewer's own.
    package func marks(of view: ChatView) throws -> IDMap<UserID, Int64> {
        try everybody(in: view).participants
    }

    private func everybody(
        in view: ChatView
    ) throws -> (participants: IDMap<UserID, Int64>, admins: [Admin]) {
        let statement = store.members.marksOfChat
        defer { statement.reset() }
        statement.bind(1, view.key.rawValue)
        var marks: [(UserID, Int64)] = []
        var admins: [Admin] = []
        while try statement.step() {
            let id = UserID(statement.int(0))
            marks.append((id, id == view.viewer ? view.readTime : statement.int(1)))
            let permissions = RoleTable.Permissions(rawValue: statement.int(2))
            if !permissions.isEmpty, admins.count < store.limits.maxChatAdmins - 1 {
                admins.append((id, permissions))
            }
        }
        return (IDMap(marks), admins)
    }
}

extension Chat {
    /// The wire size of an empty chat.
    package static let bareSize = 400

    /// An upper estimate of the chat's bytes on the wire.
    package var wireSizeEstimate: Int {
        Self.bareSize + participants.count * 32 + (title?.bytes.count ?? 0)
            + (lastMessage?.wireSizeEstimate ?? 0) + (pinnedMessage?.wireSizeEstimate ?? 0)
            + (description?.bytes.count ?? 0) + (admins?.count ?? 0) * 64
            + (reactions?.bytes.count ?? 0)
    }

    /// Returns the tombstone of a group or channel for a former member.
    ///
    /// - Parameter ct: when the membership ended, commit clock.
    package static func left(
        _ key: ChatKey,
        owner: UserID,
        created: Int64,
        joined: Int64,
        at ct: Int64
    ) -> Chat {
        Chat(
            id: ChatID(key.rawValue),
            type: ChatID(key.rawValue).isChannel ? .channel : .chat,
            status: .removed,
            owner: owner,
            participants: IDMap([]),
            lastEventTime: ct,
            created: created,
            joinTime: joined,
            modified: ct
        )
    }
}

extension RoleTable.Options {
    /// The names of the options that are set.
    package var onWire: NameMap<Bool> {
        NameMap(Self.named.filter { contains($0.value) }.map { (Text($0.name), true) })
    }
}

extension RoleTable.Permissions {
    /// The rights that an owner is shown to have, as in captures of the service.
    package static let ofOwner = Self(rawValue: 2047)
    /// The rights of a new administrator when none are named: all except appointing administrators.
    package static let ofNewAdmin: Self = [.members, .info, .pin, .post, .edit, .delete]
}

extension IDMap where Key == UserID, Value == AnyValue {
    /// Returns the rights of each administrator and of the owner, who has all of them.
    package static func admins(
        _ admins: [Admin],
        owner: UserID
    ) -> Self {
        let all = [(id: owner, permissions: RoleTable.Permissions.ofOwner)] + admins
        return Self(
            all.map { admin in
                let fields: [(Text, Int64)] = [
                    ("id", admin.id.rawValue), ("permissions", admin.permissions.rawValue),
                ]
                return (admin.id, AnyValue(NameMap(fields)))
            }
        )
    }
}
