package import TambourProtocol
import TambourSQL

struct ChatStatements {
    /// What building a `Chat` for one member needs of `chat` and `member`.
    static let viewColumns =
        "c.id, c.kind, c.low_user, c.high_user, c.owner, c.title, c.created, c.member_count, "
        + "c.ct_head, m.user_id, m.joined, m.read_time, m.read_n, m.ct, m.big, "
        + "c.description, c.options, c.pinned, m.permissions, m.floor, c.link, c.reactions, "
        + "c.is_public, m.hidden_n, m.delayed_updated, m.delayed_failed"
    /// How many of them there are.
    static let viewColumnCount = 26
    /// What one may know of a chat before joining.
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
        // Big is what the members' rows say: the limit may have changed since the chat was made.
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
        // A big chat touches its own clock instead of every member's row: one row a big chat.
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
        // Where members are many an index answers alone.
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
        // By the column of the index: SQLite would sort all members by the other one.
        pageOfChat = try sql.prepare("\(accountsOfChat) ORDER BY m.user_id LIMIT $3")
        // The row of the owner, whose rights are not in it, is found by its key.
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

/// Somebody with rights in a group or channel.
package typealias Admin = (id: UserID, permissions: RoleTable.Permissions)

/// A chat as one member sees it, before its messages are looked at.
package struct ChatView: Sendable {
    package private(set) var key: ChatKey
    package private(set) var kind: ChatKind
    /// The post of `channel` that these are the comments on; nil for a chat of its own.
    package private(set) var post: (channel: ChatKey, id: MessageID)?
    package let viewer: UserID
    /// The other one of a dialog, the viewer in saved messages, nil where people join.
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
    /// Above the fan-out threshold: changes move the chat's own clock.
    package let isBig: Bool
    package let description: Text?
    package let options: RoleTable.Options
    /// The pinned message.
    package let pinned: MessageID?
    /// What the viewer may as an administrator.
    package let permissions: RoleTable.Permissions
    /// Nothing up to this message is there for the viewer.
    package let floor: MessageID
    /// The public name, or the invitation for those who may be shown it.
    package let link: Text?
    /// Whether `link` is a public name.
    package let isPublic: Bool
    /// The dense number of the newest message when the viewer put the chat away; 0 for never.
    package let hiddenNumber: Int64
    /// Which reactions it allows; nil for every one.
    package let reactions: Packed<ChatReactionsSettings>?
    /// When the viewer's scheduled messages changed, Unix milliseconds; 0 for never.
    package let delayedUpdated: Int64
    /// When one of them could not be sent, Unix milliseconds; 0 for never.
    package let delayedFailed: Int64

    /// The id that travels to this viewer.
    package var wireID: ChatID {
        switch kind {
        case .group, .channel, .comments: ChatID((post?.channel ?? key).rawValue)
        case .dialog, .saved: .dialog(viewer, partner ?? viewer)
        }
    }

    /// Where its messages stand for clients.
    package var address: MessageAddress { MessageAddress(chatID: wireID, postID: post?.id) }

    /// The comments on a post, of which the viewer sees what they see of this channel.
    ///
    /// - Parameter key: theirs.
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
    /// The key of the dialog of two users, or of the saved messages when they are the same.
    package func pairKey(_ a: UserID, _ b: UserID) throws -> ChatKey? {
        let statement = store.chats.byPair
        defer { statement.reset() }
        statement.bind(1, min(a.rawValue, b.rawValue))
        statement.bind(2, max(a.rawValue, b.rawValue))
        return try statement.step() ? ChatKey(statement.int(0)) : nil
    }

    /// When the dialog was made that is so many-th, counted from the newest, of those that `user`
    /// began after `time` (both Unix milliseconds); nil when there are fewer.
    package func dialog(begunBy user: UserID, after time: Int64, place: Int) throws -> Int64? {
        let statement = store.chats.begun
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, time)
        statement.bind(3, Int64(place - 1))
        return try statement.step() ? statement.int(0) : nil
    }

    /// The chat that `wireID` means to `viewer`, if it exists and the viewer is a member.
    package func view(_ wireID: ChatID, for viewer: UserID) throws -> ChatView? {
        guard let key = try key(wireID, for: viewer) else { return nil }
        return try view(key, for: viewer)
    }

    /// The key that `wireID` would have for `viewer`; for groups no membership is checked.
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

