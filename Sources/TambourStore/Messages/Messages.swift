package import TambourProtocol
import TambourSQL

struct MessageStatements {
    static let columns =
        "m.chat, m.id, m.n, m.sender, m.cid, m.device, m.status, m.updated, m.reply_to, m.text, "
        + "m.elements, m.attaches, m.forward, m.reactions, m.poll"
    static let columnCount = 15
    /// The value that selects the senders named by the chat's purges.
    static let purgedSenders: Int64 = -1
    /// Whether the reader, `$2`, hid the message for themselves.
    static let isHiddenColumn = """
        CASE WHEN EXISTS (
          SELECT 1 FROM message_hidden h
          WHERE h.user_id = $2 AND h.chat = m.chat AND h.message = m.id
        ) THEN 1 ELSE 0 END
        """
    private static let notHidden = """
        NOT EXISTS (
          SELECT 1 FROM message_hidden h
          WHERE h.user_id = $2 AND h.chat = m.chat AND h.message = m.id
        )
        """

    let insert: any SQLStatement
    let byID: any SQLStatement
    let head: any SQLStatement
    let lastVisible: any SQLStatement
    let previous: any SQLStatement
    let numberAt: any SQLStatement
    let anyCID: any SQLStatement
    let newestCIDs: any SQLStatement
    let byCID: any SQLStatement
    let byCreationCID: any SQLStatement
    let backward: any SQLStatement
    let forward: any SQLStatement
    let edit: any SQLStatement
    let remove: any SQLStatement
    /// Binds the chat, the id before the range, the last id, and the sender: a user, 0 for all, or
    /// `purgedSenders`.
    let inRange: any SQLStatement
    let removeInRange: any SQLStatement
    let hide: any SQLStatement
    let hiddenCount: any SQLStatement
    let changes: any SQLStatement
    let isHidden: any SQLStatement
    let hiders: any SQLStatement
    let removedAfter: any SQLStatement
    let hiddenAfter: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        insert = try sql.prepare(
            """
            INSERT INTO message
              (chat, id, n, sender, cid, device, status, updated, reply_to,
               text, elements, attaches, forward, poll)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
            """
        )
        byID = try sql.prepare(
            "SELECT \(Self.columns) FROM message m WHERE m.chat = $1 AND m.id = $2"
        )
        head = try sql.prepare(
            "SELECT id, n FROM message WHERE chat = $1 ORDER BY id DESC LIMIT 1"
        )
        lastVisible = try sql.prepare(
            """
            SELECT \(Self.columns) FROM message m
            WHERE m.chat = $1 AND m.id > $3 AND m.status <> 2 AND \(Self.notHidden)
            ORDER BY m.id DESC LIMIT 1
            """
        )
        previous = try sql.prepare(
            "SELECT id FROM message WHERE chat = $1 AND id < $2 ORDER BY id DESC LIMIT 1"
        )
        numberAt = try sql.prepare(
            "SELECT id, n FROM message WHERE chat = $1 AND id <= $2 ORDER BY id DESC LIMIT 1"
        )
        anyCID = try sql.prepare(
            "SELECT id FROM message WHERE cid = $1 AND sender = $2 LIMIT 1"
        )
        newestCIDs = try sql.prepare(
            "SELECT cid, sender FROM message WHERE cid < $1 ORDER BY cid DESC LIMIT $2"
        )
        byCID = try sql.prepare(
            """
            SELECT \(Self.columns) FROM message m
            WHERE m.cid = $1 AND m.sender = $2 AND m.chat = $3 AND m.device = $4
            """
        )
        byCreationCID = try sql.prepare(
            """
            SELECT \(Self.columns) FROM message m
            WHERE m.cid = $1 AND m.sender = $2 AND m.chat < 0 AND m.n = 1 AND m.device = $3
            """
        )
        backward = try sql.prepare(
            """
            SELECT \(Self.columns) FROM message m
            WHERE m.chat = $1 AND m.id <= $3 AND m.id >= $4 AND m.status <> 2
              AND \(Self.notHidden)
            ORDER BY m.id DESC LIMIT $5
            """
        )
        forward = try sql.prepare(
            """
            SELECT \(Self.columns) FROM message m
            WHERE m.chat = $1 AND m.id > $3 AND m.id <= $4 AND m.status <> 2
              AND \(Self.notHidden)
            ORDER BY m.id LIMIT $5
            """
        )
        let remove = """
            UPDATE message
            SET status = 2, updated = $3, changed = $3, text = $4, elements = NULL,
                attaches = NULL, forward = NULL, reply_to = 0, reactions = NULL, poll = 0
            """
        // Selects one sender, the senders named by a purge, or everything. Messages without a
        // device are events, and so is the message that created a group.
        let inRange = """
            chat = $1 AND id > $2 AND id <= $3 AND status <> 2
              AND (CAST($4 AS bigint) = 0 OR device <> 0 AND (n > 1 OR chat > 0)
                AND (sender = $4 OR CAST($4 AS bigint) = \(Self.purgedSenders) AND sender IN (
                  SELECT p.sender FROM chat_purge p WHERE p.chat = $1 AND p.up_to = $3
                )))
            """
        self.inRange = try sql.prepare("SELECT id, n FROM message WHERE \(inRange) ORDER BY id")
        removeInRange = try sql.prepare(
            "\(remove.replacing("$3", with: "$5").replacing("$4", with: "$6")) WHERE \(inRange)"
        )
        self.remove = try sql.prepare("\(remove) WHERE chat = $1 AND id = $2")
        edit = try sql.prepare(
            """
            UPDATE message
            SET status = 1, updated = $8, changed = $3, text = $4, elements = $5, attaches = $6,
                poll = $7
            WHERE chat = $1 AND id = $2
            """
        )
        // SQLite starts its scan at the first bound it finds: this must be the mark, not the bound
        // of the partial index.
        changes = try sql.prepare(
            """
            SELECT m.changed, m.id FROM message m
            WHERE m.chat = $1 AND (m.changed, m.id) > ($2, $3) AND m.changed > 0 AND m.id > $4
              AND NOT EXISTS (
                SELECT 1 FROM message_hidden h
                WHERE h.user_id = $5 AND h.chat = m.chat AND h.message = m.id)
            UNION ALL
            SELECT ct, message FROM message_hidden
            WHERE user_id = $5 AND chat = $1 AND (ct, message) > ($2, $3) AND message > $4
            ORDER BY 1, 2 LIMIT $6
            """
        )
        hiddenCount = try sql.prepare(
            "SELECT count(*) FROM message_hidden WHERE user_id = $1 AND chat = $2"
        )
        hide = try sql.prepare(
            """
            INSERT INTO message_hidden (user_id, chat, message, ct) VALUES ($1, $2, $3, $4)
            ON CONFLICT (user_id, chat, message) DO NOTHING
            """
        )
        isHidden = try sql.prepare(
            "SELECT 1 FROM message_hidden WHERE user_id = $1 AND chat = $2 AND message = $3"
        )
        hiders = try sql.prepare(
            "SELECT user_id FROM message_hidden WHERE chat = $1 AND message = $2"
        )
        removedAfter = try sql.prepare(
            """
            SELECT count(*) FROM (
              SELECT 1 FROM message WHERE chat = $1 AND status = 2 AND id > $2 LIMIT $3) AS part
            """
        )
        // A message both hidden and removed is counted once, by `removedAfter`.
        hiddenAfter = try sql.prepare(
            """
            SELECT count(*) FROM (
              SELECT 1 FROM message_hidden h
              JOIN message m ON m.chat = h.chat AND m.id = h.message
              WHERE h.user_id = $1 AND h.chat = $2 AND h.message > $3 AND m.status <> 2
              LIMIT $4) AS part
            """
        )
    }
}

