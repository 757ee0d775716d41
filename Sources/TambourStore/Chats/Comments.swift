import TambourEvents
package import TambourProtocol
import TambourSQL

enum CommentThreadColumn: Int, SQLColumn {
    case chat, comments
}

enum PostColumn: Int, SQLColumn {
    case channel, post
}

/// The statements for the tables of comments. These tables contain the post of each chat of kind
/// `comments`. They also contain the users who wrote, reacted or hid something in such a chat, and
/// the users whom a channel bans from commenting.
struct CommentStatements {
    let ofPost: SQLQuery<CommentThreadColumn>
    let post: SQLQuery<PostColumn>
    let firstOfChannel: any SQLStatement
    let insert: any SQLStatement
    let addComments: any SQLStatement
    let noteCommenter: any SQLStatement
    let isCommenter: any SQLStatement
    let forgetCommenter: any SQLStatement
    let ban: any SQLStatement
    let unban: any SQLStatement
    let isBanned: any SQLStatement
    let banCount: any SQLStatement
    let unbanAll: any SQLStatement
    let bannedPage: SQLQuery<AccountColumn>
    /// Deletes the rows that belong to the comments on a post.
    let ofThread: [any SQLStatement]

    init(_ sql: any SQLConnection) throws {
        ofPost = try sql.query(
            """
            SELECT \(CommentThreadColumn.list) FROM comment_thread
            WHERE channel = $1 AND post = $2
            """
        )
        post = try sql.query("SELECT \(PostColumn.list) FROM comment_thread WHERE chat = $1")
        firstOfChannel = try sql.prepare(
            "SELECT chat FROM comment_thread WHERE channel = $1 ORDER BY post LIMIT 1"
        )
        insert = try sql.prepare(
            "INSERT INTO comment_thread (channel, post, chat, comments) VALUES ($1, $2, $3, 0)"
        )
        addComments = try sql.prepare(
            "UPDATE comment_thread SET comments = comments + $3 WHERE channel = $1 AND post = $2"
        )
        noteCommenter = try sql.prepare(
            """
            INSERT INTO commenter (user_id, chat) VALUES ($1, $2)
            ON CONFLICT (user_id, chat) DO NOTHING
            """
        )
        isCommenter = try sql.prepare("SELECT 1 FROM commenter WHERE user_id = $1 AND chat = $2")
        forgetCommenter = try sql.prepare(
            "DELETE FROM commenter WHERE user_id = $1 AND chat = $2"
        )
        ban = try sql.prepare(
            """
            INSERT INTO comment_ban (chat, user_id) VALUES ($1, $2)
            ON CONFLICT (chat, user_id) DO NOTHING
            """
        )
        unban = try sql.prepare("DELETE FROM comment_ban WHERE chat = $1 AND user_id = $2")
        isBanned = try sql.prepare("SELECT 1 FROM comment_ban WHERE chat = $1 AND user_id = $2")
        unbanAll = try sql.prepare("DELETE FROM comment_ban WHERE chat = $1")
        banCount = try sql.prepare("SELECT count(*) FROM comment_ban WHERE chat = $1")
        bannedPage = try sql.query(
            """
            SELECT \(AccountColumn.list(of: "a"))
            FROM comment_ban b JOIN account a ON a.id = b.user_id
            WHERE b.chat = $1 AND b.user_id > $2 ORDER BY b.user_id LIMIT $3
            """
        )
        ofThread = try ["comment_thread", "commenter"].map {
            try sql.prepare("DELETE FROM \($0) WHERE chat = $1")
        }
    }
}

extension ReadTransaction {
    /// Returns the key of the comments on a post and the number of comments; nil if nobody has
    /// commented yet.
    func comments(
        on post: MessageID,
        of channel: ChatKey
    ) throws -> (key: ChatKey, count: Int64)? {
        try store.comments.ofPost.one {
            $0.bind(1, channel.rawValue)
            $0.bind(2, post.rawValue)
        } read: {
            (ChatKey($0.int(.chat)), $0.int(.comments))
        }
    }

