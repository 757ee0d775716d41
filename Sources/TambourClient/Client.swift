import GRDB
import TambourNet
public import TambourProtocol

/// A messenger account on this device: works from disk, and treats the network as a detail.
///
/// What is asked for is stored before the call returns, shown at once, and done on the server as soon as it can be reached,
/// once, however often the connection or the process dies meanwhile.
///
///     let client = try Client(store: "/home/anna/.local/share/tambour/anna.db")
///     client.start()
///     for chat in try client.chats() { print(chat.title, chat.unread) }
///     try await client.send("hello", to: chat.id)
///     for await change in client.changes() where change.histories.contains(chat.id) {
///         show(try client.history(of: chat.id))
///     }
public final class Client: Sendable {
    let store: LocalStore
    private let driver: ClientDriver
    private let listeners: Listeners

    /// Opens what is on this device; nothing is connected yet.
    ///
    /// - Parameters:
    ///   - path: the account's file, which is made if need be. Its folder must be there.
    ///   - server: `HOST:PORT`, remembered in the file; nil for the one remembered.
    /// - Throws: `ClientError.store`; `ClientError.invalid` when no server is known, or that is no address.
    public init(
        store path: String,
        server: String? = nil,
        options: ClientOptions = ClientOptions()
    ) throws(ClientError) {
        if let server {
            do {
                _ = try ListenAddress(server)
            } catch {
                throw .invalid(reason: "\(error)")
            }
        }
        let store = try LocalStore(path: path)
        try store.write { tx in
            if let server { try tx.set(.server, server) }
            guard try tx.value(of: .server) as String? != nil else {
                throw ClientError.invalid(reason: "no server is known: name one as HOST:PORT")
            }
        }
        let listeners = Listeners()
        self.store = store
        self.listeners = listeners
        driver = ClientDriver(store: store, options: options) { listeners.tell($0) }
    }

    deinit {
        // Who was not stopped is still at work on its lane.
        driver.stop { [listeners, store] in
            listeners.finish()
            store.close()
        }
    }

    // MARK: - Life

    /// Connects, and keeps connected until `stop`.
    public func start() {
        driver.start()
    }

    /// Closes the connection and the file; the client is of no use afterwards.
    public func stop() async {
        await withCheckedContinuation { continuation in
            driver.stop { continuation.resume() }
        }
        listeners.finish()
        store.close()
    }

    /// The network is another one now, as when a phone leaves its Wi-Fi: the connection is tried at once.
    public func networkChanged() {
        driver.perform { $0.networkChanged() }
    }

    /// Tries again sooner, because somebody waits for the connection: a pause after a failure ends, at the latest two
    /// seconds after it began. It may be called with each key that somebody presses.
    public func hurry() {
        driver.perform { $0.hurry() }
    }

    /// Where it stands with its server.
    public var state: ConnectionState { listeners.state }

    /// Why this account was signed out, by the server or by another process; nil when it was not since the client was made.
    public var signedOutReason: String? { listeners.signedOutReason }

    /// `signedOutReason` of who could sign in if nothing were held here.
    public static let holdsAnother = "this device holds the messages of another account"

    /// Bytes sent and received since the client was made.
    public func traffic() async -> (sent: Int, received: Int) {
        let both = try? await driver.call { [$0.bytesSent, $0.bytesReceived] }
        return (both?[0] ?? 0, both?[1] ?? 0)
    }

    // MARK: - What happens

    /// What changes in the local store from now on; whoever is slow gets several changes as one.
    public func changes() -> AsyncStream<ChangeSet> { listeners.changes() }

    /// The state of the connection, the present one first.
    public func states() -> AsyncStream<ConnectionState> { listeners.states() }

    /// What happens and is not kept; whoever is slow misses the oldest.
    public func events() -> AsyncStream<ClientEvent> { listeners.events() }

    // MARK: - Writing

    /// Sends a message.
    ///
    /// - Parameters:
    ///   - text: at most 4,000 UTF-16 units.
    ///   - message: what it answers, of the same chat.
    ///   - mentions: who is named in the text, and where.
    ///   - draft: what it was while it was being written; it is thrown away in the same transaction,
    ///     unless another one has taken its place.
    /// - Returns: when it is stored here; it names the message until the server has it.
    @discardableResult
    public func send(
        _ text: String,
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        mentioning mentions: [Mention] = [],
        isSilent: Bool = false,
        insteadOf draft: Draft = .empty
    ) async throws(ClientError) -> OutgoingID {
        try Self.check(text)
        return try await wish { core, tx in
            try core.send(
                MessagePart(text: text, mentions: mentions),
                to: chat,
                replyingTo: message,
                isSilent: isSilent,
                insteadOf: draft,
                tx
            )
        }
    }