extension MessageRecord {
    init(row: any SQLStatement) {
        self.init(
            chat: ChatKey(row.int(0)),
            id: MessageID(row.int(1)),
            number: row.int(2),
            sender: UserID(row.int(3)),
            cid: row.int(4),
            device: DeviceID(row.int(5)),
            status: StoredStatus(rawValue: row.int(6)) ?? .plain,
            updated: row.int(7),
            replyTo: row.int(8) == 0 ? nil : MessageID(row.int(8)),
            text: Text(unchecked: Bytes(row.bytes(9))),
            elements: row.isNull(10) ? nil : Packed(unchecked: Bytes(row.bytes(10))),
            attaches: row.isNull(11) ? nil : Packed(unchecked: Bytes(row.bytes(11))),
            forward: row.isNull(12) ? nil : Packed(unchecked: Bytes(row.bytes(12))),
            reactions: row.isNull(13) ? nil : Packed(unchecked: Bytes(row.bytes(13))),
            poll: PollMark(rawValue: row.int(14))
        )
    }
}

extension Message {
    /// An upper estimate of the bytes that the message takes on the wire.
    package var wireSizeEstimate: Int {
        200 + text.bytes.count + (elements?.bytes.count ?? 0) + attaches.bytes.count
            + (link?.bytes.count ?? 0) + (reactionInfo.map { 16 + $0.bytes.count } ?? 0)
    }
}