    /// Returns the comments on a post of a channel as the viewer of the channel sees them. Nil if
    /// the post does not exist or the viewer cannot see it.
    package func comments(on post: MessageID, in channel: ChatView) throws -> ChatView? {
        guard try sees(post, in: channel) else { return nil }
        // The store contains no rows with the key 0.
        let key = try comments(on: post, of: channel.key)?.key ?? ChatKey(0)
        return channel.comments(on: post, key: key)
    }

    /// Returns the number of comments on a post. Nil if the post does not exist or the viewer
    /// cannot see it.
    package func commentCount(of post: MessageID, in channel: ChatView) throws -> Int64? {
        guard try sees(post, in: channel) else { return nil }
        return try comments(on: post, of: channel.key)?.count ?? 0
    }

    /// Returns the post of a chat of kind `comments`; nil for other chats.
    package func post(of comments: ChatKey) throws -> (channel: ChatKey, id: MessageID)? {
        try store.comments.post.one {
            $0.bind(1, comments.rawValue)
        } read: {
            (ChatKey($0.int(.channel)), MessageID($0.int(.post)))
        }
    }

    private func sees(_ post: MessageID, in channel: ChatView) throws -> Bool {
        guard channel.kind == .channel else { return false }
        let (viewer, floor) = (channel.viewer, channel.floor)
        return try visibleRecord(post, in: channel.key, for: viewer, above: floor)?.isPost == true
    }

    /// Whether a channel bans `user` from commenting.
    package func isBanned(_ user: UserID, from channel: ChatKey) throws -> Bool {
        try store.comments.isBanned.hasRow {
            $0.bind(1, channel.rawValue)
            $0.bind(2, user.rawValue)
        }
    }

    /// Returns a page of the users whom a channel bans from commenting, in the order of their ids.
    ///
    /// - Parameter isWanted: returns whether an account belongs on the page.
    /// - Returns: the banned users, and the start of the next page; nil if there is no next page.
    package func banned(
        from channel: ChatKey,
        after marker: UserID,
        limit: Int,
        budget: Int? = nil,
        where isWanted: (Account) -> Bool
    ) throws -> (members: [ChatMember], next: UserID?) {
        try page(
            of: store.comments.bannedPage,
            in: channel,
            after: marker,
            limit: limit,
            budget: budget,
            account: Account.init(row:),
            where: isWanted
        ) { account, _ in
            ChatMember(contact: account.user(showingPhone: false), presence: Presence())
        }
    }
}

extension MessageRecord {
    /// Whether this message of a channel is a post, which can have comments. Events are not posts.
    /// The message that created the channel is not a post either.
    var isPost: Bool { device != .server && number > 1 }
}

extension WriteTransaction {
    /// Returns the comments on a post of a channel. Nil if the post does not exist or `user` cannot
    /// see it.
    ///
    /// Before the first comment, the store contains no rows for the returned chat. The first
    /// comment stores these rows.
    package func comments(
        on post: MessageID,
        in channel: ChatState,
        visibleTo user: UserID
    ) throws -> ChatState? {
        guard channel.kind == .channel,
            let record = try message(post, in: channel, visibleTo: user), record.isPost
        else { return nil }
        if let comments = try storedComments(on: post, of: channel) { return comments }
        return ChatState(
            key: ChatKey(0),
            kind: .comments,
            pair: nil,
            post: ChatState.Post(channel: channel, id: post),
            details: ChatDetails(owner: channel.owner),
            created: ct,
            isBig: true,
            head: ChatHead(id: post, number: 0),
            changeClock: ct,
            members: [:],
            memberIDs: []
        )
    }

    /// Returns the comments on a post without checking membership; nil if nobody has commented yet.
    package func storedComments(on post: MessageID, of channel: ChatState) throws -> ChatState? {
        guard channel.kind == .channel,
            let found = try reader.comments(on: post, of: channel.key)
        else { return nil }
        return try chat(found.key)
    }