    /// Sends a text of any length: as several messages, in order, where one has no room for it.
    ///
    /// The first of them answers `message`. The other parameters are those of `send`, the cuts those of `parts`.
    /// - Returns: when all are stored here; they name the messages until the server has them.
    /// - Throws: `ClientError.invalid` when there is nothing but white space in the text.
    @discardableResult
    public func sendInParts(
        _ text: String,
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        mentioning mentions: [Mention] = [],
        isSilent: Bool = false,
        insteadOf draft: Draft = .empty
    ) async throws(ClientError) -> [OutgoingID] {
        let parts = Self.parts(of: text, mentioning: mentions)
        guard let first = parts.first else { throw .invalid(reason: "there is nothing to send") }
        return try await wish { core, tx in
            let begin = try core.send(
                first,
                to: chat,
                replyingTo: message,
                isSilent: isSilent,
                insteadOf: draft,
                tx
            )
            return try [begin]
                + parts.dropFirst().map { try core.send($0, to: chat, isSilent: isSilent, tx) }
        }
    }

    /// Sends a copy of a message of any chat this account reads.
    @discardableResult
    public func forward(
        _ message: MessageID,
        of source: ChatID,
        to chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await wish { core, tx in
            try tx.requireMembership(of: chat)
            return try core.queue(
                SendTask(
                    chat: chat.rawValue,
                    cid: core.nextClientID(),
                    text: "",
                    forwardOf: message.rawValue,
                    forwardFrom: source.rawValue
                ),
                tx
            )
        }
    }

    /// - Throws: `ClientError.invalid` for what no message may say.
    static func check(_ text: String) throws(ClientError) {
        guard !text.isEmpty else { throw .invalid(reason: "there is nothing to send") }
        try requireRoom(for: text)
    }

    /// Deletes messages for everybody, or for this account alone.
    public func delete(
        _ messages: [MessageID],
        in chat: ChatID,
        onlyForMe: Bool = false
    ) async throws(ClientError) {
        try await want(
            DeleteTask(
                chat: chat.rawValue,
                messages: messages.map(\.rawValue),
                isForMe: onlyForMe
            )
        )
    }

    /// Says that everything up to a message was read.
    public func markRead(_ message: MessageID, in chat: ChatID) async throws(ClientError) {
        try await want(MarkTask(chat: chat.rawValue, message: message.rawValue, isUnread: false))
    }

    /// Makes a message and those after it unread again.
    public func markUnread(from message: MessageID, in chat: ChatID) async throws(ClientError) {
        try await want(MarkTask(chat: chat.rawValue, message: message.rawValue, isUnread: true))
    }

    /// Reacts to a message, in place of what this account reacted with before; nil takes that back.
    public func react(
        _ emoji: String?,
        to message: MessageID,
        in chat: ChatID
    ) async throws(ClientError) {
        if let emoji {
            try await want(
                ReactTask(chat: chat.rawValue, message: message.rawValue, emoji: emoji)
            )
        } else {
            try await want(CancelReactionTask(chat: chat.rawValue, message: message.rawValue))
        }
    }

    /// Tells the others that something is being written; nothing is kept of it.
    public func typing(in chat: ChatID) {
        driver.perform { core in
            core.run { _ in
                if core.isLive { core.call(MsgTypingRequest(chatID: chat)) { _, _ in } }
            }
        }
    }

    // MARK: - Chats and people

    /// Makes a group or a channel of these people and this account.
    @discardableResult
    public func createChat(
        title: String,
        members: [UserID],
        isChannel: Bool = false
    ) async throws(ClientError) -> OutgoingID {
        try await wish { core, tx in
            try core.queue(
                CreateChatTask(
                    cid: core.nextClientID(),
                    title: title,
                    isChannel: isChannel,
                    members: members.map(\.rawValue)
                ),
                tx
            )
        }
    }

    /// Changes what a chat is called, what it says of itself, or what is pinned in it; nil stays as it is.
    public func update(
        _ chat: ChatID,
        title: String? = nil,
        about: String? = nil,
        pinned: MessageID? = nil
    ) async throws(ClientError) {
        try await want(
            UpdateChatTask(
                chat: chat.rawValue,
                title: title,
                about: about,
                pinned: pinned?.rawValue
            )
        )
    }

    /// Puts people into a group or channel.
    public func add(_ users: [UserID], to chat: ChatID) async throws(ClientError) {
        try await want(
            UpdateMembersTask(
                chat: chat.rawValue,
                users: users.map(\.rawValue),
                isRemoval: false
            )
        )
    }

    /// Takes people out of a group or channel.
    public func remove(_ users: [UserID], from chat: ChatID) async throws(ClientError) {
        try await want(
            UpdateMembersTask(chat: chat.rawValue, users: users.map(\.rawValue), isRemoval: true)
        )
    }

    /// Leaves a group or channel; one that the account is not in any more is deleted from this device.
    public func leave(_ chat: ChatID) async throws(ClientError) {
        try await putAway(chat, by: LeaveChatTask(chat: chat.rawValue))
    }

    /// Puts a chat away until something new is said in it; one that the account is not in any more is deleted from
    /// this device.
    public func hide(_ chat: ChatID) async throws(ClientError) {
        try await putAway(chat, by: HideChatTask(chat: chat.rawValue))
    }

