package import TambourProtocol
import TambourSQL

struct ChatStatements {
    /// What building a `Chat` for one member needs of `chat` and `member`.
    static let viewColumns =
        "c.id, c.kind, c.low_user, c.high_user, c.owner, c.title, c.created, c.member_count, "
        + "c.ct_head, m.user_id, m.joined, m.read_time, m.read_n, m.ct, m.big"
    static let chatColumns =
        "id, kind, low_user, high_user, owner, title, created, member_count, ct_head"

    let byID: any SQLStatement
    let byPair: any SQLStatement
    let lastPositiveID: any SQLStatement
    let insert: any SQLStatement
    let setClock: any SQLStatement
    let view: any SQLStatement
    let changedViews: any SQLStatement
    let changedBigViews: any SQLStatement
    let pageOfViews: any SQLStatement
    let tiedViews: any SQLStatement
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
        lastPositiveID = try sql.prepare("SELECT max(id) FROM chat WHERE id > 0")
        insert = try sql.prepare(
            """
            INSERT INTO chat
              (id, kind, low_user, high_user, owner, title, created, member_count, ct_head)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """
        )
        setClock = try sql.prepare("UPDATE chat SET ct_head = $2 WHERE id = $1")
        view = try sql.prepare(
            """
            SELECT \(Self.viewColumns) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1 AND m.chat = $2
            """
        )
        changedViews = try sql.prepare(
            """
            SELECT \(Self.viewColumns) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1 AND m.ct > $2
            ORDER BY m.ct DESC, m.chat
            """
        )
        // A big chat touches its own clock instead of every member's row: one row a big chat.
        changedBigViews = try sql.prepare(
            """
            SELECT \(Self.viewColumns) FROM member m JOIN chat c ON c.id = m.chat
            WHERE m.user_id = $1 AND m.big = 1 AND m.ct <= $2 AND c.ct_head > $2
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
            SELECT * FROM (\(ofUserByActivity)) AS mine WHERE active < $2
            ORDER BY active DESC, id LIMIT $3
            """
        )
        tiedViews = try sql.prepare(
            """
            SELECT * FROM (\(ofUserByActivity)) AS mine WHERE active = $2 ORDER BY id
            """
        )
        recentPartners = try sql.prepare(
            """
            SELECT a.id, a.seen
            FROM (SELECT chat FROM member WHERE user_id = $1 ORDER BY ct DESC LIMIT $2) AS recent
            JOIN chat c ON c.id = recent.chat
            JOIN account a ON a.id = c.low_user + c.high_user - $1
            WHERE c.kind = 0
            """
        )
    }
}

struct MemberStatements {
    let byID: any SQLStatement
    let ofChat: any SQLStatement
    let idsOfChat: any SQLStatement
    let marksOfChat: any SQLStatement
    let upsert: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let columns = "user_id, joined, read_time, read_n, ct, big"
        byID = try sql.prepare(
            "SELECT \(columns) FROM member WHERE user_id = $1 AND chat = $2"
        )
        ofChat = try sql.prepare("SELECT \(columns) FROM member WHERE chat = $1 ORDER BY user_id")
        idsOfChat = try sql.prepare("SELECT user_id FROM member WHERE chat = $1 ORDER BY user_id")
        marksOfChat = try sql.prepare(
            "SELECT user_id, read_time FROM member WHERE chat = $1 ORDER BY user_id"
        )
        upsert = try sql.prepare(
            """
            INSERT INTO member (user_id, chat, joined, read_time, read_n, ct, big)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (user_id, chat) DO UPDATE SET
              read_time = excluded.read_time, read_n = excluded.read_n, ct = excluded.ct
            """
        )
    }
}

