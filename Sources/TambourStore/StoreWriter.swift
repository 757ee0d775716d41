package import TambourProtocol
import TambourSQL

/// The one writer of a store: caches chats, opens a transaction per batch, writes back at its end.
///
/// Owned by the engine and touched on its queue only.
package final class StoreWriter {
    package let connection: StoreConnection
    private let transaction: WriteTransaction

    /// - Parameter firstCounter: where the 16-bit counter in message ids starts; any value will do.
    package init(_ connection: StoreConnection, firstCounter: UInt16 = 0) throws {
        self.connection = connection
        transaction = try WriteTransaction(connection, counter: firstCounter)
    }

    /// The clock of the last commit on disk; 0 in a new store.
    package func persistedClock() throws -> Int64 {
        try connection.meta.value("ct") ?? 0
    }

    /// Opens the transaction of a batch whose commit clock is `ct`.
    package func begin(ct: Int64) throws -> WriteTransaction {
        try connection.sql.begin(.immediate)
        transaction.open(ct: ct)
        return transaction
    }

    /// Writes back what the batch changed and commits it.
    ///
    /// - Returns: the events of the batch, in the order of its commands.
    /// - Throws: whatever the store says; then call `rollback`.
    package func commit() throws -> [Event] {
        try transaction.flush()
        try connection.meta.set("ct", transaction.ct)
        try connection.sql.commit()
        return transaction.close()
    }

    /// Drops the batch and everything cached, which may stem from it.
    package func rollback() {
        connection.sql.rollback()
        transaction.abandon()
    }
}

