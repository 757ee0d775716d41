package import TambourProtocol
import TambourSQL

struct ErasureStatements {
    let plan: any SQLStatement
    let setDeletion: any SQLStatement
    let setInactivity: any SQLStatement
    let due: any SQLStatement
    let begin: any SQLStatement
    let end: any SQLStatement
    let chats: any SQLStatement
    let successor: any SQLStatement
    let ownMessages: any SQLStatement
    let eraseMessages: any SQLStatement
    let reacted: any SQLStatement
    let voted: any SQLStatement
    /// What holds nothing but what concerns one user, without what a login's delta needs.
    let ofUser: [any SQLStatement]
    let forgetContacts: any SQLStatement
    let ofPhone: [any SQLStatement]
    let ofChat: [any SQLStatement]
    let deleteChat: any SQLStatement
    let eraseAccount: any SQLStatement
    let setPhone: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        plan = try sql.prepare(
            "SELECT delete_at, inactive_days, erasing FROM account_end WHERE user_id = $1"
        )
        setDeletion = try sql.prepare(
            """
            INSERT INTO account_end (user_id, delete_at) VALUES ($1, $2)
            ON CONFLICT (user_id) DO UPDATE SET delete_at = excluded.delete_at
            """
        )
        setInactivity = try sql.prepare(
            """
            INSERT INTO account_end (user_id, inactive_days) VALUES ($1, $2)
            ON CONFLICT (user_id) DO UPDATE SET inactive_days = excluded.inactive_days
            """
        )
        due = try sql.prepare(
            """
            SELECT e.user_id, e.erasing,
              CASE WHEN e.delete_at > 0 AND e.delete_at <= $1 THEN 0 ELSE 1 END
            FROM account_end e JOIN account a ON a.id = e.user_id
            WHERE e.erasing = 1 OR (e.delete_at > 0 AND e.delete_at <= $1)
              OR (e.inactive_days > 0 AND e.inactive_days * 86400000 <= $1 - a.seen
                  AND e.inactive_days * 86400000 <= $1 - a.registered)
            ORDER BY e.erasing DESC, e.user_id LIMIT 1
            """
        )
        begin = try sql.prepare(
            """
            INSERT INTO account_end (user_id, erasing) VALUES ($1, 1)
            ON CONFLICT (user_id) DO UPDATE SET delete_at = 0, inactive_days = 0, erasing = 1
            """
        )
        end = try sql.prepare("DELETE FROM account_end WHERE user_id = $1")
        chats = try sql.prepare(
            """
            SELECT chat FROM member WHERE user_id = $1
            UNION SELECT chat FROM former_member WHERE user_id = $1
            ORDER BY 1 LIMIT $2
            """
        )
        successor = try sql.prepare(
            """
            SELECT m.user_id FROM member m JOIN account a ON a.id = m.user_id
            WHERE m.chat = $1 AND m.user_id <> $2
            ORDER BY a.blocked, CASE WHEN m.permissions > 0 THEN 0 ELSE 1 END, m.joined, m.user_id
            LIMIT 1
            """
        )
        // What has no device is an event, and so is what made a group.
        let own = """
            chat = $1 AND sender = $2 AND status <> 2 AND device <> 0 AND (n > 1 OR chat > 0)
            """
        ownMessages = try sql.prepare("SELECT id, n FROM message WHERE \(own) ORDER BY id")
        eraseMessages = try sql.prepare(
            """
            UPDATE message
            SET status = 2, updated = $3, text = $4, elements = NULL, attaches = NULL,
                forward = NULL, reply_to = 0, reactions = NULL, poll = 0
            WHERE \(own)
            """
        )
        reacted = try sql.prepare(
            "SELECT message FROM reaction WHERE chat = $1 AND user_id = $2 ORDER BY message"
        )
        voted = try sql.prepare(
            """
            SELECT DISTINCT message FROM poll_vote WHERE chat = $1 AND user_id = $2
            ORDER BY message
            """
        )
        let tables = [
            "device", "track", "password", "message_hidden", "user_setting", "chat_setting",
            "draft", "delayed_message", "folder", "folder_order", "account_word", "login_code",
            "join_request",
        ]
        ofUser =
            try tables.map { try sql.prepare("DELETE FROM \($0) WHERE user_id = $1") }
            + [
                try sql.prepare("DELETE FROM contact WHERE owner = $1"),
                try sql.prepare("DELETE FROM report WHERE reporter = $1 OR user_id = $1"),
            ]
        // Who had added or blocked the user is told to forget that; a dialog keeps its partner.
        forgetContacts = try sql.prepare(
            """
            UPDATE contact SET added = 0, blocked = 0, first_name = NULL, last_name = NULL, ct = $2
            WHERE user_id = $1
            """
        )
        ofPhone = try ["login_code", "registration"].map {
            try sql.prepare("DELETE FROM \($0) WHERE phone = $1")
        }
        let ofMessages = [
            "message", "message_hidden", "reaction", "poll_vote", "search_part", "search_word",
            "join_request",
        ]
        ofChat = try ofMessages.map { try sql.prepare("DELETE FROM \($0) WHERE chat = $1") }
        deleteChat = try sql.prepare("DELETE FROM chat WHERE id = $1")
        eraseAccount = try sql.prepare(
            """
            UPDATE account SET phone = -id, first_name = $2, last_name = NULL, registered = 0,
              updated = $3, blocked = 2, seen = 0, description = NULL, privacy = 0,
              settings_ct = 0
            WHERE id = $1
            """
        )
        setPhone = try sql.prepare("UPDATE account SET phone = $2, updated = $3 WHERE id = $1")
    }
}