    /// Returns the post of a chat of kind `comments`.
    ///
    /// - Throws: `ImpossibleRow` if the chat has no post.
    func post(of comments: ChatKey) throws -> ChatState.Post {
        guard let post = try reader.post(of: comments), let channel = try chat(post.channel) else {
            throw ImpossibleRow("comments: chat", comments.rawValue)
        }
        return ChatState.Post(channel: channel, id: post.id)
    }

    /// Creates the rows for the comments on a post, with a new key. Does nothing if the rows exist.
    func storeComments(_ chat: ChatState, on post: ChatState.Post) throws {
        guard chat.key.rawValue == 0 else { return }
        lastChatKey += 1
        chat.setKey(ChatKey(lastChatKey))
        chats[chat.key] = chat
        try store.chats.insert.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, chat.kind.rawValue)
            $0.bind(3, nil as Int64?)
            $0.bind(4, nil as Int64?)
            $0.bind(5, chat.owner.rawValue)
            $0.bindWords(6, nil as Text?)
            $0.bind(7, ct)
            $0.bind(8, 0)
            $0.bind(9, ct)
        }
        try store.comments.insert.run {
            $0.bind(1, post.channel.key.rawValue)
            $0.bind(2, post.id.rawValue)
            $0.bind(3, chat.key.rawValue)
        }
    }

    /// Adds `comments` to the number of comments on a post. When comments are deleted, `comments`
    /// is negative.
    func count(comments: Int, on post: ChatState.Post) throws {
        try store.comments.addComments.run {
            $0.bind(1, post.channel.key.rawValue)
            $0.bind(2, post.id.rawValue)
            $0.bind(3, comments)
        }
    }

    /// Records that a user has written, reacted to or hidden a comment on a post. The export and
    /// the erasure of the user's data depend on this record.
    package func noteCommenter(_ user: UserID, in chat: ChatState) throws {
        try store.comments.noteCommenter.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
        }
    }

    /// Whether a user has written, reacted to or hidden a comment on a post.
    package func isCommenter(_ user: UserID, in chat: ChatState) throws -> Bool {
        try store.comments.isCommenter.hasRow {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
        }
    }

    /// Schedules the comments on deleted posts for deletion in later steps.
    func purgeComments(on posts: [MessageID], of channel: ChatState) throws {
        for post in posts {
            guard let comments = try storedComments(on: post, of: channel) else { continue }
            try putPurge(of: comments, upTo: comments.head.id, sentBy: nil)
        }
    }

    /// Bans users from commenting in a channel, or lifts the ban.
    package func setBanned(_ isBanned: Bool, _ users: [UserID], from channel: ChatState) throws {
        writes += 1
        let statement = isBanned ? store.comments.ban : store.comments.unban
        for user in users {
            statement.bind(1, channel.key.rawValue)
            statement.bind(2, user.rawValue)
            try statement.run()
        }
    }

    /// Lifts all bans on commenting in a channel.
    package func unbanAll(from channel: ChatState) throws {
        writes += 1
        try store.comments.unbanAll.run { $0.bind(1, channel.key.rawValue) }
    }

    /// Returns the number of users whom a channel bans from commenting.
    package func banCount(of channel: ChatState) throws -> Int {
        try store.comments.banCount.oneCount { $0.bind(1, channel.key.rawValue) }
    }

    /// Deletes the comments of a channel that has no members.
    ///
    /// - Returns: the number of deleted messages; `limit` when there may be more.
    func eraseComments(of channel: ChatState, limit: Int) throws -> Int {
        var count = 0
        var posts = 0
        while count < limit, let key = try firstComments(of: channel),
            let comments = try chat(key)
        {
            // Each post needs many statements, even if it has few comments.
            if posts == store.limits.erasedChatsPerStep { return limit }
            count += try eraseDeserted(comments, limit: limit - count)
            posts += 1
        }
        return count
    }

    private func firstComments(of channel: ChatState) throws -> ChatKey? {
        let key = try store.comments.firstOfChannel.oneInt { $0.bind(1, channel.key.rawValue) }
        return key.map { ChatKey($0) }
    }
}