/// A chat as one member sees it, before its messages are looked at.
package struct ChatView: Sendable {
    package let key: ChatKey
    package let kind: ChatKind
    package let viewer: UserID
    /// The other one of a dialog, the viewer in saved messages, nil in a group.
    package let partner: UserID?
    package let owner: UserID
    package let title: Text?
    /// Unix milliseconds.
    package let created: Int64
    package let memberCount: Int64
    package let joined: Int64
    package let readTime: Int64
    package let readNumber: Int64
    /// Commit clock of the last change that the viewer can see.
    package let modified: Int64
    /// Above the fan-out threshold: changes move the chat's own clock.
    package let isBig: Bool

    /// The id that travels to this viewer.
    package var wireID: ChatID {
        switch kind {
        case .group: ChatID(key.rawValue)
        case .dialog, .saved: .dialog(viewer, partner ?? viewer)
        }
    }

    init(row: any SQLStatement) {
        key = ChatKey(row.int(0))
        kind = ChatKind(rawValue: row.int(1)) ?? .group
        viewer = UserID(row.int(9))
        partner = kind == .group ? nil : UserID(row.int(2) + row.int(3) - row.int(9))
        owner = UserID(row.int(4))
        title = row.isNull(5) ? nil : Text(unchecked: Bytes(row.bytes(5)))
        created = row.int(6)
        memberCount = row.int(7)
        joined = row.int(10)
        readTime = row.int(11)
        readNumber = row.int(12)
        isBig = row.int(14) != 0
        modified = isBig ? max(row.int(8), row.int(13)) : row.int(13)
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

    /// Everything that changed for `viewer` after `since` (commit clock): small chats, then big ones,
    /// each the newest change first.
    package func changedViews(for viewer: UserID, since: Int64) throws -> [ChatView] {
        try views(store.chats.changedViews, viewer, since)
            + views(store.chats.changedBigViews, viewer, since)
    }

    /// The most recently active chats before `marker`, newest first, ties never split.
    ///
    /// - Parameter marker: Unix milliseconds, compared with `lastEventTime`.
    /// - Returns: the marker of the next page, 0 at the end.
    package func views(
        for viewer: UserID,
        before marker: Int64,
        limit: Int
    ) throws -> (views: [ChatView], next: Int64) {
        let statement = store.chats.pageOfViews
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, marker)
        statement.bind(3, Int64(limit) + 1)
        var found: [(view: ChatView, active: Int64)] = []
        while try statement.step() {
            found.append((ChatView(row: statement), statement.int(15)))
        }
        guard found.count > limit, let boundary = found.last?.active else {
            return (found.map(\.view), 0)
        }
        var page = found.dropLast().map(\.view)
        guard let last = found.dropLast().last?.active else { return (page, 0) }
        if last == boundary {
            // Chats of one millisecond stay on one page: the next begins below them.
            page = found.filter { $0.active != boundary }.map(\.view)
            page += try views(store.chats.tiedViews, viewer, boundary)
        }
        return (page, last)
    }

    /// Whether the last event of one of the user's chats was at `time` (Unix milliseconds).
    package func hasChat(of viewer: UserID, lastActiveAt time: Int64) throws -> Bool {
        try !views(store.chats.tiedViews, viewer, time).isEmpty
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

    /// The dialog partners among the `limit` chats that changed last, and when each was last online
    /// according to the store (Unix milliseconds, 0 for never).
    package func recentPartners(
        of viewer: UserID,
        limit: Int
    ) throws -> [(id: UserID, seen: Int64)] {
        let statement = store.chats.recentPartners
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, limit)
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
        let read = lastMessageID(at: readTime)
        let removed = store.messages.removedAfter
        defer { removed.reset() }
        removed.bind(1, chat.rawValue)
        removed.bind(2, read.rawValue)
        let removedCount = try removed.step() ? removed.int(0) : 0
        let hidden = store.messages.hiddenAfter
        defer { hidden.reset() }
        hidden.bind(1, viewer.rawValue)
        hidden.bind(2, chat.rawValue)
        hidden.bind(3, read.rawValue)
        let hiddenCount = try hidden.step() ? hidden.int(0) : 0
        return max(0, candidates - removedCount - hiddenCount)
    }

    /// The object that travels to `view.viewer`.
    package func chat(_ view: ChatView) throws -> Chat {
        let head = try head(of: view.key)
        let wireID = view.wireID
        var lastMessage: Message?
        var previous: MessageID?
        if head.number > 0, let last = try lastVisible(in: view.key, for: view.viewer) {
            lastMessage = try message(last, wireID: wireID)
            previous = try previousID(of: last.id, in: view.key)
        }
        return Chat(
            id: wireID,
            type: view.kind == .group ? .chat : .dialog,
            status: .active,
            owner: view.owner,
            participants: try participants(of: view),
            title: view.title,
            lastMessage: lastMessage,
            lastEventTime: head.number > 0 ? head.id.timeMs : view.created,
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
            participantsCount: view.kind == .group ? view.memberCount : nil,
            prevMessageID: previous,
            access: view.kind == .group ? .private : nil
        )
    }

    /// Read marks by user: of every member up to the fan-out threshold, above it only one's own.
    private func participants(of view: ChatView) throws -> IDMap<UserID, Int64> {
        if view.isBig { return IDMap([(view.viewer, view.readTime)]) }
        let statement = store.members.marksOfChat
        defer { statement.reset() }
        statement.bind(1, view.key.rawValue)
        var pairs: [(UserID, Int64)] = []
        while try statement.step() {
            pairs.append((UserID(statement.int(0)), statement.int(1)))
        }
        return IDMap(pairs)
    }
}

extension ReadTransaction {
    /// The chats of `views(for:before:limit:)`, cut where they would take more than `budget` bytes;
    /// chats of one millisecond stay together.
    ///
    /// - Parameter budget: bytes; nil for all that a reply may hold.
    package func chatsPage(
        for viewer: UserID,
        before marker: Int64,
        limit: Int,
        budget: Int? = nil
    ) throws -> (chats: [Chat], next: Int64) {
        let (views, next) = try views(for: viewer, before: marker, limit: limit)
        var chats: [Chat] = []
        var budget = budget ?? limits.maxReplyBytes
        for view in views {
            let chat = try chat(view)
            budget -= chat.wireSizeEstimate
            if budget < 0, let last = chats.last {
                let boundary = chat.lastEventTime
                if last.lastEventTime != boundary { return (chats, last.lastEventTime) }
                let complete = chats.filter { $0.lastEventTime != boundary }
                if let last = complete.last { return (complete, last.lastEventTime) }
            }
            chats.append(chat)
        }
        return (chats, next)
    }
}

extension Chat {
    /// About how many bytes the chat takes on the wire, never fewer.
    package var wireSizeEstimate: Int {
        400 + participants.count * 32 + (title?.bytes.count ?? 0)
            + (lastMessage?.wireSizeEstimate ?? 0)
    }
}
