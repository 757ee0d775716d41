package import TambourProtocol
import TambourSQL

/// The statements for the table `join_request`. It contains the pending requests to join a chat
/// whose link requires approval.
struct JoinRequestStatements {
    let add: any SQLStatement
    let remove: any SQLStatement
    let removeAll: any SQLStatement
    let has: any SQLStatement
    let count: any SQLStatement
    let page: SQLQuery<AccountColumn>

    init(_ sql: any SQLConnection) throws {
        add = try sql.prepare(
            """
            INSERT INTO join_request (chat, user_id, asked) VALUES ($1, $2, $3)
            ON CONFLICT (chat, user_id) DO NOTHING
            """
        )
        remove = try sql.prepare("DELETE FROM join_request WHERE chat = $1 AND user_id = $2")
        removeAll = try sql.prepare("DELETE FROM join_request WHERE chat = $1")
        has = try sql.prepare("SELECT 1 FROM join_request WHERE chat = $1 AND user_id = $2")
        count = try sql.prepare("SELECT count(*) FROM join_request WHERE user_id = $1")
        page = try sql.query(
            """
            SELECT \(AccountColumn.list(of: "a"))
            FROM join_request r JOIN account a ON a.id = r.user_id
            WHERE r.chat = $1 AND r.user_id > $2
            ORDER BY r.user_id LIMIT $3
            """
        )
    }
}

extension WriteTransaction {
    /// Stores the request of `user` to join a chat. A repeated request changes nothing.
    package func addRequest(of user: UserID, in chat: ChatState) throws {
        guard try !reader.hasRequest(of: user, in: chat.key) else { return }
        writes += 1
        try store.joinRequests.add.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, user.rawValue)
            $0.bind(3, ct)
        }
    }

    /// Deletes all requests to join a chat.
    package func discardRequests(in chat: ChatState) throws {
        writes += 1
        try store.joinRequests.removeAll.run { $0.bind(1, chat.key.rawValue) }
    }

    package func hasRequest(of user: UserID, in chat: ChatState) throws -> Bool {
        try reader.hasRequest(of: user, in: chat.key)
    }

    /// Returns the number of chats to which `user` has a pending join request.
    package func requestCount(of user: UserID) throws -> Int {
        try store.joinRequests.count.oneCount { $0.bind(1, user.rawValue) }
    }

    /// Withdraws the request of `user`.
    ///
    /// - Returns: false if `user` has no request in this chat.
    package func takeBackRequest(of user: UserID, in chat: ChatID) throws -> Bool {
        let removed = try store.joinRequests.remove.run {
            $0.bind(1, chat.rawValue)
            $0.bind(2, user.rawValue)
        }
        guard removed > 0 else { return false }
        writes += 1
        return true
    }

    package func discardRequest(of user: UserID, in chat: ChatState) throws {
        writes += 1
        try store.joinRequests.remove.run {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, user.rawValue)
        }
    }
}

extension ReadTransaction {
    func hasRequest(of user: UserID, in chat: ChatKey) throws -> Bool {
        try store.joinRequests.has.hasRow {
            $0.bind(1, chat.rawValue)
            $0.bind(2, user.rawValue)
        }
    }

    /// Returns a page of the users who have requested to join a chat, in the order of their ids.
    /// Reads until the page is full or the request has read its limit of rows.
    ///
    /// - Parameter isWanted: returns whether an account belongs on the page.
    /// - Returns: the users, and the start of the next page; nil if there is no next page.
    package func joinRequests(
        of chat: ChatKey,
        after marker: UserID,
        limit: Int,
        budget: Int? = nil,
        where isWanted: (Account) -> Bool
    ) throws -> (members: [ChatMember], next: UserID?) {
        try page(
            of: store.joinRequests.page,
            in: chat,
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
