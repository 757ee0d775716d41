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
    let setDue: any SQLStatement
    let setErased: any SQLStatement
    let part: any SQLStatement
    let deletePart: any SQLStatement
    let reacted: any SQLStatement
    let voted: any SQLStatement
    /// Deletes rows that concern only one user and that no login delta needs.
    let ofUser: [any SQLStatement]
    /// Deletes a part of such rows from the tables that hold many of one user.
    let partsOfUser: [any SQLStatement]
    let forgetContacts: any SQLStatement
    let ofPhone: [any SQLStatement]
    let ofChat: [any SQLStatement]
    let deleteChat: any SQLStatement
    let eraseAccount: any SQLStatement
    let setPhone: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        plan = try sql.prepare(
            """
            SELECT delete_at, inactive_days, erasing, erased_up_to FROM account_end
            WHERE user_id = $1
            """
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
            SELECT user_id FROM account_end WHERE due <= $1 ORDER BY due, user_id LIMIT 1
            """
        )
        setDue = try sql.prepare("UPDATE account_end SET due = $2 WHERE user_id = $1")
        setErased = try sql.prepare("UPDATE account_end SET erased_up_to = $2 WHERE user_id = $1")
        begin = try sql.prepare(
            """
            INSERT INTO account_end (user_id, erasing) VALUES ($1, 1)
            ON CONFLICT (user_id) DO UPDATE SET
              delete_at = 0, inactive_days = 0, erasing = 1, due = 0
            """
        )
        end = try sql.prepare("DELETE FROM account_end WHERE user_id = $1")
        chats = try sql.prepare(
            """
            SELECT chat FROM member WHERE user_id = $1
            UNION SELECT chat FROM former_member WHERE user_id = $1
            UNION SELECT chat FROM commenter WHERE user_id = $1
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
        part = try sql.prepare(
            """
            SELECT count(*), max(id), max(n) FROM
              (SELECT id, n FROM message WHERE chat = $1 AND id > $2 ORDER BY id LIMIT $3) AS part
            """
        )
        deletePart = try sql.prepare("DELETE FROM message WHERE chat = $1 AND id <= $2")
        reacted = try sql.prepare(
            """
            SELECT message FROM reaction WHERE chat = $1 AND user_id = $2
            ORDER BY message LIMIT $3
            """
        )
        voted = try sql.prepare(
            """
            SELECT DISTINCT message FROM poll_vote WHERE chat = $1 AND user_id = $2
            ORDER BY message LIMIT $3
            """
        )
        let tables = [
            "device", "track", "password", "message_hidden", "user_setting", "chat_setting",
            "draft", "delayed_message", "delayed_key", "folder", "folder_order", "account_word",
            "login_code", "join_request", "object_count", "object_purge", "email_code",
            "introduction", "comment_ban",
        ]
        ofUser =
            try tables.map { try sql.prepare("DELETE FROM \($0) WHERE user_id = $1") }
            + [try sql.prepare("DELETE FROM report WHERE reporter = $1 OR user_id = $1")]
        let large = [
            ("object", "user_id", "id"), ("object_reply", "user_id", "device, op_id"),
            ("contact", "owner", "user_id"),
        ]
        partsOfUser = try large.map { table, user, key in
            try sql.prepare(
                """
                DELETE FROM \(table) WHERE \(user) = $1 AND (\(key)) IN (
                  SELECT \(key) FROM \(table) WHERE \(user) = $1 LIMIT $2
                )
                """
            )
        }
        // Users who had added or blocked this one are told to delete the contact; a dialog keeps
        // its partner.
        forgetContacts = try sql.prepare(
            """
            UPDATE contact SET added = 0, blocked = 0, first_name = NULL, last_name = NULL, ct = $2
            WHERE user_id = $1
            """
        )
        ofPhone = try ["login_code", "registration"].map {
            try sql.prepare("DELETE FROM \($0) WHERE phone = $1")
        }
        let tablesOfChat = [
            "message_hidden", "search_part", "search_word", "search_stale", "join_request",
            "introduction", "comment_ban",
        ]
        ofChat = try tablesOfChat.map { try sql.prepare("DELETE FROM \($0) WHERE chat = $1") }
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

/// How an account ends.
package struct AccountEnd: Equatable, Sendable {
    /// When the account is erased, Unix milliseconds; 0 for never.
    package let deleteAt: Int64
    /// The days of inactivity after which the account is erased; 0 for never.
    package let inactiveDays: Int
    package let isErasing: Bool
    /// How far the first of the remaining chats is erased.
    package let erasedUpTo: MessageID
}

extension AccountEnd {
    /// The milliseconds of inactivity after which the account is erased; nil for never.
    private var inactiveMs: Int64? { inactiveDays > 0 ? Int64(inactiveDays) * 86_400_000 : nil }

    /// Whether the account has been inactive for that many days by `now`.
    package func isInactive(_ account: Account, now: Int64) -> Bool {
        inactiveMs.map { max(account.seen, account.registered) + $0 <= now } ?? false
    }

    /// Returns when the account must be checked, Unix milliseconds; the largest number for never.
    func due(for account: Account) -> Int64 {
        if isErasing { return 0 }
        let inactive = inactiveMs.map { max(account.seen, account.registered) + $0 }
        return min(deleteAt > 0 ? deleteAt : .max, inactive ?? .max)
    }
}

extension ReadTransaction {
    package func end(of user: UserID) throws -> AccountEnd {
        let statement = store.erasure.plan
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        guard try statement.step() else {
            return AccountEnd(
                deleteAt: 0,
                inactiveDays: 0,
                isErasing: false,
                erasedUpTo: MessageID(0)
            )
        }
        return AccountEnd(
            deleteAt: statement.int(0),
            inactiveDays: statement.count(1),
            isErasing: statement.int(2) != 0,
            erasedUpTo: MessageID(statement.int(3))
        )
    }

    /// Returns an account that is being erased, or else one that may be due by `now`. The caller
    /// checks again, because activity does not update the due time.
    package func accountToErase(now: Int64) throws -> UserID? {
        let statement = store.erasure.due
        defer { statement.reset() }
        statement.bind(1, now)
        return try statement.step() ? UserID(statement.int(0)) : nil
    }

    /// Returns the first chats that the user is or was a member of, or has commented in.
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
    ///
    /// Codes sent to the new phone before are void, because the phone may have belonged to somebody
    /// else. A password challenge opened by a code to the old phone is void too.
    package func setPhone(_ phone: Int64, of user: UserID) throws {
        writes += 1
        store.sessions.voidCodesOfPhone.bind(1, phone)
        try store.sessions.voidCodesOfPhone.run()
        try voidChallenges(of: user)
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
        try noteDue(of: user)
    }

    /// Sets the days of inactivity after which the account is erased; 0 for never.
    package func setInactivity(days: Int, of user: UserID) throws {
        writes += 1
        store.erasure.setInactivity.bind(1, user.rawValue)
        store.erasure.setInactivity.bind(2, Int64(days))
        try store.erasure.setInactivity.run()
        try noteDue(of: user)
    }

    /// Stores when the account must be checked, computed from its current data.
    package func noteDue(of user: UserID) throws {
        guard let account = try reader.account(user) else { return }
        try setDue(at: reader.end(of: user).due(for: account), of: user)
    }

    /// Records, about once an hour, that the server is running.
    ///
    /// - Parameters:
    ///   - outage: the gap between two calls above which it was an outage, milliseconds.
    ///   - grace: how long after an outage no account counts as inactive, milliseconds.
    /// - Returns: until when no account counts as inactive, Unix milliseconds.
    package func sparedUntil(afterOutage outage: Int64, grace: Int64) throws -> Int64 {
        let last = try store.meta.value(Self.upKey)
        if let last, ct - last > outage {
            try store.meta.set(Self.sparedKey, ct + grace)
        }
        if last.map({ ct - $0 >= 3_600_000 }) ?? true {
            writes += 1
            try store.meta.set(Self.upKey, ct)
        }
        return try store.meta.value(Self.sparedKey) ?? 0
    }

    /// Records that the account need not be checked before `time`, Unix milliseconds.
    package func setDue(at time: Int64, of user: UserID) throws {
        writes += 1
        store.erasure.setDue.bind(1, user.rawValue)
        store.erasure.setDue.bind(2, time)
        try store.erasure.setDue.run()
    }

    /// The keys in `meta` of when the server last ran, and until when no account counts as
    /// inactive.
    private static let upKey = "up"
    private static let sparedKey = "spared_until"

    // MARK: - Erasing

    /// Runs the first step: nobody can sign in as this user, and nobody sees who it was.
    ///
    /// The row stays without its content: ids are never reused, and the row tells partners' clients
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

    /// Runs a further step: removes rows that have been invisible since the first one.
    ///
    /// - Returns: the number of rows removed; `limit` when there may be more.
    package func eraseRows(of user: UserID, limit: Int) throws -> Int {
        var count = 0
        for statement in store.erasure.partsOfUser where count < limit {
            statement.bind(1, user.rawValue)
            statement.bind(2, Int64(limit - count))
            count += try statement.run()
        }
        if count > 0 { writes += 1 }
        return count
    }

    /// Returns a chat to erase from, whether the user is still in it or not.
    package func chatToErase(_ key: ChatKey) throws -> ChatState? { try chat(key) }

    /// Records how far the first of the remaining chats is erased.
    package func setErased(upTo last: MessageID, of user: UserID) throws {
        writes += 1
        store.erasure.setErased.bind(1, user.rawValue)
        store.erasure.setErased.bind(2, last.rawValue)
        try store.erasure.setErased.run()
    }

    /// Finds the end of a part of a chat.
    ///
    /// - Returns: the last of at most `limit` messages after `first`, and their count; nil when
    ///   there are none.
    package func part(
        of chat: ChatState,
        after first: MessageID,
        limit: Int
    ) throws -> (last: MessageID, number: Int64, count: Int)? {
        try flush()
        let statement = store.erasure.part
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, first.rawValue)
        statement.bind(3, Int64(limit))
        guard try statement.step(), statement.int(0) > 0 else { return nil }
        return (MessageID(statement.int(1)), statement.int(2), statement.count(0))
    }

    /// Returns the messages of a chat to which `user` has reacted.
    package func messagesReactedTo(
        by user: UserID,
        in chat: ChatState,
        limit: Int
    ) throws -> [MessageID] {
        try messages(store.erasure.reacted, of: user, in: chat, limit)
    }

    /// Returns the messages of a chat in whose polls `user` has voted.
    package func messagesVotedIn(
        by user: UserID,
        in chat: ChatState,
        limit: Int
    ) throws -> [MessageID] {
        try messages(store.erasure.voted, of: user, in: chat, limit)
    }

    private func messages(
        _ statement: any SQLStatement,
        of user: UserID,
        in chat: ChatState,
        _ limit: Int
    ) throws -> [MessageID] {
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, user.rawValue)
        statement.bind(3, Int64(limit))
        var ids: [MessageID] = []
        while try statement.step() { ids.append(MessageID(statement.int(0))) }
        return ids
    }

    /// Returns the new owner when `user` leaves; nil when nobody else is there.
    package func successor(of user: UserID, in chat: ChatState) throws -> UserID? {
        try flush()
        let statement = store.erasure.successor
        defer { statement.reset() }
        statement.bind(1, chat.key.rawValue)
        statement.bind(2, user.rawValue)
        return try statement.step() ? UserID(statement.int(0)) : nil
    }

    /// Deletes the record that `user` was in a chat that others still have.
    package func forget(_ user: UserID, in chat: ChatKey) throws {
        writes += 1
        store.members.revive.bind(1, user.rawValue)
        store.members.revive.bind(2, chat.rawValue)
        try store.members.revive.run()
        store.comments.forgetCommenter.bind(1, user.rawValue)
        store.comments.forgetCommenter.bind(2, chat.rawValue)
        try store.comments.forgetCommenter.run()
    }

    /// Deletes the messages of a chat without members; then deletes a dialog, saved messages or
    /// comments completely. The row of a group stays, because it tells former members that they
    /// have left.
    ///
    /// - Parameter limit: the maximum number of messages.
    /// - Returns: the number of deleted messages; `limit` when there may be more.
    package func eraseDeserted(_ chat: ChatState, limit: Int) throws -> Int {
        writes += 1
        let empty = ChatDetails(owner: chat.owner)
        if chat.kind.isJoined, chat.details != empty { try set(empty, of: chat) }
        var limit = limit
        let comments = chat.kind == .channel ? try eraseComments(of: chat, limit: limit) : 0
        guard comments < limit else { return comments }
        limit -= comments
        let part = try part(of: chat, after: MessageID(0), limit: limit)
        if let part {
            store.erasure.deletePart.bind(1, chat.key.rawValue)
            store.erasure.deletePart.bind(2, part.last.rawValue)
            try store.erasure.deletePart.run()
            try dropReactions(upTo: part.last, in: chat)
            try dropIndex(of: chat.key, upTo: part.number)
            if part.count == limit { return comments + limit }
        }
        for statement in store.erasure.ofChat {
            statement.bind(1, chat.key.rawValue)
            try statement.run()
        }
        if chat.kind == .comments {
            for statement in store.comments.ofThread {
                statement.bind(1, chat.key.rawValue)
                try statement.run()
            }
        }
        if !chat.kind.isJoined {
            store.erasure.deleteChat.bind(1, chat.key.rawValue)
            try store.erasure.deleteChat.run()
        }
        try flush()
        chats[chat.key] = nil
        if let pair = chat.pair {
            pairs[Pair(low: pair.low.rawValue, high: pair.high.rawValue)] = nil
        }
        return comments + (part?.count ?? 0)
    }

    /// Runs the last step: only the empty row of the account is left.
    package func endErasure(of user: UserID) throws {
        writes += 1
        store.erasure.end.bind(1, user.rawValue)
        try store.erasure.end.run()
    }
}
