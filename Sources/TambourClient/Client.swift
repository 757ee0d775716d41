public import TambourProtocol

/// A messenger account on this device. It works from local storage, online or offline.
///
/// Each action is stored before the call returns and is shown at once. The client performs it on
/// the server when the server can be reached. The action takes effect once, even if the connection
/// or the process dies in between.
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

    /// Opens the account's file. Does not connect yet.
    ///
    /// - Parameters:
    ///   - path: the account's file, created if it does not exist. Its folder must exist.
    ///   - server: a `ServerAddress` as text, which the file then stores; nil for the stored
    ///     address.
    ///   - trust: the servers to trust at an address with TLS, which the file then stores; nil for
    ///     the stored trust. A new address starts with `ServerTrust.system`.
    /// - Throws: `ClientError.store`; `ClientError.invalid` when no server is known, or when server
    ///   or trust cannot be used. The file then keeps its server and its trust.
    public init(
        store path: String,
        server: String? = nil,
        trust: ServerTrust? = nil,
        options: ClientOptions = ClientOptions()
    ) throws(ClientError) {
        var address: ServerAddress?
        if let server { address = try ServerAddress(server) }
        let trust = trust?.withCertificatesOnly
        if let address { try trust?.requireTLS(at: address) }
        // A stored address is checked only when the client connects, because the stored messages
        // can be read without a connection.
        if trust != nil || address?.scheme == .tls { try (trust ?? .system).check() }
        let store = try LocalStore(path: path)
        try store.write { tx in try tx.set(server: address, trust: trust) }
        let listeners = Listeners()
        self.store = store
        self.listeners = listeners
        driver = ClientDriver(store: store, options: options) { listeners.tell($0) }
    }

    deinit {
        // A client that was not stopped is still running on its lane.
        driver.stop { [listeners, store] in
            listeners.finish()
            store.close()
        }
    }

    // MARK: - Lifecycle

    /// Connects, and stays connected until `stop`.
    public func start() {
        driver.start()
    }

    /// Closes the connection and the file. The client cannot be used afterwards.
    public func stop() async {
        await withCheckedContinuation { continuation in
            driver.stop { continuation.resume() }
        }
        listeners.finish()
        store.close()
    }

    /// Reports a change of network, for example when a phone leaves its Wi-Fi. A disconnected
    /// client reconnects at once, unless the server requested a pause. A connected client tests its
    /// connection.
    public func networkChanged() {
        driver.perform { $0.networkChanged() }
    }

    /// Shortens the pause after a failed connection: the pause then ends at most two seconds after
    /// it began. Call this when the user waits for the connection, even on every keystroke.
    public func hurry() {
        driver.perform { $0.hurry() }
    }

    /// The state of the connection to the server.
    public var state: ConnectionState { listeners.state }

    /// The reason why this account was signed out, as in `ClientEvent.signedOut`; nil if the
    /// account has not been signed out since the client was created or last online.
    public var signedOutReason: String? { listeners.signedOutReason }

    /// The `signedOutReason` when an account signs in on a device that still holds the messages of
    /// another account.
    public static let holdsAnother = "this device holds the messages of another account"

    /// Returns the number of bytes sent and received since the client was created.
    public func traffic() async -> (sent: Int, received: Int) {
        let both = try? await driver.call { [$0.bytesSent, $0.bytesReceived] }
        return (both?[0] ?? 0, both?[1] ?? 0)
    }

    /// Returns the remaining pause before the next attempt to connect; nil when the client is not
    /// pausing.
    public func pauseBeforeRetry() async -> Duration? {
        let pause = try? await driver.call { $0.pauseBeforeRetryMs }
        return pause.flatMap { $0 }.map { .milliseconds($0) }
    }

    /// Returns why the last attempt to connect failed; nil while the server accepts the client, and
    /// before the end of the first attempt. The client tries again after a pause.
    public func connectionFailure() async -> ConnectionFailure? {
        let failure = try? await driver.call { $0.lastFailure }
        return failure.flatMap { $0 }
    }

    // MARK: - Streams

    /// Returns a stream of the changes to the local store from now on. A slow reader receives
    /// several changes merged into one.
    public func changes() -> AsyncStream<ChangeSet> { listeners.changes() }

    /// Returns a stream of connection states, starting with the current state.
    public func states() -> AsyncStream<ConnectionState> { listeners.states() }

    /// Returns a stream of the events from now on. Events are not stored, and a slow reader misses
    /// the oldest events.
    public func events() -> AsyncStream<ClientEvent> { listeners.events() }

    // MARK: - Writing

    /// Sends a message.
    ///
    /// - Parameters:
    ///   - text: at most 4,000 UTF-16 units.
    ///   - message: the message of the same chat that the new message answers.
    ///   - spans: the formatting of the text, and the people whom it names; at most
    ///     `MessageSpan.most`.
    ///   - draft: the draft that became this message. The same transaction discards it, unless
    ///     another draft has replaced it.
    /// - Returns: an id for the message until the server assigns one. The message is already stored
    ///   when the call returns.
    @discardableResult
    public func send(
        _ text: String,
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        formatted spans: [MessageSpan] = [],
        isSilent: Bool = false,
        insteadOf draft: Draft = .empty
    ) async throws(ClientError) -> OutgoingID {
        try Self.check(text)
        return try await wish { core, tx in
            try core.send(
                MessagePart(text: text, spans: spans),
                to: chat,
                replyingTo: message,
                isSilent: isSilent,
                insteadOf: draft,
                tx
            )
        }
    }

    /// Sends a text of any length. A text too long for one message is sent as several messages in
    /// order.
    ///
    /// The first message answers `message`. The other parameters have the same meaning as in
    /// `send`. `parts` defines where the text is cut.
    /// - Returns: ids for the messages until the server assigns ids. All messages are already
    ///   stored when the call returns.
    /// - Throws: `ClientError.invalid` when the text is empty, when a text too long for one message
    ///   contains only white space, and for a chat that the account is no longer in.
    @discardableResult
    public func sendInParts(
        _ text: String,
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        formatted spans: [MessageSpan] = [],
        isSilent: Bool = false,
        insteadOf draft: Draft = .empty
    ) async throws(ClientError) -> [OutgoingID] {
        let parts = Self.parts(of: text, formatted: spans)
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

    /// Sends a copy of a message from any chat that this account can read.
    @discardableResult
    public func forward(
        _ message: MessageID,
        of source: ChatID,
        to chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await wish { core, tx in
            try tx.requireMembership(of: chat)
            try tx.requireNoComments(source, "a comment cannot be forwarded")
            try tx.requireNoComments(chat, "nothing can be forwarded into comments")
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

    /// - Throws: `ClientError.invalid` for a text that is empty or too long.
    static func check(_ text: String) throws(ClientError) {
        guard !text.isEmpty else { throw .invalid(reason: "there is nothing to send") }
        try requireRoom(for: text)
    }

    /// Deletes messages for everybody, or for this account only.
    ///
    /// - Returns: the id of the queued action. The functions below also return such an id.
    @discardableResult
    public func delete(
        _ messages: [MessageID],
        in chat: ChatID,
        onlyForMe: Bool = false
    ) async throws(ClientError) -> OutgoingID {
        try await wish { core, tx in
            let place = try tx.place(of: chat)
            return try core.queue(
                DeleteTask(
                    chat: place.chat.rawValue,
                    post: place.post?.rawValue,
                    messages: messages.map(\.rawValue),
                    isForMe: onlyForMe
                ),
                tx
            )
        }
    }

    /// Marks a message and all earlier messages as read.
    @discardableResult
    public func markRead(
        _ message: MessageID,
        in chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await want(MarkTask(chat: chat.rawValue, message: message.rawValue, isUnread: false))
    }

    /// Marks a message and all later messages as unread.
    @discardableResult
    public func markUnread(
        from message: MessageID,
        in chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await want(MarkTask(chat: chat.rawValue, message: message.rawValue, isUnread: true))
    }

    /// Reacts to a message. The new reaction replaces this account's earlier reaction; nil removes
    /// it.
    @discardableResult
    public func react(
        _ emoji: String?,
        to message: MessageID,
        in chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await wish { core, tx in
            let place = try tx.place(of: chat)
            let (chat, post) = (place.chat.rawValue, place.post?.rawValue)
            let message = message.rawValue
            guard let emoji else {
                let task = CancelReactionTask(chat: chat, post: post, message: message)
                return try core.queue(task, tx)
            }
            let task = ReactTask(chat: chat, post: post, message: message, emoji: emoji)
            return try core.queue(task, tx)
        }
    }

    /// Notifies the other members that the user is typing. Has no effect unless this client is
    /// online.
    public func typing(in chat: ChatID) {
        driver.perform { core in
            core.run { tx in
                guard core.isLive else { return }
                let place = try tx.place(of: chat)
                core.call(MsgTypingRequest(chatID: place.chat, postID: place.post)) { _, _ in }
            }
        }
    }

    // MARK: - Chats and people

    /// Creates a group or channel whose members are this account and the given people.
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

    /// Changes a chat's title, description or pinned message; nil keeps the current value.
    @discardableResult
    public func update(
        _ chat: ChatID,
        title: String? = nil,
        about: String? = nil,
        pinned: MessageID? = nil
    ) async throws(ClientError) -> OutgoingID {
        try await want(
            UpdateChatTask(
                chat: chat.rawValue,
                title: title,
                about: about,
                pinned: pinned?.rawValue
            )
        )
    }

    /// Adds people to a group or channel.
    @discardableResult
    public func add(
        _ users: [UserID],
        to chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await want(
            UpdateMembersTask(
                chat: chat.rawValue,
                users: users.map(\.rawValue),
                isRemoval: false
            )
        )
    }

    /// Removes people from a group or channel.
    @discardableResult
    public func remove(
        _ users: [UserID],
        from chat: ChatID
    ) async throws(ClientError) -> OutgoingID {
        try await want(
            UpdateMembersTask(chat: chat.rawValue, users: users.map(\.rawValue), isRemoval: true)
        )
    }

    /// Leaves a group or channel. If the account is no longer a member, deletes the chat from this
    /// device.
    ///
    /// - Returns: nil if the chat was deleted from this device only.
    @discardableResult
    public func leave(_ chat: ChatID) async throws(ClientError) -> OutgoingID? {
        try await putAway(chat, by: LeaveChatTask(chat: chat.rawValue))
    }

    /// Hides a chat until it gets a new message. If the account is no longer a member, deletes the
    /// chat from this device.
    public func hide(_ chat: ChatID) async throws(ClientError) {
        try await putAway(chat, by: HideChatTask(chat: chat.rawValue))
    }

    @discardableResult
    private func putAway(
        _ chat: ChatID,
        by task: some ClientTask
    ) async throws(ClientError) -> OutgoingID? {
        try await wish { core, tx in
            guard try tx.isGone(chat) else { return try core.queue(task, tx) }
            try tx.removeChat(chat)
            core.forgetHistory(of: chat)
            return nil
        }
    }

    /// Mutes or unmutes a chat.
    public func mute(_ chat: ChatID, _ isMuted: Bool) async throws(ClientError) {
        try await want(ConfigureChatTask(chat: chat.rawValue, mutedUntil: isMuted ? -1 : 0))
    }

    /// Pins a chat to the top of the list, or unpins it.
    public func pin(_ chat: ChatID, _ isPinned: Bool) async throws(ClientError) {
        try await want(ConfigureChatTask(chat: chat.rawValue, favourite: isPinned ? 1 : 0))
    }

    /// A change to a contact.
    public enum ContactChange: Sendable {
        /// Adds a contact, optionally under a name that this account chooses.
        case add(firstName: String?, lastName: String?)
        case rename(firstName: String, lastName: String?)
        case remove
        case block
        case unblock
    }

    /// Adds, renames, removes, blocks or unblocks a person.
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

    /// Changes the account's own names and description; nil keeps the current value.
    public func updateProfile(
        firstName: String? = nil,
        lastName: String? = nil,
        about: String? = nil
    ) async throws(ClientError) {
        try await want(
            UpdateProfileTask(firstName: firstName, lastName: lastName, about: about)
        )
    }

    // MARK: - Queued actions

    /// Cancels a pending action, or discards a refused action.
    public func cancel(_ outgoing: OutgoingID) async throws(ClientError) {
        try await wish { core, tx in try core.cancel(outgoing, tx) }
    }

    /// Retries an action that the server refused. Does nothing if the action is already being
    /// retried or no longer exists.
    public func retry(_ outgoing: OutgoingID) async throws(ClientError) {
        try await wish { core, tx in try core.retry(outgoing, tx) }
    }

    // MARK: - Internals

    /// - Throws: `ClientError.invalid` when the text is too long for a message.
    static func requireRoom(for text: String) throws(ClientError) {
        guard fitsMessage(text) else {
            throw .invalid(reason: "a message has at most \(maxMessageUnits) characters")
        }
    }

    @discardableResult
    private func want(_ task: some ClientTask) async throws(ClientError) -> OutgoingID {
        try await wish { core, tx in try core.queue(task, tx) }
    }

    /// Runs `body` in one transaction, on the lane.
    /// - Throws: `ClientError.signedOut` when no account is signed in.
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

    /// Sends the server a request and waits for the reply. The request is not stored, and therefore
    /// fails offline.
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
    /// - Parameter draft: discarded in the same transaction, unless another draft has replaced it.
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
        let place = try tx.place(of: chat)
        return try queue(
            SendTask(
                chat: place.chat.rawValue,
                post: place.post?.rawValue,
                cid: nextClientID(),
                text: part.text,
                elements: part.spans.storedElements,
                replyTo: message?.rawValue,
                isSilent: isSilent
            ),
            tx
        )
    }

    /// Returns a new client id, unique among the messages of this installation.
    func nextClientID() -> Int64 {
        tasks.nextID(environment).rawValue
    }
}
