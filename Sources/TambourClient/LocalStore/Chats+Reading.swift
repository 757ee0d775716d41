import GRDB
import TambourProtocol

/// The row of a chat, without the server's encoded description.
struct ChatRow {
    let title: String?
    /// The newest message, according to the list of chats and the pushes since.
    let newest: MessageID?
    /// The account's read mark, and the highest read mark of the other members.
    let readMark: Int64
    let othersReadMark: Int64
    let unread: Int64
    /// Whether the account is no longer in the chat.
    let isGone: Bool
    /// Whether the server's list may lack the chat: the part of the list received so far does not
    /// contain the chat, and no later push does. Also true for a group that the account is no
    /// longer in.
    let isStale: Bool
    /// The cursor up to which changes of the chat's messages are known; nil until its first message
    /// is stored.
    let changes: ChangeCursor?
    /// Whether messages may have changed after the cursor `changes`.
    let isMissingChanges: Bool
    let historyGeneration: Int64

    fileprivate init(_ row: Row) {
        title = row["title"]
        newest = (row["lastMessage"] as Int64?).map(MessageID.init)
        readMark = row["readMark"]
        othersReadMark = row["othersReadMark"]
        unread = row["unread"]
        isGone = row["status"] == ChatStatus.removed.name.description
        isStale = row["isStale"]
        let sinceMs: Int64 = row["changesMark"]
        let behind = (row["changesMessage"] as Int64?).map { Position($0) }
        changes = sinceMs > 0 ? ChangeCursor(sinceMs: sinceMs, behind: behind) : nil
        isMissingChanges = row["changesWanted"]
        historyGeneration = row["historyGeneration"]
    }
}

extension StoreReading {
    /// Returns the row of a chat; nil for a chat outside of the list.
    func chatRow(_ chat: ChatID) throws -> ChatRow? {
        try row(
            """
            SELECT title, lastMessage, readMark, othersReadMark, unread, status, isStale,
              changesMark, changesMessage, changesWanted, historyGeneration
            FROM chat WHERE id = ?
            """,
            [chat.rawValue]
        ).map { ChatRow($0) }
    }

    /// Returns the server's description of a chat; nil for a chat outside of the list.
    func describedChat(_ chat: ChatID) throws -> Chat? {
        try row("SELECT data FROM chat WHERE id = ?", [chat.rawValue])
            .flatMap { Chat(stored: $0["data"]) }
    }

    /// Returns whether a chat is in the list.
    func isListed(_ chat: ChatID) throws -> Bool {
        try exists("SELECT 1 FROM chat WHERE id = ?", [chat.rawValue])
    }

    /// Returns whether the chat is stored although the account is no longer in it.
    func isGone(_ chat: ChatID) throws -> Bool {
        try exists(
            "SELECT 1 FROM chat WHERE id = ? AND status = ?",
            [chat.rawValue, ChatStatus.removed.name.description]
        )
    }

    /// Returns the chats that no list and no push has contained since `distrustList`. Also returns
    /// the groups that the account is no longer in.
    func staleChats() throws -> [ChatID] {
        try rows("SELECT id FROM chat WHERE isStale").map { ChatID($0[0]) }
    }

    /// Returns the chats that must be requested from the server.
    func doubtfulChats() throws -> [ChatID] {
        try rows("SELECT chat FROM chat_refresh ORDER BY chat").map { ChatID($0[0]) }
    }

    func isDoubtful(_ chat: ChatID) throws -> Bool {
        try exists("SELECT 1 FROM chat_refresh WHERE chat = ?", [chat.rawValue])
    }
}