/// A batch of commands inside one database transaction.
///
/// Handlers make every check first and write then. Rows that several commands touch (members,
/// big chats' clocks) are held here and written once; messages go in sorted at the end.
package final class WriteTransaction {
    private let store: StoreConnection
    private let snapshot: ReadTransaction

    /// The commit clock of this batch, Unix milliseconds.
    package private(set) var ct: Int64 = 0
    /// How often commands of this batch have written or emitted so far.
    package private(set) var writes = 0

    private var counter: UInt16
    private var events: [Event] = []
    private var chats: [ChatKey: ChatState] = [:]
    private var pairs: [Pair: ChatKey] = [:]
    private var touched: [ChatState] = []
    private var dirtyMembers: [(chat: ChatKey, member: MemberState)] = []
    private var pending: [MessageRecord] = []
    private var pendingKeys: [SendKey: Int] = [:]
    private var lastAccountID: Int64
    private var lastSessionID: Int64
    private var lastDeviceID: Int64
    private var lastChatKey: Int64

    /// Chats held between batches; beyond that the cache starts afresh.
    private static let cachedChats = 20_000

    private struct Pair: Hashable {
        let low: Int64
        let high: Int64
    }

    private struct SendKey: Hashable {
        let sender: UserID
        let device: DeviceID
        let cid: Int64
        /// Nil for the message that creates a group.
        let chat: ChatKey?
    }

    init(_ store: StoreConnection, counter: UInt16) throws {
        self.store = store
        snapshot = ReadTransaction(store)
        self.counter = counter
        (lastAccountID, lastSessionID, lastDeviceID, lastChatKey) = try Self.lastIDs(store)
    }

    private static func lastIDs(_ store: StoreConnection) throws -> (Int64, Int64, Int64, Int64) {
        func last(_ statement: any SQLStatement) throws -> Int64 {
            defer { statement.reset() }
            return try statement.step() && !statement.isNull(0) ? statement.int(0) : 0
        }
        return (
            try last(store.accounts.lastID), try last(store.sessions.lastID),
            try last(store.sessions.lastDevice), try last(store.chats.lastPositiveID)
        )
    }

    // MARK: - The batch

    func open(ct: Int64) {
        self.ct = ct
    }

    /// Tells others: the event leaves after the commit.
    package func emit(_ event: Event) {
        writes += 1
        events.append(event)
    }

    /// The transaction's own state, with everything this batch wrote in it.
    package func reading() throws -> ReadTransaction {
        try flush()
        return snapshot
    }

    /// The transaction's state without what waits for the write-back: right for rows that are never
    /// held back (accounts, sessions, codes).
    package var direct: ReadTransaction { snapshot }

    func flush() throws {
        try flushMessages()
        guard !dirtyMembers.isEmpty || !touched.isEmpty else { return }
        dirtyMembers.sort {
            ($0.member.userID, $0.chat) < ($1.member.userID, $1.chat)
        }
        let upsert = store.members.upsert
        for (chat, member) in dirtyMembers {
            upsert.bind(1, member.userID.rawValue)
            upsert.bind(2, chat.rawValue)
            upsert.bind(3, member.joined)
            upsert.bind(4, member.readTime)
            upsert.bind(5, member.readNumber)
            upsert.bind(6, member.ct)
            upsert.bind(7, member.contactCT)
            upsert.bind(8, member.isBig ? 1 : 0)
            try upsert.run()
            member.isDirty = false
        }
        dirtyMembers.removeAll(keepingCapacity: true)
        for chat in touched where chat.isHeadDirty {
            store.chats.setHead.bind(1, chat.key.rawValue)
            store.chats.setHead.bind(2, chat.headCT)
            try store.chats.setHead.run()
            chat.isHeadDirty = false
        }
        touched.removeAll(keepingCapacity: true)
    }

    private func flushMessages() throws {
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
            insert.bindText(10, record.text.bytes)
            insert.bindBlob(11, record.elements?.bytes)
            insert.bindBlob(12, record.attaches?.bytes)
            insert.bindBlob(13, record.forward?.bytes)
            try insert.run()
            chats[record.chat]?.hasPendingMessages = false
        }
        pending.removeAll(keepingCapacity: true)
        pendingKeys.removeAll(keepingCapacity: true)
    }

    func close() -> [Event] {
        defer {
            events = []
            writes = 0
            if chats.count > Self.cachedChats {
                chats = [:]
                pairs = [:]
            }
        }
        return events
    }

    func abandon() {
        events = []
        writes = 0
        chats = [:]
        pairs = [:]
        touched = []
        dirtyMembers = []
        pending = []
        pendingKeys = [:]
        if let last = try? Self.lastIDs(store) {
            (lastAccountID, lastSessionID, lastDeviceID, lastChatKey) = last
        }
    }

    // MARK: - Chats

    /// The chat that `wireID` means to `user`, who must be a member of it.
    ///
    /// - Returns: nil for an unknown chat and for one of others: the two look alike.
    package func chat(_ wireID: ChatID, visibleTo user: UserID) throws -> ChatState? {
        let key: ChatKey?
        if wireID.rawValue < 0 {
            key = ChatKey(wireID.rawValue)
        } else {
            key = try pairKey(user, UserID(wireID.rawValue ^ user.rawValue))
        }
        guard let key, let chat = try chat(key), try member(user, of: chat) != nil else {
            return nil
        }
        return chat
    }

    /// The dialog of two users, or the saved messages of one; nil until it is created.
    package func chat(of a: UserID, and b: UserID) throws -> ChatState? {
        guard let key = try pairKey(a, b) else { return nil }
        return try chat(key)
    }

    /// The member's state; nil when `user` is no member.
    package func member(_ user: UserID, of chat: ChatState) throws -> MemberState? {
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
        guard let key = try snapshot.pairKey(a, b) else { return nil }
        pairs[pair] = key
        return key
    }

    private func chat(_ key: ChatKey) throws -> ChatState? {
        if let chat = chats[key] { return chat }
        let statement = store.chats.byID
        statement.bind(1, key.rawValue)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let kind = ChatKind(rawValue: statement.int(1)) ?? .group
        let isBig = statement.int(7) > Int64(store.limits.fanOutMembers)
        let chat = ChatState(
            key: key,
            kind: kind,
            pair: kind == .group
                ? nil : (UserID(statement.int(2)), UserID(statement.int(3))),
            owner: UserID(statement.int(4)),
            title: statement.isNull(5) ? nil : Text(unchecked: Bytes(statement.bytes(5))),
            created: statement.int(6),
            isBig: isBig,
            head: try snapshot.head(of: key),
            headCT: statement.int(8),
            members: isBig ? [:] : try allMembers(of: key),
            memberIDs: try snapshot.memberIDs(of: key)
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

    /// Creates a group; its id is `-(ct * 4096 + n)`, unique and within 53 bits for JSON clients.
    ///
    /// - Parameter members: without repetitions, the owner among them.
    package func createGroup(
        title: Text,
        owner: UserID,
        members: [UserID]
    ) throws -> ChatState {
        writes += 1
        var number = ct * 4096
        while try chat(ChatKey(-number)) != nil { number += 1 }
        return try create(
            ChatKey(-number),
            kind: .group,
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
        let isBig = memberIDs.count > store.limits.fanOutMembers
        let insert = store.chats.insert
        insert.bind(1, key.rawValue)
        insert.bind(2, kind.rawValue)
        insert.bind(3, pair?.low.rawValue)
        insert.bind(4, pair?.high.rawValue)
        insert.bind(5, owner.rawValue)
        if let title { insert.bindText(6, title.bytes) } else { insert.bindNull(6) }
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
                readNumber: 0,
                ct: ct,
                contactCT: kind == .dialog ? ct : 0,
                isBig: isBig
            )
        }
        let chat = ChatState(
            key: key,
            kind: kind,
            pair: pair,
            owner: owner,
            title: title,
            created: ct,
            isBig: isBig,
            head: .empty,
            headCT: ct,
            members: members,
            memberIDs: memberIDs
        )
        chats[key] = chat
        if let pair {
            pairs[Pair(low: pair.low.rawValue, high: pair.high.rawValue)] = key
        }
        for member in members.values { markDirty(member, in: chat) }
        return chat
    }

    /// Says that something every member can see has changed.
    private func touch(_ chat: ChatState) {
        if chat.isBig {
            chat.headCT = ct
            if !chat.isHeadDirty {
                chat.isHeadDirty = true
                touched.append(chat)
            }
        } else {
            for member in chat.members.values { touch(member, in: chat) }
        }
    }

    private func touch(_ member: MemberState, in chat: ChatState) {
        member.touch(ct)
        markDirty(member, in: chat)
    }

    private func markDirty(_ member: MemberState, in chat: ChatState) {
        guard !member.isDirty else { return }
        member.isDirty = true
        dirtyMembers.append((chat.key, member))
    }

    // MARK: - Messages

    /// What (sender, device, chat, cid) stored before, in this batch or long ago.
    ///
    /// - Parameter chat: nil asks for the message that created a group.
    package func sent(
        cid: Int64,
        from sender: UserID,
        on device: DeviceID,
        in chat: ChatState?
    ) throws -> MessageRecord? {
        let key = SendKey(sender: sender, device: device, cid: cid, chat: chat?.key)
        if let index = pendingKeys[key] { return pending[index] }
        return try snapshot.records(cid: cid, sender: sender).first { record in
            guard record.device == device else { return false }
            let isCreation = record.chat.rawValue < 0 && record.number == 1
            if let chat { return record.chat == chat.key && !isCreation }
            return isCreation
        }
    }

    /// The chat with this key, whoever asks.
    package func chat(holding record: MessageRecord) throws -> ChatState? {
        try chat(record.chat)
    }

    /// Appends a message: its time is `max(ct, last + 1)`, its sender has read it.
    ///
    /// - Returns: the stored row and the id before it in the chat.
    package func append(
        _ draft: MessageDraft,
        to chat: ChatState,
        from sender: UserID,
        on device: DeviceID
    ) throws -> (record: MessageRecord, previous: MessageID?) {
        guard let member = try member(sender, of: chat) else {
            preconditionFailure("the handler has looked the sender up among the members")
        }
        writes += 1
        let previous = chat.head.number == 0 ? nil : chat.head.id
        let time = max(ct, chat.head.id.timeMs + 1)
        counter &+= 1
        let record = MessageRecord(
            chat: chat.key,
            id: MessageID(timeMs: time, counter: counter),
            number: chat.head.number + 1,
            sender: sender,
            cid: draft.cid,
            device: device,
            status: .plain,
            updated: 0,
            replyTo: draft.replyTo,
            text: draft.text,
            elements: draft.elements,
            attaches: draft.attaches,
            forward: draft.forward
        )
        let isCreation = chat.kind == .group && record.number == 1
        let key = SendKey(
            sender: sender,
            device: device,
            cid: draft.cid,
            chat: isCreation ? nil : chat.key
        )
        pendingKeys[key] = pending.count
        pending.append(record)
        chat.hasPendingMessages = true
        chat.head = ChatHead(id: record.id, number: record.number)
        member.setRead(time: time, number: record.number)
        touch(chat)
        touch(member, in: chat)
        return (record, previous)
    }

    /// A message of the chat as `user` sees it; nil when removed, hidden or unknown.
    package func message(
        _ id: MessageID,
        in chat: ChatState,
        visibleTo user: UserID
    ) throws -> MessageRecord? {
        if chat.hasPendingMessages { try flushMessages() }
        return try snapshot.visibleRecord(id, in: chat.key, for: user)
    }

    /// The row itself, removed ones included.
    package func record(_ id: MessageID, in chat: ChatState) throws -> MessageRecord? {
        if chat.hasPendingMessages { try flushMessages() }
        return try snapshot.record(id, in: chat.key)
    }

    package func previousID(of record: MessageRecord, in chat: ChatState) throws -> MessageID? {
        if chat.hasPendingMessages { try flushMessages() }
        return try snapshot.previousID(of: record.id, in: chat.key)
    }

    /// The object that travels.
    package func message(
        _ record: MessageRecord,
        in chat: ChatState,
        previous: MessageID? = nil
    ) throws -> Message {
        if record.replyTo != nil, chat.hasPendingMessages { try flushMessages() }
        return try snapshot.message(record, wireID: chat.wireID, previous: previous)
    }

    /// Replaces what an edit may replace. `record` is the row to be, its id that of the row there is.
    ///
    /// - Returns: the row as stored, with its status and time of change.
    package func edit(_ record: MessageRecord, in chat: ChatState) throws -> MessageRecord {
        writes += 1
        var edited = record
        edited.status = .edited
        edited.updated = ct
        let statement = store.messages.edit
        statement.bind(1, record.chat.rawValue)
        statement.bind(2, record.id.rawValue)
        statement.bind(3, ct)
        statement.bindText(4, edited.text.bytes)
        statement.bindBlob(5, edited.elements?.bytes)
        statement.bindBlob(6, edited.attaches?.bytes)
        try statement.run()
        touch(chat)
        return edited
    }

    /// Deletes for all: the content goes, the row stays.
    package func remove(_ ids: [MessageID], in chat: ChatState) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        let statement = store.messages.remove
        for id in ids {
            statement.bind(1, chat.key.rawValue)
            statement.bind(2, id.rawValue)
            statement.bind(3, ct)
            try statement.run()
        }
        touch(chat)
    }

    /// Deletes for `user` alone.
    package func hide(_ ids: [MessageID], in chat: ChatState, for user: UserID) throws {
        guard !ids.isEmpty, let member = try member(user, of: chat) else { return }
        writes += 1
        let statement = store.messages.hide
        for id in ids {
            statement.bind(1, user.rawValue)
            statement.bind(2, chat.key.rawValue)
            statement.bind(3, id.rawValue)
            try statement.run()
        }
        touch(member, in: chat)
    }

    // MARK: - Read marks

    /// Moves the read mark of `user` to `time` (Unix milliseconds), in either direction.
    ///
    /// In a small chat everybody sees everybody's mark, so every member's row changes.
    package func setRead(_ time: Int64, of user: UserID, in chat: ChatState) throws {
        guard let member = try member(user, of: chat), member.readTime != time else { return }
        let number: Int64
        if time >= chat.head.id.timeMs {
            number = chat.head.number
        } else {
            if chat.hasPendingMessages { try flushMessages() }
            number = try snapshot.head(of: chat.key, at: time).number
        }
        writes += 1
        member.setRead(time: time, number: number)
        touch(member, in: chat)
        if !chat.isBig { touch(chat) }
    }

    /// How many messages of the chat `user` has not read.
    package func unread(of user: UserID, in chat: ChatState) throws -> Int64 {
        guard let member = try member(user, of: chat), member.readNumber < chat.head.number else {
            return 0
        }
        if chat.hasPendingMessages { try flushMessages() }
        return try snapshot.unread(
            in: chat.key,
            viewer: user,
            readTime: member.readTime,
            readNumber: member.readNumber,
            head: chat.head
        )
    }

    // MARK: - Accounts, sessions, codes

    package func createAccount(
        phone: Int64,
        firstName: String,
        lastName: String?
    ) throws -> UserID {
        writes += 1
        lastAccountID += 1
        let statement = store.accounts.insert
        statement.bind(1, lastAccountID)
        statement.bind(2, phone)
        statement.bindText(3, firstName)
        if let lastName { statement.bindText(4, lastName) } else { statement.bindNull(4) }
        statement.bind(5, ct)
        try statement.run()
        return UserID(lastAccountID)
    }

    /// Blocks an account or lets it in again; every dialog partner's contact changes.
    package func setBlocked(_ isBlocked: Bool, _ user: UserID) throws {
        writes += 1
        let statement = store.accounts.setBlocked
        statement.bind(1, user.rawValue)
        statement.bind(2, isBlocked ? 1 : 0)
        statement.bind(3, ct)
        try statement.run()
        try flush()
        store.members.touchContacts.bind(1, user.rawValue)
        store.members.touchContacts.bind(2, ct)
        try store.members.touchContacts.run()
    }

    /// Records when a user and its session were last online, Unix milliseconds.
    package func setSeen(_ time: Int64, user: UserID, session: SessionID) throws {
        writes += 1
        store.accounts.setSeen.bind(1, user.rawValue)
        store.accounts.setSeen.bind(2, time)
        try store.accounts.setSeen.run()
        store.sessions.setSeen.bind(1, session.rawValue)
        store.sessions.setSeen.bind(2, time)
        try store.sessions.setSeen.run()
    }

    /// Opens a session on the device that `origin` names, which keeps its identity across logins.
    package func createSession(
        of user: UserID,
        tokenHash: [UInt8],
        origin: SessionOrigin
    ) throws -> SessionID {
        writes += 1
        let device = try device(of: user, installation: origin.installation)
        lastSessionID += 1
        let statement = store.sessions.insert
        statement.bind(1, lastSessionID)
        statement.bind(2, user.rawValue)
        statement.bind(3, device.rawValue)
        statement.bindBlob(4, tokenHash)
        statement.bind(5, ct)
        statement.bindText(6, origin.client)
        statement.bindText(7, origin.info)
        statement.bindText(8, origin.address)
        try statement.run()
        return SessionID(lastSessionID)
    }

    private func device(of user: UserID, installation: String) throws -> DeviceID {
        let known = store.sessions.device
        known.bind(1, user.rawValue)
        known.bindText(2, installation)
        defer { known.reset() }
        if try known.step() { return DeviceID(known.int(0)) }
        lastDeviceID += 1
        let insert = store.sessions.insertDevice
        insert.bind(1, lastDeviceID)
        insert.bind(2, user.rawValue)
        insert.bindText(3, installation)
        try insert.run()
        return DeviceID(lastDeviceID)
    }

    /// Kills the tokens of these sessions; their connections close after the commit.
    package func closeSessions(_ sessions: [SessionID]) throws {
        guard !sessions.isEmpty else { return }
        for session in sessions {
            store.sessions.delete.bind(1, session.rawValue)
            try store.sessions.delete.run()
        }
        emit(.sessionsClosed(sessions))
    }

    /// Stores a code request and forgets those older than `keptSince` (Unix milliseconds).
    package func createLoginCode(
        tokenHash: [UInt8],
        codeHash: [UInt8],
        phone: Int64,
        address: String,
        now: Int64,
        expires: Int64,
        keptSince: Int64
    ) throws {
        writes += 1
        store.sessions.pruneCodes.bind(1, keptSince)
        try store.sessions.pruneCodes.run()
        store.sessions.pruneRegistrations.bind(1, now)
        try store.sessions.pruneRegistrations.run()
        let statement = store.sessions.insertCode
        statement.bindBlob(1, tokenHash)
        statement.bind(2, phone)
        statement.bindBlob(3, codeHash)
        statement.bindText(4, address)
        statement.bind(5, now)
        statement.bind(6, expires)
        try statement.run()
    }

    package func countLoginTry(tokenHash: [UInt8]) throws {
        writes += 1
        store.sessions.countTry.bindBlob(1, tokenHash)
        try store.sessions.countTry.run()
    }

    /// Uses a code up. Its row stays a while: it counts against the hourly limit.
    package func spendLoginCode(tokenHash: [UInt8]) throws {
        writes += 1
        store.sessions.deleteCode.bindBlob(1, tokenHash)
        try store.sessions.deleteCode.run()
    }

    package func createRegistration(tokenHash: [UInt8], phone: Int64, expires: Int64) throws {
        writes += 1
        let statement = store.sessions.insertRegistration
        statement.bindBlob(1, tokenHash)
        statement.bind(2, phone)
        statement.bind(3, expires)
        try statement.run()
    }

    package func spendRegistration(tokenHash: [UInt8]) throws {
        writes += 1
        store.sessions.deleteRegistration.bindBlob(1, tokenHash)
        try store.sessions.deleteRegistration.run()
    }
}

extension MemberState {
    convenience init(row: any SQLStatement) {
        self.init(
            userID: UserID(row.int(0)),
            joined: row.int(1),
            readTime: row.int(2),
            readNumber: row.int(3),
            ct: row.int(4),
            contactCT: row.int(5),
            isBig: row.int(6) != 0
        )
    }
}