/// A reader of a chat and where the chat begins for them: both decide what is shown.
package struct Viewpoint: Sendable {
    package let user: UserID
    /// The last message that is not visible to the user; everything up to it is hidden.
    package let floor: MessageID

    package init(user: UserID, floor: MessageID) {
        self.user = user
        self.floor = floor
    }
}

/// The place of messages for clients: in a chat, or under a post of a channel.
package struct MessageAddress: Hashable, Sendable {
    /// The chat id that the reader sees; for comments the channel.
    package let chatID: ChatID
    /// The post that the messages are comments on.
    package let postID: MessageID?

    package init(chatID: ChatID, postID: MessageID? = nil) {
        self.chatID = chatID
        self.postID = postID
    }

    /// Whether the messages are posts of a channel, which do not reveal their author.
    var isOfPosts: Bool { chatID.isChannel && postID == nil }
}

extension ChatView {
    package var viewpoint: Viewpoint { Viewpoint(user: viewer, floor: floor) }
}

/// The newest message of a chat, removed or not.
package struct ChatHead: Sendable {
    /// Zero in an empty chat.
    package var id: MessageID
    /// Dense number of that message, 0 in an empty chat.
    package var number: Int64

    static let empty = ChatHead(id: MessageID(0), number: 0)
}

/// One page of history, oldest first.
package struct HistoryPage: Sendable {
    package var messages: [Message] = []
    /// True when a requested direction has more messages than the page.
    package var more = false

    package init() {}
}

