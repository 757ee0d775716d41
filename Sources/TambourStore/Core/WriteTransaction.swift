package import TambourEvents
import TambourProtocol
import TambourSQL

/// A batch of commands inside one database transaction.
///
/// A handler makes all its checks before its first write. Several commands may change the same row
/// of a member or the clock of the same big chat. The transaction caches these changes and writes
/// each row once. It inserts messages at the end, in the order of their chats and ids.
package final class WriteTransaction {
    let store: StoreConnection
    let userIDs: UserIDSource
    /// A reader that does not see pending writes. Accounts, sessions and codes are written
    /// immediately, so their rows are up to date.
    package let reader: ReadTransaction

    /// The commit clock of this batch, Unix milliseconds.
    package private(set) var ct: Int64 = 0
    /// The number of writes and events that the commands of this batch have made so far.
    package internal(set) var writes = 0

    var counter: UInt16
    /// The events of the batch so far.
    package private(set) var events: [Event] = []
    var chats: [ChatKey: ChatState] = [:]
    var pairs: [Pair: ChatKey] = [:]
    /// Users who exist and are not blocked, according to an earlier read of the store.
    var listed: Set<UserID> = []
    /// Sessions that exist, according to an earlier read of the store.
    var openSessions: Set<SessionID> = []
    var touched: [ChatState] = []
    /// The chats in which this batch has notified members of messages.
    var told: Set<ChatKey> = []
    var dirtyMembers: [(chat: ChatKey, member: MemberState)] = []
    var pending: [MessageRecord] = []
    var pendingKeys: [SendKey: Int] = [:]
    var recentClientIDs: RecentClientIDs
    var searchBacklog = SearchBacklog()
    /// The chat that the last step of `purgeMessages` served.
    var purgedChat = ChatKey(.min)
    /// The user of the purge that the last call of `nextEntityPurge` returned.
    var purgedUser = UserID(.min)
    /// Whether deletions that run in several steps may be pending. True at the start, because this
    /// is not known yet.
    package internal(set) var mayHavePurges = true
    var lastSessionID: Int64
    var lastDeviceID: Int64
    var lastChatKey: Int64
    var lastAuditID: Int64

    /// The maximum number of chats that are cached between batches. A full cache is cleared.
    private static let cachedChats = 20_000
    /// The maximum number of entries in each of the caches `listed` and `openSessions`. An entry
    /// takes about 50 bytes. A full cache is cleared.
    private static let cachedUsers = 100_000
    /// The number of client ids that `recentClientIDs` keeps. A larger cache would help only
    /// clients whose clocks are minutes behind.
    private static let recentClientIDs = 16_384
    /// The key in `meta` for the newest session's id.
    static let lastSessionKey = "last_session"

    struct Pair: Hashable {
        let low: Int64
        let high: Int64
    }

    struct SendKey: Hashable {
        let sender: UserID
        let device: DeviceID
        let cid: Int64
        /// The chat; nil for the message that creates a group.
        let chat: ChatKey?
    }

    init(_ store: StoreConnection, userIDs: UserIDSource, counter: UInt16) throws {
        self.store = store
        self.userIDs = userIDs
        reader = ReadTransaction(store)
        self.counter = counter
        recentClientIDs = RecentClientIDs(
            newest: try reader.newestClientIDs(
                below: RecentClientIDs.ceiling,
                limit: Self.recentClientIDs
            ),
            kept: Self.recentClientIDs
        )
        (lastSessionID, lastDeviceID, lastChatKey, lastAuditID) = try Self.lastIDs(store)
    }

    private static func lastIDs(_ store: StoreConnection) throws -> (Int64, Int64, Int64, Int64) {
        func last(_ table: String, _ statement: any SQLStatement) throws -> Int64 {
            try possible(statement.oneInt() ?? 0, table)
        }
        // The server computes the next id from this id.
        func possible(_ id: Int64, _ table: String) throws -> Int64 {
            guard id <= StoreCheck.ids.upperBound else { throw ImpossibleRow("\(table): id", id) }
            return id
        }
        // Rows of sessions may be deleted, so `meta` contains the newest id. An older store
        // contains only the rows.
        let rememberedSession = try possible(
            store.meta.value(lastSessionKey) ?? 0,
            "meta last_session"
        )
        return (
            max(rememberedSession, try last("session", store.sessions.lastID)),
            try last("device", store.sessions.lastDevice),
            try last("chat", store.chats.lastPositiveID),
            try last("audit", store.audit.lastID)
        )
    }

    // MARK: - The batch

    func open(ct: Int64) {
        self.ct = ct
    }

    /// Queues an event. The event is sent after the commit.
    package func emit(_ event: Event) {
        writes += 1
        events.append(event)
    }

    /// Flushes pending writes and returns a reader that sees all writes of this batch.
    package func flushedReader() throws -> ReadTransaction {
        try flush()
        return reader
    }

    func flush() throws {
        try flushMessages()
        guard !dirtyMembers.isEmpty || !touched.isEmpty else { return }
        dirtyMembers.sort {
            ($0.member.userID, $0.chat) < ($1.member.userID, $1.chat)
        }
        for (chat, member) in dirtyMembers { try write(member, of: chat) }
        dirtyMembers.removeAll(keepingCapacity: true)
        for chat in touched where chat.isClockDirty {
            try store.chats.setClock.run {
                $0.bind(1, chat.key.rawValue)
                $0.bind(2, chat.changeClock)
            }
            chat.isClockDirty = false
        }
        touched.removeAll(keepingCapacity: true)
    }

    /// Writes the changed columns of a member's row. For most rows only the clock changes, because
    /// the member receives a message but does not write one. Writing only the clock changes the
    /// fewest indexes.
    private func write(_ member: MemberState, of chat: ChatKey) throws {
        let statement: any SQLStatement
        switch member.unsaved {
        case .nothing: return
        case .clock: statement = store.members.setClock
        case .marks: statement = store.members.setMarks
        case .row: statement = store.members.insert
        }
        statement.bind(1, member.userID.rawValue)
        statement.bind(2, chat.rawValue)
        statement.bind(3, member.ct)
        if member.unsaved >= .marks {
            statement.bind(4, member.readTime)
            statement.bind(5, member.readNumber)
            statement.bind(6, member.shownTime)
        }
        if member.unsaved == .row {
            statement.bind(7, member.joined)
            statement.bind(8, member.isBig ? 1 : 0)
            statement.bind(9, member.floor.rawValue)
        }
        try statement.run()
        member.isSaved()
    }

    func flushMessages() throws {
        guard !pending.isEmpty else { return }
        pending.sort { ($0.chat, $0.id) < ($1.chat, $1.id) }
        let insert = store.messages.insert
        for record in pending {
            insert.bind(1, record.chat.rawValue)
            insert.bind(2, record.id.rawValue)
            insert.bind(3, record.number)
            insert.bind(4, record.sender.rawValue)
            insert.bind(5, record.cid)
            insert.bind(6, record.device.rawValue)
            insert.bind(7, record.status.rawValue)
            insert.bind(8, record.updated)
            insert.bind(9, record.replyTo?.rawValue ?? 0)
            insert.bindBlob(11, record.elements?.bytes)
            insert.bindBlob(12, record.attaches?.bytes)
            insert.bindBlob(13, record.forward?.bytes)
            insert.bind(14, record.poll?.rawValue ?? 0)
            try record.text.bytes.withUnsafeBytes { text in
                insert.bindBlob(10, borrowed: text)
                try insert.run()
            }
            chats[record.chat]?.hasPendingMessages = false
        }
        pending.removeAll(keepingCapacity: true)
        pendingKeys.removeAll(keepingCapacity: true)
    }

    func close() -> [Event] {
        defer {
            events = []
            told = []
            writes = 0
            if chats.count > Self.cachedChats {
                chats = [:]
                pairs = [:]
            }
            if listed.count > Self.cachedUsers { listed = [] }
            if openSessions.count > Self.cachedUsers { openSessions = [] }
        }
        return events
    }

    func abandon() {
        events = []
        told = []
        writes = 0
        chats = [:]
        pairs = [:]
        listed = []
        openSessions = []
        touched = []
        dirtyMembers = []
        pending = []
        pendingKeys = [:]
        if let last = try? Self.lastIDs(store) {
            (lastSessionID, lastDeviceID, lastChatKey, lastAuditID) = last
        }
    }
}
