import GRDB
import TambourProtocol

/// The comments on a post of a channel: messages of a chat that exists on this device only.
///
/// The id of this chat is the id of the post. Message ids are far above the ids of dialogs, and the
/// ids of groups are negative, so no other chat has this id.
struct CommentThread {
    let post: MessageID
    let channel: ChatID
    /// The number of comments according to the server; nil until it was requested.
    let count: Int64?
    /// The newest comment known from the newest page, from later pushes, and from replies to own
    /// comments.
    let newest: MessageID?
    /// Whether the server pushes new comments. In that case no comment is newer than `newest`.
    let isOpen: Bool

    var id: ChatID { .comments(on: post) }

    fileprivate init(_ row: Row) {
        post = MessageID(row["post"])
        channel = ChatID(row["chat"])
        count = row["count"]
        newest = (row["newest"] as Int64?).map(MessageID.init)
        isOpen = row["opened"] != 0
    }
}

extension ChatID {
    /// The chat of the comments on a post.
    static func comments(on post: MessageID) -> ChatID { ChatID(post.rawValue) }
}

/// The chat and the post that a request names for a message.
struct MessagePlace {
    let chat: ChatID
    /// Nil for a message that is not a comment.
    let post: MessageID?

    /// - Parameter thread: the comment thread whose id is `chat`; nil if `chat` is not a comment
    ///   thread.
    init(_ chat: ChatID, _ thread: CommentThread?) {
        self.chat = thread?.channel ?? chat
        post = thread?.post
    }
}

extension StoreReading {
    /// Returns the comment thread with this id; nil for a chat that is not a comment thread.
    func commentThread(_ chat: ChatID) throws -> CommentThread? {
        guard !chat.isGroup else { return nil }
        return try row("SELECT * FROM comment_thread WHERE post = ?", [chat.rawValue])
            .map { CommentThread($0) }
    }

    func commentThreads(of channel: ChatID) throws -> [CommentThread] {
        guard channel.isGroup else { return [] }
        return try rows("SELECT * FROM comment_thread WHERE chat = ?", [channel.rawValue])
            .map { CommentThread($0) }
    }

    /// Returns the threads whose comments the server pushes, in the order in which they were
    /// opened.
    func openCommentThreads() throws -> [CommentThread] {
        try rows("SELECT * FROM comment_thread WHERE opened <> 0 ORDER BY opened")
            .map { CommentThread($0) }
    }

    /// Returns the number of comments on each post of a channel from `first` through `last`. Omits
    /// posts whose number is unknown.
    func commentCounts(
        in channel: ChatID,
        from first: MessageID,
        through last: MessageID
    ) throws -> [MessageID: Int] {
        guard channel.isGroup else { return [:] }
        let rows = try rows(
            """
            SELECT post, count FROM comment_thread
            WHERE chat = ? AND post BETWEEN ? AND ? AND count IS NOT NULL
            """,
            [channel.rawValue, first.rawValue, last.rawValue]
        )
        return Dictionary(
            uniqueKeysWithValues: rows.map { (MessageID($0[0]), Int(count: $0[1])) }
        )
    }

    /// Returns what requests must name for a chat of this device: the chat or, for comments, the
    /// channel and the post.
    func place(of chat: ChatID) throws -> MessagePlace {
        MessagePlace(chat, try commentThread(chat))
    }

    /// - Throws: `ClientError.invalid` with this reason, if the chat is a comment thread.
    func requireNoComments(_ chat: ChatID, _ reason: String) throws {
        if try commentThread(chat) != nil { throw ClientError.invalid(reason: reason) }
    }

    /// Whether a chat is a channel whose administrators allow comments.
    func allowsComments(_ chat: ChatID) throws -> Bool {
        // Check the type first, to avoid decoding the descriptions of other chats.
        let isChannel = try exists(
            "SELECT 1 FROM chat WHERE id = ? AND type = ?",
            [chat.rawValue, ChatType.channel.name.description]
        )
        return try isChannel && describedChat(chat)?.options?["COMMENTS"] == true
    }
}

extension StoreTransaction {
    /// Adds the comments on a post as a chat of this device.
    func addCommentThread(on post: MessageID, of channel: ChatID) throws {
        try execute(
            "INSERT OR IGNORE INTO comment_thread (post, chat) VALUES (?, ?)",
            [post.rawValue, channel.rawValue]
        )
    }

    /// Stores the number of comments on a post.
    func put(commentCount count: Int64, on post: MessageID, of channel: ChatID) throws {
        try addCommentThread(on: post, of: channel)
        try execute(
            "UPDATE comment_thread SET count = ? WHERE post = ? AND count IS NOT ?",
            [count, post.rawValue, count]
        )
        if db.changesCount > 0 { changes.histories.insert(channel) }
    }

    /// Adds a difference to the number of comments, if the number is known.
    func change(commentCountBy difference: Int, of thread: CommentThread) throws {
        guard difference != 0 else { return }
        try execute(
            "UPDATE comment_thread SET count = max(0, count + ?) WHERE post = ?",
            [difference, thread.post.rawValue]
        )
        changes.histories.insert(thread.channel)
    }

    /// Records a comment that may be the newest.
    func note(newestComment comment: MessageID, of thread: CommentThread) throws {
        try execute(
            "UPDATE comment_thread SET newest = max(coalesce(newest, 0), ?) WHERE post = ?",
            [comment.rawValue, thread.post.rawValue]
        )
    }

    /// Forgets which comment is the newest, before the newest page is requested.
    func forgetNewestComment(of thread: CommentThread) throws {
        try execute(
            "UPDATE comment_thread SET newest = NULL WHERE post = ?",
            [thread.post.rawValue]
        )
    }

    /// Records that the server pushes these comments from now on.
    func open(_ thread: CommentThread) throws {
        try execute(
            "UPDATE comment_thread SET opened = ? WHERE post = ?",
            [nextRevision(), thread.post.rawValue]
        )
        changes.histories.insert(thread.id)
    }

    /// Records that the server does not push these comments.
    func close(_ thread: CommentThread) throws {
        try execute(
            "UPDATE comment_thread SET opened = 0 WHERE post = ?",
            [thread.post.rawValue]
        )
        changes.histories.insert(thread.id)
    }

    /// Records that the server pushes no comments, because there is no connection.
    func closeCommentThreads() throws {
        for thread in try openCommentThreads() { try close(thread) }
    }

    /// Deletes the comments on a post.
    func removeComments(on post: MessageID) throws {
        guard let thread = try commentThread(.comments(on: post)) else { return }
        for table in ["message", "history_chunk", "history_tomb", "draft"] {
            try execute("DELETE FROM \(table) WHERE chat = ?", [thread.id.rawValue])
        }
        try execute("DELETE FROM comment_thread WHERE post = ?", [post.rawValue])
        changes.comments.insert(thread.id)
    }

    /// Reports a change of a comment thread in `changes.comments`, not as a change of a chat.
    func separateComments() throws {
        for chat in changes.histories.union(changes.chats) where chat.rawValue > 0 {
            guard try commentThread(chat) != nil else { continue }
            if changes.histories.remove(chat) != nil { changes.comments.insert(chat) }
            changes.chats.remove(chat)
        }
    }
}