extension ReadTransaction {
    package func record(_ id: MessageID, in chat: ChatKey) throws -> MessageRecord? {
        let statement = store.messages.byID
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, id.rawValue)
        return try statement.step() ? MessageRecord(row: statement) : nil
    }

    package func head(of chat: ChatKey) throws -> ChatHead {
        let statement = store.messages.head
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        guard try statement.step() else { return .empty }
        return ChatHead(id: MessageID(statement.int(0)), number: statement.int(1))
    }

    /// The newest message at or before `time` (Unix milliseconds), removed or not.
    package func head(of chat: ChatKey, at time: Int64) throws -> ChatHead {
        try head(of: chat, upTo: MessageID.last(at: time)) ?? .empty
    }

    /// The newest message at or before `id`, removed or not.
    func head(of chat: ChatKey, upTo id: MessageID) throws -> ChatHead? {
        let statement = store.messages.numberAt
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, id.rawValue)
        guard try statement.step() else { return nil }
        return ChatHead(id: MessageID(statement.int(0)), number: statement.int(1))
    }

    /// Returns the id before `id` in its chat, even of a removed message.
    package func previousID(of id: MessageID, in chat: ChatKey) throws -> MessageID? {
        let statement = store.messages.previous
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, id.rawValue)
        return try statement.step() ? MessageID(statement.int(0)) : nil
    }

    /// Returns the messages that `sender` sent to `chat` from `device` under `cid`.
    func records(
        cid: Int64,
        sender: UserID,
        device: DeviceID,
        in chat: ChatKey
    ) throws -> [MessageRecord] {
        guard try hasSent(cid: cid, sender: sender) else { return [] }
        let statement = store.messages.byCID
        statement.bind(3, chat.rawValue)
        statement.bind(4, device.rawValue)
        return try records(statement, cid, sender)
    }

    /// Returns the messages by which `sender` created groups and channels from `device` under
    /// `cid`.
    func creations(cid: Int64, sender: UserID, device: DeviceID) throws -> [MessageRecord] {
        guard try hasSent(cid: cid, sender: sender) else { return [] }
        let statement = store.messages.byCreationCID
        statement.bind(3, device.rawValue)
        return try records(statement, cid, sender)
    }

    /// Returns the pairs with the largest cids below `ceiling`, largest first; the index alone
    /// answers this.
    func newestClientIDs(below ceiling: Int64, limit: Int) throws -> [(cid: Int64, sender: UserID)]
    {
        let statement = store.messages.newestCIDs
        defer { statement.reset() }
        statement.bind(1, ceiling)
        statement.bind(2, Int64(limit))
        var pairs: [(cid: Int64, sender: UserID)] = []
        while try statement.step() {
            pairs.append((statement.int(0), UserID(statement.int(1))))
        }
        return pairs
    }

    /// Whether `sender` has used `cid` at all. Nearly every cid is new, and the index alone answers
    /// this.
    private func hasSent(cid: Int64, sender: UserID) throws -> Bool {
        let statement = store.messages.anyCID
        defer { statement.reset() }
        statement.bind(1, cid)
        statement.bind(2, sender.rawValue)
        return try statement.step()
    }

    private func records(
        _ statement: any SQLStatement,
        _ cid: Int64,
        _ sender: UserID
    ) throws -> [MessageRecord] {
        defer { statement.reset() }
        statement.bind(1, cid)
        statement.bind(2, sender.rawValue)
        var records: [MessageRecord] = []
        while try statement.step() { records.append(MessageRecord(row: statement)) }
        return records
    }

    /// Returns the newest message above `floor` that `viewer` can see.
    func lastVisible(
        in chat: ChatKey,
        for viewer: UserID,
        above floor: MessageID
    ) throws -> MessageRecord? {
        let statement = store.messages.lastVisible
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, viewer.rawValue)
        statement.bind(3, floor.rawValue)
        return try statement.step() ? MessageRecord(row: statement) : nil
    }

    /// Whether `viewer` deleted the message for themselves.
    package func isHidden(_ id: MessageID, in chat: ChatKey, for viewer: UserID) throws -> Bool {
        let statement = store.messages.isHidden
        defer { statement.reset() }
        statement.bind(1, viewer.rawValue)
        statement.bind(2, chat.rawValue)
        statement.bind(3, id.rawValue)
        return try statement.step()
    }

    /// Returns the message as `viewer` sees it; nil when it is removed, hidden, unknown, or not
    /// above `floor`.
    package func visibleRecord(
        _ id: MessageID,
        in chat: ChatKey,
        for viewer: UserID,
        above floor: MessageID
    ) throws -> MessageRecord? {
        guard id > floor, let record = try record(id, in: chat), record.status != .removed,
            try !isHidden(id, in: chat, for: viewer)
        else { return nil }
        return record
    }

    /// Returns the messages of a chat that changed for the viewer, each at its last change, oldest
    /// first.
    ///
    /// - Parameters:
    ///   - mark: the change after which to start: its time, commit clock, and its message.
    ///   - limit: the maximum number of changes.
    package func changes(
        in view: ChatView,
        after mark: (time: Int64, message: MessageID),
        limit: Int
    ) throws -> [(time: Int64, message: MessageID)] {
        let statement = store.messages.changes
        defer { statement.reset() }
        statement.bind(1, view.key.rawValue)
        statement.bind(2, mark.time)
        statement.bind(3, mark.message.rawValue)
        statement.bind(4, view.floor.rawValue)
        statement.bind(5, view.viewer.rawValue)
        statement.bind(6, Int64(limit))
        var changes: [(time: Int64, message: MessageID)] = []
        while try statement.step() {
            changes.append((statement.int(0), MessageID(statement.int(1))))
        }
        return changes
    }

    /// Returns a page of `backward` messages at or before `from` and `forward` messages after it.
    ///
    /// - Parameters:
    ///   - floor: the last message that is not visible to the viewer.
    ///   - from: Unix milliseconds.
    ///   - earliest: the time of the oldest message allowed, Unix milliseconds.
    ///   - latest: the time of the newest message allowed, Unix milliseconds.
    ///   - pageLimit: the number of messages in both directions together; `forward` gets what
    ///     `backward` leaves.
    ///   - budget: the page's size in bytes; nil for a whole reply. The page always contains the
    ///     nearest message of each direction.
    /// - Returns: the messages, oldest first. A page over the budget is cut where it is farthest
    ///   from `from`.
    package func history(
        of chat: ChatKey,
        at address: MessageAddress,
        for viewer: UserID,
        above floor: MessageID,
        from: Int64,
        backward: Int,
        forward: Int,
        earliest: Int64 = 0,
        latest: Int64 = .max,
        pageLimit: Int = .max,
        budget: Int? = nil
    ) throws -> HistoryPage {
        var page = HistoryPage()
        var budget = budget ?? limits.maxReplyBytes
        let pivot = MessageID.last(at: from)
        let viewpoint = Viewpoint(user: viewer, floor: floor)
        let older = try messages(
            store.messages.backward,
            in: chat,
            at: address,
            for: viewpoint,
            pivot: pivot,
            bound: max(MessageID(timeMs: max(0, earliest), counter: 0), floor.next),
            limit: backward,
            budget: &budget,
            more: &page.more
        )
        let room = pageLimit - older.count
        var newer = try messages(
            store.messages.forward,
            in: chat,
            at: address,
            for: viewpoint,
            pivot: max(pivot, floor),
            bound: MessageID.last(at: latest),
            limit: min(forward, max(1, room)),
            budget: &budget,
            more: &page.more
        )
        if room <= 0, !newer.isEmpty {
            // The page is full, and requested messages are left out.
            newer = []
            page.more = true
        }
        page.messages = older.reversed() + newer
        return page
    }

    private func messages(
        _ statement: any SQLStatement,
        in chat: ChatKey,
        at address: MessageAddress,
        for viewpoint: Viewpoint,
        pivot: MessageID,
        bound: MessageID,
        limit: Int,
        budget: inout Int,
        more: inout Bool
    ) throws -> [Message] {
        guard limit > 0 else { return [] }
        defer { statement.reset() }
        statement.bind(1, chat.rawValue)
        statement.bind(2, viewpoint.user.rawValue)
        statement.bind(3, pivot.rawValue)
        statement.bind(4, bound.rawValue)
        statement.bind(5, Int64(limit) + 1)
        var messages: [Message] = []
        while try statement.step() {
            if messages.count == limit {
                more = true
                break
            }
            let record = MessageRecord(row: statement)
            let message = try message(record, at: address, for: viewpoint)
            budget -= message.wireSizeEstimate
            if budget < 0, !messages.isEmpty {
                more = true
                break
            }
            messages.append(message)
        }
        return messages
    }

    /// Returns the message object for the wire; without a viewer one encoding serves everybody.
    ///
    /// A reply embeds the current version of the message it answers. The link is omitted when that
    /// message is gone or not visible to the viewer.
    /// - Parameter viewpoint: the viewer whose own reaction and votes are included, and who must
    ///   see the answered message.
    package func message(
        _ record: MessageRecord,
        at address: MessageAddress,
        previous: MessageID? = nil,
        for viewpoint: Viewpoint? = nil
    ) throws -> Message {
        let record = record.fitting(limits)
        let viewer = viewpoint?.user
        var link = record.forward
        if let replyTo = record.replyTo, record.status != .removed,
            let reply = try reply(to: replyTo, in: record.chat, at: address, for: viewpoint)
        {
            link = reply
        }
        return try self.record(record, seenBy: viewer).message(
            at: address,
            link: link,
            previous: previous,
            reactions: try reactions(to: record, for: viewer),
            for: viewer
        )
    }

    /// Returns the link to the current version of the answered message; nil when it is gone or not
    /// visible to the viewer.
    func reply(
        to id: MessageID,
        in chat: ChatKey,
        at address: MessageAddress,
        for viewpoint: Viewpoint?
    ) throws -> Packed<MessageLink>? {
        let known =
            if let viewpoint {
                try visibleRecord(id, in: chat, for: viewpoint.user, above: viewpoint.floor)
            } else {
                try record(id, in: chat)
            }
        guard let original = known?.fitting(limits), original.status != .removed
        else { return nil }
        return Packed(
            MessageLink(
                type: .reply,
                chatID: address.chatID,
                message: original.message(at: address, link: nil, previous: nil),
                messageID: id
            )
        )
    }
}