    /// What changed for `viewer` after `since` (commit clock): small chats, then big ones, each the newest
    /// change first.
    ///
    /// - Parameters:
    ///   - end: the last clock that is looked at.
    ///   - limit: how many small ones, at most.
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

    /// The members of a chat in the order of their ids.
    package func memberIDs(of chat: ChatKey) throws -> [UserID] {
        let statement = store.members.idsOfChat
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        var ids: [UserID] = []
        while try statement.step() { ids.append(UserID(statement.int(0))) }
        return ids
    }

    /// Goes through the groups of `viewer` with all of `users` in them, the most recently active first.
    ///
    /// - Parameters:
    ///   - cursor: where to begin.
    ///   - take: takes a group; false when the page has no room for it, which an empty one has.
    /// - Returns: where to go on when the page is full, or as much was read as one request may; nil at the end.
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
        // One more than may be looked at tells that there are more.
        statement.bind(3, Int64(limits.maxScannedRows) + 1)
        statement.bind(4, Int64(skipped))
        var scan = ScanBudget(limits)
        // When the chats that were looked at were last active.
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

    /// The dialog partners among the `limit` chats that changed last, and after `since` (commit
    /// clock), but those who blocked the viewer or hide theirs, and when each was last online
    /// according to the store (Unix milliseconds, 0 for never).
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

    /// How many messages of the chat the viewer has not read: removed and hidden ones do not count.
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

    /// The object that travels to `view.viewer`.
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
            // Whatever is new brings it back.
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

    /// Nil also when it was deleted, or is not there for the viewer.
    private func pinnedMessage(of view: ChatView) throws -> Message? {
        guard let id = view.pinned,
            let record = try visibleRecord(id, in: view.key, for: view.viewer, above: view.floor)
        else { return nil }
        return try message(record, at: view.address, for: view.viewpoint)
    }

    /// The administrators beside the owner, in the order of their ids.
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

    /// A page of members in the order of their ids, read until it is full.
    ///
    /// - Parameters:
    ///   - onlyAdmins: leaves out who has no rights in a group.
    ///   - isWanted: says of an account whether it belongs there.
    /// - Returns: where the next page begins; nil at the end.
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
        // One more than may be looked at tells that there are more.
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

    /// Reads rows that begin with an account until there are `limit`, as many as a reply may hold, or as many
    /// were looked at as one request may.
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

    /// The chats that `viewer` has left or was removed from after `since` (commit clock), as they
    /// travel, the newest first. Nothing in them is younger than the viewer's last moment there.
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

    /// Read marks by user as the viewer sees them: of every member up to the fan-out threshold, above it
    /// only one's own. Beside them the administrators of a group but its owner, in the order of their ids.
    package func people(
        of view: ChatView
    ) throws -> (participants: IDMap<UserID, Int64>, admins: [Admin]) {
        if view.isBig {
            return (IDMap([(view.viewer, view.readTime)]), try admins(of: view.key))
        }
        return try everybody(in: view)
    }

    /// The read marks of all members as the viewer sees them, also where `people` tells only one's own.
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
    /// The size of a chat with nothing in it.
    package static let bareSize = 400

    /// About how many bytes the chat takes on the wire, never fewer.
    package var wireSizeEstimate: Int {
        Self.bareSize + participants.count * 32 + (title?.bytes.count ?? 0)
            + (lastMessage?.wireSizeEstimate ?? 0) + (pinnedMessage?.wireSizeEstimate ?? 0)
            + (description?.bytes.count ?? 0) + (admins?.count ?? 0) * 64
            + (reactions?.bytes.count ?? 0)
    }

    /// The tombstone of a group or channel: what its member hears that is none any more.
    ///
    /// - Parameter ct: when it ended, commit clock.
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
    /// Those that are set.
    package var onWire: NameMap<Bool> {
        NameMap(Self.named.filter { contains($0.value) }.map { (Text($0.name), true) })
    }
}

extension RoleTable.Permissions {
    /// What an owner is shown to have, as in captures of the service.
    package static let ofOwner = Self(rawValue: 2047)
    /// What an administrator may for whom no rights are named: all but making others.
    package static let ofNewAdmin: Self = [.members, .info, .pin, .post, .edit, .delete]
}

extension IDMap where Key == UserID, Value == AnyValue {
    /// The rights of each administrator and of the owner, who has all of them.
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