/// How an account is to end.
package struct AccountEnd: Equatable, Sendable {
    /// Unix milliseconds; 0 for never.
    package let deleteAt: Int64
    /// After how many days without a sign of life; 0 for never.
    package let inactiveDays: Int
    package let isErasing: Bool
}

extension ReadTransaction {
    package func end(of user: UserID) throws -> AccountEnd {
        let statement = store.erasure.plan
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        guard try statement.step() else {
            return AccountEnd(deleteAt: 0, inactiveDays: 0, isErasing: false)
        }
        return AccountEnd(
            deleteAt: statement.int(0),
            inactiveDays: Int(statement.int(1)),
            isErasing: statement.int(2) != 0
        )
    }

    /// An account that is being erased, or else one whose time has come by `now`.
    ///
    /// - Returns: `isInactive` when nobody asked for it but the days that have passed.
    package func accountToErase(now: Int64) throws
        -> (user: UserID, isErasing: Bool, isInactive: Bool)?
    {
        let statement = store.erasure.due
        defer { statement.reset() }
        statement.bind(1, now)
        guard try statement.step() else { return nil }
        return (UserID(statement.int(0)), statement.int(1) != 0, statement.int(2) != 0)
    }

    /// The first chats that somebody is in or was in.
    package func chatsToErase(of user: UserID, limit: Int) throws -> [ChatKey] {
        let statement = store.erasure.chats
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, Int64(limit))
        var keys: [ChatKey] = []
        while try statement.step() { keys.append(ChatKey(statement.int(0))) }
        return keys
    }
}

extension WriteTransaction {
    /// Moves an account to another phone; every dialog partner's contact changes.
    package func setPhone(_ phone: Int64, of user: UserID) throws {
        writes += 1
        let statement = store.erasure.setPhone
        statement.bind(1, user.rawValue)
        statement.bind(2, phone)
        statement.bind(3, ct)
        try statement.run()
        try touchContacts(of: user)
    }

    /// Sets when the account is erased, Unix milliseconds; 0 for never.
    package func setDeletion(at time: Int64, of user: UserID) throws {
        writes += 1
        store.erasure.setDeletion.bind(1, user.rawValue)
        store.erasure.setDeletion.bind(2, time)
        try store.erasure.setDeletion.run()
    }

    /// Sets after how many days without a sign of life the account is erased; 0 for never.
    package func setInactivity(days: Int, of user: UserID) throws {
        writes += 1
        store.erasure.setInactivity.bind(1, user.rawValue)
        store.erasure.setInactivity.bind(2, Int64(days))
        try store.erasure.setInactivity.run()
    }

    // MARK: - Erasing

