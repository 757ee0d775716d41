public import TambourProtocol

/// Reading the data stored on this device. These calls never wait for the network.
extension Client {
    /// Returns whether this device holds a token. False after `signOut`, and after the server has
    /// ended this device's session.
    public func isSignedIn() throws(ClientError) -> Bool {
        try store.read { try $0.isSignedIn() }
    }

    /// The server's address.
    public func server() throws(ClientError) -> ServerAddress? {
        try store.read { try $0.server() }
    }

    /// Which servers the account trusts at the stored address.
    public func trust() throws(ClientError) -> ServerTrust {
        try store.read { try $0.trust() }
    }

    /// Returns the pinned message of a chat as a quote; nil if no message is pinned.
    public func pinnedMessage(in chat: ChatID) throws(ClientError) -> HistoryRow.Quote? {
        try store.read { try Reader($0).pinnedMessage(in: chat) }
    }

    /// The phone number of the last sign-in on this device; nil after a sign-in with a token alone.
    public func phone() throws(ClientError) -> String? {
        try store.read { try $0.value(of: .phone) }
    }

    /// The chat that `keepOpenChat` stored; nil if it stored none, or if the account is no longer
    /// in the chat.
    public func openChat() throws(ClientError) -> ChatID? {
        let chat = try store.read { try $0.value(of: .openChat) as Int64? }.map { ChatID($0) }
        guard let chat, let summary = try self.chat(chat), !summary.isGone else { return nil }
        return chat
    }

    /// Stores the open chat, so that the program can open it at its next start.
    ///
    /// - Parameter chat: nil when no chat is open.
    public func keepOpenChat(_ chat: ChatID?) async throws(ClientError) {
        try await call { core throws(ClientError) in
            try core.attempt { tx in try tx.set(.openChat, chat?.rawValue) }
        }
    }

    /// The time of this device's last login, in Unix milliseconds of the server's clock; nil before
    /// the first login.
    public func lastLoginMs() throws(ClientError) -> Int64? {
        try store.read { try $0.value(of: .chatsMark) }
    }

    /// The account stored on this device, if any. It stays when the server signs the device out:
    /// the same person can sign in again and finds all data.
    public func me() throws(ClientError) -> UserID? {
        try store.read { try $0.userID() }
    }

    /// Returns the list of chats: first pinned chats, then the other chats by time, newest first.
    ///
    /// - Parameter limit: the maximum number, from the top; nil for all.
    public func chats(
        includingHidden: Bool = false,
        limit: Int? = nil
    ) throws(ClientError) -> [ChatSummary] {
        try store.read { try Reader($0).chats(includingHidden: includingHidden, limit: limit) }
    }

    /// Returns a chat of the list; nil when the list does not contain the chat.
    public func chat(_ chat: ChatID) throws(ClientError) -> ChatSummary? {
        try store.read { try Reader($0).chat(chat) }
    }

    /// The place from which a page of a history is read.
    public enum HistoryAnchor: Hashable, Sendable {
        /// The newest messages.
        case newest
        /// The messages before this message, which is not included.
        case before(MessageID)
        /// The messages after this message, which is not included.
        case after(MessageID)
        /// This message and the messages on both sides of it.
        case around(MessageID)
        /// The messages on both sides of a time, in Unix milliseconds.
        case time(Int64)
        /// The first unread message and the messages around it; the newest messages if all are
        /// read.
        case firstUnread
    }

    /// Returns a page of a chat's stored history, with gaps marked. Call `look` to fill the gaps.
    public func history(
        of chat: ChatID,
        _ anchor: HistoryAnchor = .newest,
        count: Int = 50
    ) throws(ClientError) -> HistoryPage {
        try store.read { store in
            let reader = try Reader(store)
            let anchor: Reader.Anchor =
                switch anchor {
                case .newest: .newest
                case .before(let message): .before(message)
                case .after(let message): .after(message)
                case .around(let message): .around(message)
                case .time(let time): .around(MessageID(timeMs: time, counter: 0))
                case .firstUnread:
                    try store.firstUnread(in: chat, me: reader.me).map { .around($0) } ?? .newest
                }
            return try reader.history(of: chat, anchor, count: count)
        }
    }