extension MessageID {
    /// Returns the largest id a message of that millisecond can have; safe for any 64-bit input.
    package static func last(at time: Int64) -> MessageID {
        if time < 0 { return MessageID(0) }
        if time >= Int64.max >> 16 { return MessageID(.max) }
        return MessageID(time << 16 | 0xFFFF)
    }
}

extension MessageRecord {
    /// Returns the message object for the wire. Only the author of a post knows who wrote it, so
    /// nobody else sees what could tell one author's posts from another's.
    ///
    /// - Parameter viewer: nil for everybody.
    package func message(
        at address: MessageAddress,
        link: Packed<MessageLink>?,
        previous: MessageID?,
        reactions: Packed<ReactionInfo>? = nil,
        for viewer: UserID? = nil
    ) -> Message {
        let wireStatus: MessageStatus? =
            switch status {
            case .plain: nil
            case .edited: .edited
            case .removed: .removed
            }
        return Message(
            id: id,
            time: id.timeMs,
            type: address.isOfPosts ? "CHANNEL" : "USER",
            text: text,
            sender: address.isOfPosts ? nil : sender,
            chatID: address.chatID,
            cid: device == .server || address.isOfPosts && viewer != sender ? nil : cid,
            elements: elements,
            attaches: attaches ?? .emptyList,
            link: link,
            status: wireStatus,
            updateTime: updated == 0 ? nil : updated,
            reactionInfo: reactions,
            postID: address.postID,
            prevMessageID: previous
        )
    }
}

extension Packed where Value == [Attach] {
    package static var emptyList: Self { Self(unchecked: Bytes([0x90])) }
}