    /// The first step: nobody can be this user any more, and nobody sees who it was.
    ///
    /// The row stays without its content: ids are never used again, and partners' clients learn from it
    /// that the user is gone.
    package func beginErasure(of account: Account) throws {
        writes += 1
        try flush()
        store.erasure.forgetContacts.bind(1, account.id.rawValue)
        store.erasure.forgetContacts.bind(2, ct)
        try store.erasure.forgetContacts.run()
        try closeSessions(reader.sessions(of: account.id).map(\.id), of: account.id)
        for statement in store.erasure.ofUser {
            statement.bind(1, account.id.rawValue)
            try statement.run()
        }
        for statement in store.erasure.ofPhone {
            statement.bind(1, account.phone)
            try statement.run()
        }
        let erase = store.erasure.eraseAccount
        erase.bind(1, account.id.rawValue)
        erase.bindWords(2, Text.empty)
        erase.bind(3, ct)
        try erase.run()
        listed.remove(account.id)
        store.erasure.begin.bind(1, account.id.rawValue)
        try store.erasure.begin.run()
    }

    /// A chat that is being erased from, whether its user is still in it or not.
    package func chatToErase(_ key: ChatKey) throws -> ChatState? { try chat(key) }

    /// Deletes for all what `user` wrote in a chat, member or not, events left out.
    ///
    /// - Returns: the ids, smallest first.
    package func eraseMessages(of user: UserID, in chat: ChatState) throws -> [MessageID] {
        try flush()
        let listing = store.erasure.ownMessages
        listing.bind(1, chat.key.rawValue)
        listing.bind(2, user.rawValue)
        var ids: [MessageID] = []
        var numbers: [Int64] = []
        while try listing.step() {
            ids.append(MessageID(listing.int(0)))
            numbers.append(listing.int(1))
        }
        listing.reset()
        guard !ids.isEmpty else { return [] }
        writes += 1
        let erase = store.erasure.eraseMessages
        erase.bind(1, chat.key.rawValue)
        erase.bind(2, user.rawValue)
        erase.bind(3, ct)
        erase.bindWords(4, Text.empty)
        try erase.run()
        try dropReactions(to: ids, in: chat)
        try rebuildIndex(of: chat.key, around: numbers)
        touch(chat)
        return ids
    }

    /// The messages of a chat to which `user` has reacted.
    package func messagesReactedTo(by user: UserID, in chat: ChatState) throws -> [MessageID] {
        try messages(store.erasure.reacted, of: user, in: chat)
    }

    /// The messages of a chat in whose polls `user` has voted.
    package func messagesVotedIn(by user: UserID, in chat: ChatState) throws -> [MessageID] {
        try messages(store.erasure.voted, of: user, in: chat)
    }

    private func messages(
        _ statement: any SQLStatement,
        of user: UserID,
        in chat: ChatState
    ) throws -> [MessageID] {
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, user.rawValue)
        var ids: [MessageID] = []
        while try statement.step() { ids.append(MessageID(statement.int(0))) }
        return ids
    }

    /// Who is the owner when `user` goes; nil when nobody else is there.
    package func successor(of user: UserID, in chat: ChatState) throws -> UserID? {
        try flush()
        let statement = store.erasure.successor
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, user.rawValue)
        return try statement.step() ? UserID(statement.int(0)) : nil
    }

    /// Forgets that `user` was in a chat that others still have.
    package func forget(_ user: UserID, in chat: ChatKey) throws {
        writes += 1
        store.members.revive.bind(1, user.rawValue)
        store.members.revive.bind(2, chat.rawValue)
        try store.members.revive.run()
    }

    /// Deletes the messages of a chat that nobody is in any more, and a dialog or saved messages whole.
    /// Of a group the row stays: those who have left are told by it that they did.
    package func eraseDeserted(_ chat: ChatState) throws {
        writes += 1
        try flush()
        for statement in store.erasure.ofChat {
            statement.bind(1, chat.key.rawValue)
            try statement.run()
        }
        if !chat.kind.isPair {
            try set(ChatDetails(owner: chat.owner), of: chat)
        } else {
            store.erasure.deleteChat.bind(1, chat.key.rawValue)
            try store.erasure.deleteChat.run()
        }
        try flush()
        chats[chat.key] = nil
        if let pair = chat.pair {
            pairs[Pair(low: pair.low.rawValue, high: pair.high.rawValue)] = nil
        }
    }

    /// The last step: nothing is left but the empty row of the account.
    package func endErasure(of user: UserID) throws {
        writes += 1
        store.erasure.end.bind(1, user.rawValue)
        try store.erasure.end.run()
    }
}