    /// Returns the read mark of this account in a chat, in Unix milliseconds of the server's clock;
    /// 0 if the account has read nothing there.
    public func readMark(of chat: ChatID) throws(ClientError) -> Int64 {
        try store.read { try $0.chatRow(chat)?.readMark ?? 0 }
    }

    /// Returns the contacts, sorted by name.
    public func people() throws(ClientError) -> [Person] {
        try store.read { try $0.contacts() }
    }

    /// Returns all people about whom this device has data, sorted by name: contacts, and people who
    /// are or were in a chat with this account.
    public func knownPeople() throws(ClientError) -> [Person] {
        try store.read { try $0.knownPeople() }
    }

    /// Returns a person; nil when this device stores nothing about them.
    public func person(_ user: UserID) throws(ClientError) -> Person? {
        try store.read { try $0.person(user) }
    }

    /// Returns the number of tasks that are queued or in flight.
    public func queueLength() throws(ClientError) -> Int {
        try store.read { try $0.openTaskCount() }
    }

    /// Returns whether an action is still pending.
    public func isWaiting(_ outgoing: OutgoingID) throws(ClientError) -> Bool {
        let task = try store.read { try $0.task(TaskID(outgoing.rawValue)) }
        return task.map { !$0.state.isTerminal } ?? false
    }

    /// Returns the reason why the server refused an action; nil if the action was not refused.
    public func failure(of outgoing: OutgoingID) throws(ClientError) -> String? {
        try store.read { try $0.task(TaskID(outgoing.rawValue))?.refusal }
    }

    /// A message found by a search.
    public struct Found: Hashable, Sendable {
        public let chat: ChatID
        public let chatTitle: String
        public let row: HistoryRow
    }

    /// Searches the messages stored here for words that begin with the words of `query`, newest
    /// first.
    ///
    /// - Parameter chat: nil for all chats.
    public func search(
        _ query: String,
        in chat: ChatID? = nil,
        count: Int = 50
    ) throws(ClientError) -> [Found] {
        try store.read { try Reader($0).search(query, in: chat, count: count) }
    }

    // MARK: - The screen

    /// Reports which part of a chat is on the screen. The client fetches the messages that are
    /// missing there. It also fetches the messages that the reader will reach next.
    ///
    /// - Parameters:
    ///   - position: the message at the top of the screen if the reader scrolls back, otherwise the
    ///     message at the bottom; nil at the newest end.
    ///   - visible: the messages on the screen, oldest first.
    public func look(
        at chat: ChatID,
        position: MessageID? = nil,
        isGoingBack: Bool = true,
        rowsOnScreen: Int,
        visible: [MessageID] = []
    ) {
        perform { core in
            core.run { tx in
                try core.look(
                    at: chat,
                    position: position,
                    isGoingBack: isGoingBack,
                    rowsOnScreen: min(max(rowsOnScreen, 0), Client.mostRowsOnScreen),
                    visible: visible,
                    tx
                )
            }
        }
    }

    /// The cap on `rowsOnScreen`, which limits how much the client prefetches.
    private static let mostRowsOnScreen = 10_000

    /// Reports that a chat is no longer on the screen.
    public func lookAway(from chat: ChatID) {
        perform { $0.lookAway(from: chat) }
    }

    /// Returns the number of history pages requested since the client was created.
    public func historyRequests() async -> Int {
        (try? await call { $0.histories.requests }) ?? 0
    }
}

extension Reader {
    func pinnedMessage(in chat: ChatID) throws -> HistoryRow.Quote? {
        guard let message = try store.describedChat(chat)?.pinnedMessage else { return nil }
        let title = try self.chat(chat)?.title ?? ""
        return HistoryRow.Quote(
            message: message.id,
            sender: message.sender.map(name) ?? title,
            text: message.line(name: name)
        )
    }

    func search(_ query: String, in chat: ChatID?, count: Int) throws -> [Client.Found] {
        try store.messages(matching: query, in: chat, limit: count).compactMap { chat, message in
            var overlays = try store.overlays(of: chat)
            if overlays.isDeleted(message.id) { return nil }
            let context = Context(chat, try store.chatRow(chat))
            return Client.Found(
                chat: chat,
                chatTitle: try self.chat(store.place(of: chat).chat)?.title ?? "",
                row: row(message, context, &overlays)
            )
        }
    }
}
