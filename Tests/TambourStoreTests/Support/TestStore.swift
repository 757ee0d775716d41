import Synchronization
import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore

/// A migrated store for one test, with a writer and with a reader on a separate connection.
///
/// The time moves only when the test runs a batch. Each batch is one second after the previous
/// batch, unless the test gives a time.
final class TestStore {
    let database: TestDatabase
    private(set) var limits: Limits
    private(set) var writer: StoreWriter
    private(set) var reader: StoreConnection
    /// The commit clock of the last batch, in Unix milliseconds.
    private(set) var now: Int64 = 1_700_000_000_000
    /// The device from which `send` sends all messages.
    let device = DeviceID(1)
    private var lastCID: Int64 = 0
    private let userIDs: UserIDSource

    /// - Parameter userIDs: The source of user ids. If it is nil, users get the ids 1, 2, 3 and so
    ///   on.
    init(
        _ engine: SQLEngine,
        limits overrides: [String: Int] = [:],
        userIDs: UserIDSource? = nil
    ) throws {
        self.userIDs = userIDs ?? .rising()
        database = try TestDatabase(engine)
        limits = try Limits(overrides: overrides)
        let connection = try database.connect()
        try StoreConnection.migrate(connection)
        writer = try StoreWriter(
            StoreConnection(connection, limits: limits),
            userIDs: self.userIDs
        )
        reader = try StoreConnection(database.connect(), limits: limits)
    }

    /// Opens the database again with new connections, like a server that restarts.
    func reopen(limits overrides: [String: Int] = [:]) throws {
        limits = try Limits(overrides: overrides)
        writer = try StoreWriter(
            StoreConnection(database.connect(), limits: limits),
            userIDs: userIDs
        )
        reader = try StoreConnection(database.connect(), limits: limits)
    }

    /// Runs `body` as a batch and commits the batch. If `body` throws, rolls the batch back.
    ///
    /// - Parameter time: The commit clock of the batch; by default, one second after the last
    ///   batch.
    @discardableResult
    func batch<Result>(
        at time: Int64? = nil,
        _ body: (WriteTransaction) throws -> Result
    ) throws -> Result {
        now = time ?? now + 1000
        do {
            let result = try body(writer.begin(.at(now)))
            _ = try writer.commit()
            return result
        } catch {
            writer.rollback()
            throw error
        }
    }

    /// Runs `body` on the committed state.
    func read<Result>(_ body: (ReadTransaction) throws -> Result) throws -> Result {
        try reader.read(body)
    }

    /// Returns the problems that StoreCheck reports.
    func problems() throws -> [String] {
        try StoreCheck.problems(of: writer.connection, wall: now)
    }

    // MARK: - Common setup

    /// Registers `count` users. In a new store, they have the ids 1, 2, 3 and so on.
    func users(_ count: Int) throws -> [UserID] {
        try batch { tx in
            try (1...count).map { number in
                try tx.createAccount(
                    phone: 79_990_000_000 + Int64(number),
                    firstName: "User \(number)",
                    lastName: nil
                )
            }
        }
    }

    /// Returns an unused `cid`.
    func nextCID() -> Int64 {
        lastCID += 1
        return lastCID
    }

    /// Sends a text to the dialog of two users, in a separate batch. Creates the dialog if it does
    /// not exist.
    @discardableResult
    func send(
        _ text: Text,
        from sender: UserID,
        to receiver: UserID,
        at time: Int64? = nil
    ) throws -> MessageRecord {
        try batch(at: time) { try send(text, from: sender, to: receiver, in: $0) }
    }

    /// Sends a text within a batch.
    @discardableResult
    func send(
        _ text: Text,
        from sender: UserID,
        to receiver: UserID,
        in tx: WriteTransaction
    ) throws -> MessageRecord {
        let chat =
            try tx.chat(of: sender, and: receiver)
            ?? tx.createPairChat(sender, receiver, by: sender)
        return try send(text, from: sender, to: chat, in: tx)
    }

    @discardableResult
    func send(
        _ text: Text,
        from sender: UserID,
        to chat: ChatState,
        in tx: WriteTransaction
    ) throws -> MessageRecord {
        let content = MessageContent(cid: nextCID(), text: text)
        return try tx.append(content, to: chat, from: sender, on: device).record
    }

    /// Creates a group and sends its creation event, in a separate batch.
    func group(_ members: [UserID], title: Text = "Group") throws -> ChatKey {
        try batch { tx in
            let chat = try tx.createGroup(title: title, owner: members[0], members: members)
            try send("created", from: members[0], to: chat, in: tx)
            return chat.key
        }
    }

    /// Returns the newest `count` messages as `viewer` sees them, oldest first.
    func texts(of chat: ChatKey, for viewer: UserID, count: Int = 100) throws -> [String] {
        try read { snapshot in
            try snapshot.history(
                of: chat,
                at: MessageAddress(chatID: ChatID(0)),
                for: viewer,
                above: MessageID(0),
                from: .max,
                backward: count,
                forward: 0
            ).messages.map { String($0.text) }
        }
    }
}

extension UserIDSource {
    /// Returns a source that yields the ids 1, 2, 3 and so on.
    static func rising() -> Self {
        let last = Rising()
        return Self { last.value.add(1, ordering: .relaxed).newValue }
    }

    private final class Rising: Sendable {
        let value = Atomic<UInt64>(0)
    }
}

extension WriteTransaction {
    /// Moves the read mark of a user forward or back. The user must show the mark to others.
    func setRead(_ time: Int64, of user: UserID, in chat: ChatState) throws {
        try raiseRead(to: time, of: user, in: chat)
        try lowerRead(to: time, of: user, in: chat)
    }

    /// Returns the group with this key; nil if it is not visible to `user`.
    func group(_ key: ChatKey, for user: UserID) throws -> ChatState? {
        try chat(ChatID(key.rawValue), visibleTo: user)
    }
}

extension CommitStamp {
    /// Returns a stamp with this clock. Its lease is for tests in which the lease does not matter.
    static func at(_ ct: Int64) -> CommitStamp { CommitStamp(ct: ct, leaseEnd: ct) }
}