    private func putAway(_ chat: ChatID, by task: some ClientTask) async throws(ClientError) {
        try await wish { core, tx in
            guard try tx.isGone(chat) else {
                try core.queue(task, tx)
                return
            }
            try tx.removeChat(chat)
            core.forgetHistory(of: chat)
        }
    }

    /// Says whether a chat alerts.
    public func mute(_ chat: ChatID, _ isMuted: Bool) async throws(ClientError) {
        try await want(ConfigureChatTask(chat: chat.rawValue, mutedUntil: isMuted ? -1 : 0))
    }

    /// Says whether a chat is kept at the top of the list.
    public func pin(_ chat: ChatID, _ isPinned: Bool) async throws(ClientError) {
        try await want(ConfigureChatTask(chat: chat.rawValue, favourite: isPinned ? 1 : 0))
    }

    /// What is done to somebody among the contacts.
    public enum ContactChange: Sendable {
        /// Makes them a contact, under a name of this account's choice if one is given.
        case add(firstName: String?, lastName: String?)
        case rename(firstName: String, lastName: String?)
        case remove
        case block
        case unblock
    }

    /// Adds, renames, removes, blocks or unblocks somebody.
    public func change(_ user: UserID, _ change: ContactChange) async throws(ClientError) {
        let task =
            switch change {
            case .add(let first, let last):
                UpdateContactTask(
                    user: user.rawValue,
                    action: "ADD",
                    firstName: first,
                    lastName: last
                )
            case .rename(let first, let last):
                UpdateContactTask(
                    user: user.rawValue,
                    action: "UPDATE",
                    firstName: first,
                    lastName: last
                )
            case .remove: UpdateContactTask(user: user.rawValue, action: "REMOVE")
            case .block: UpdateContactTask(user: user.rawValue, action: "BLOCK")
            case .unblock: UpdateContactTask(user: user.rawValue, action: "UNBLOCK")
            }
        try await want(task)
    }

    /// Changes the account's own names and what it says of itself; nil stays as it is.
    public func updateProfile(
        firstName: String? = nil,
        lastName: String? = nil,
        about: String? = nil
    ) async throws(ClientError) {
        try await want(
            UpdateProfileTask(firstName: firstName, lastName: lastName, about: about)
        )
    }

    // MARK: - What waits

    /// Gives up what is not done yet, or drops what was refused.
    public func cancel(_ outgoing: OutgoingID) async throws(ClientError) {
        try await wish { core, tx in try core.cancel(outgoing, tx) }
    }

    /// Tries again what the server refused; what is tried already, or gone, is left alone.
    public func retry(_ outgoing: OutgoingID) async throws(ClientError) {
        try await wish { core, tx in try core.retry(outgoing, tx) }
    }

    // MARK: - How

    /// - Throws: `ClientError.invalid` when the text is too long for a message.
    static func requireRoom(for text: String) throws(ClientError) {
        guard fitsMessage(text) else {
            throw .invalid(reason: "a message has at most \(maxMessageUnits) characters")
        }
    }

    private func want(_ task: some ClientTask) async throws(ClientError) {
        try await wish { core, tx in try core.queue(task, tx) }
    }

    /// Does something in one transaction, on the lane.
    @discardableResult
    func wish<Value: Sendable>(
        _ body: @escaping @Sendable (ClientCore, StoreTransaction) throws -> Value
    ) async throws(ClientError) -> Value {
        try await driver.call { (core: ClientCore) throws(ClientError) -> Value in
            try core.attempt { tx in
                guard try tx.userID() != nil else { throw ClientError.signedOut }
                return try body(core, tx)
            }
        }
    }

    /// Asks the server something and waits for the answer; not kept, so of no use offline.
    func ask<Request: WireRequest & Sendable>(
        _ request: Request
    ) async throws(ClientError) -> Request.Reply where Request.Reply: Sendable {
        let result: Result<Request.Reply, ClientError> = await withCheckedContinuation {
            continuation in
            driver.perform { core in
                core.ask(request) { continuation.resume(returning: $0) }
            }
        }
        return try result.get()
    }

    /// Runs `body` with the core, on its lane.
    func perform(_ body: @escaping @Sendable (ClientCore) -> Void) {
        driver.perform(body)
    }

    func call<Value: Sendable>(
        _ body: @escaping @Sendable (ClientCore) throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        try await driver.call(body)
    }
}

extension ClientCore {
    /// Queues a message.
    ///
    /// - Parameter draft: thrown away, unless another one has taken its place.
    fileprivate func send(
        _ part: MessagePart,
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        isSilent: Bool,
        insteadOf draft: Client.Draft = .empty,
        _ tx: StoreTransaction
    ) throws -> OutgoingID {
        try tx.requireMembership(of: chat)
        try discardDraft(draft, in: chat, tx)
        return try queue(
            SendTask(
                chat: chat.rawValue,
                cid: nextClientID(),
                text: part.text,
                elements: part.mentions.storedElements,
                replyTo: message?.rawValue,
                isSilent: isSilent
            ),
            tx
        )
    }

    /// A number for a message that no other one of this installation has.
    func nextClientID() -> Int64 {
        clientIDs.next(nowMs: environment.wallMs(), random: environment.random()).rawValue
    }
}
