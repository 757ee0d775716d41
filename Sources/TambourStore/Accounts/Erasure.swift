package import TambourProtocol
import TambourSQL

enum AccountEndColumn: Int, SQLColumn {
    case deleteAt, inactiveDays, erasing, erasedUpTo
}

/// The number of messages in a part of a chat, and the last message of the part.
enum MessagePartColumn: Int, SQLColumn {
    case count, last, lastNumber

    var sql: String {
        switch self {
        case .count: "count(*)"
        case .last: "max(id)"
        case .lastNumber: "max(n)"
        }
    }
}

struct ErasureStatements {
    let plan: SQLQuery<AccountEndColumn>
    let setDeletion: any SQLStatement
    let setInactivity: any SQLStatement
    let due: any SQLStatement
    let begin: any SQLStatement
    let end: any SQLStatement
    let chats: SQLQuery<ChatKeyColumn>
    let successor: any SQLStatement
    let setDue: any SQLStatement
    let setErased: any SQLStatement
    let part: SQLQuery<MessagePartColumn>
    let deletePart: any SQLStatement
    let reacted: SQLQuery<MessageIDColumn>
    let voted: SQLQuery<MessageIDColumn>
    /// Deletes the rows of one user that no other user and no login delta needs.
    let ofUser: [any SQLStatement]
    /// Each statement deletes a limited number of rows. These statements are for tables that may
    /// contain many rows of one user.
    let partsOfUser: [any SQLStatement]
    let forgetContacts: any SQLStatement
    let ofPhone: [any SQLStatement]
    let ofChat: [any SQLStatement]
    let deleteChat: any SQLStatement
    let eraseAccount: any SQLStatement
    let setPhone: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        plan = try sql.query(
            "SELECT \(AccountEndColumn.list) FROM account_end WHERE user_id = $1"
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
        chats = try sql.query(
            """
            SELECT \(ChatKeyColumn.list) FROM member WHERE user_id = $1
            UNION SELECT \(ChatKeyColumn.list) FROM former_member WHERE user_id = $1
            UNION SELECT \(ChatKeyColumn.list) FROM commenter WHERE user_id = $1
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
        part = try sql.query(
            """
            SELECT \(MessagePartColumn.list) FROM (
              SELECT id, n FROM message WHERE chat = $1 AND id > $2 ORDER BY id LIMIT $3
            ) AS part
            """
        )
        deletePart = try sql.prepare("DELETE FROM message WHERE chat = $1 AND id <= $2")
        reacted = try sql.query(
            """
            SELECT \(MessageIDColumn.list) FROM reaction WHERE chat = $1 AND user_id = $2
            ORDER BY message LIMIT $3
            """
        )
        voted = try sql.query(
            """
            SELECT DISTINCT \(MessageIDColumn.list) FROM poll_vote
            WHERE chat = $1 AND user_id = $2
            ORDER BY message LIMIT $3
            """
        )
        let tables = [
            "device", "track", "password", "message_hidden", "user_setting", "chat_setting",
            "draft", "delayed_message", "delayed_key", "folder", "folder_order", "account_word",
            "login_code", "join_request", "object_count", "object_purge", "email_code",
            "introduction", "comment_ban", "invitation", "invitation_use",
        ]
        ofUser =
            try tables.map { try sql.prepare("DELETE FROM \($0) WHERE user_id = $1") }
            + [try sql.prepare("DELETE FROM report WHERE reporter = $1 OR user_id = $1")]
        let large = [
            ("object", "user_id", "id"), ("object_reply", "user_id", "device, op_id"),
            ("contact", "owner", "user_id"), ("audit", "user_id", "id"),
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
        // Users who added or blocked this user learn that the contact is removed. For a dialog
        // partner, the contact stays.
        forgetContacts = try sql.prepare(
            """
            UPDATE contact SET added = 0, blocked = 0, first_name = NULL, last_name = NULL, ct = $2
            WHERE user_id = $1
            """
        )
        ofPhone = try ["login_code", "registration", "invitation"].map {
            try sql.prepare("DELETE FROM \($0) WHERE phone = $1")
        }
        let tablesOfChat = [
            "message_hidden", "search_part", "search_word", "search_stale", "join_request",
            "introduction", "comment_ban", "default_chat",
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

/// The conditions and the progress of an account's erasure.
package struct AccountEnd: Equatable, Sendable {
    /// The time at which the account is erased, Unix milliseconds; 0 for never.
    package let deleteAt: Int64
    /// The days of inactivity after which the account is erased; 0 for never.
    package let inactiveDays: Int
    package let isErasing: Bool
    /// The last message that earlier steps have handled in the first chat that is not finished.
    package let erasedUpTo: MessageID
}

extension AccountEnd {
    fileprivate static let unplanned = AccountEnd(
        deleteAt: 0,
        inactiveDays: 0,
        isErasing: false,
        erasedUpTo: MessageID(0)
    )

    /// The milliseconds of inactivity after which the account is erased; nil for never.
    private var inactiveMs: Int64? { inactiveDays > 0 ? Int64(inactiveDays) * 86_400_000 : nil }

    /// Whether, at `now`, the account has been inactive for at least `inactiveDays`; false if that
    /// is 0.
    package func isInactive(_ account: Account, now: Int64) -> Bool {
        inactiveMs.map { max(account.seen, account.registered) + $0 <= now } ?? false
    }

    /// Returns the time of the next check of the account, Unix milliseconds; `.max` for never.
    func due(for account: Account) -> Int64 {
        if isErasing { return 0 }
        let inactive = inactiveMs.map { max(account.seen, account.registered) + $0 }
        return min(deleteAt > 0 ? deleteAt : .max, inactive ?? .max)
    }
}

extension ReadTransaction {
    package func end(of user: UserID) throws -> AccountEnd {
        let end = try store.erasure.plan.one {
            $0.bind(1, user.rawValue)
        } read: {
            AccountEnd(
                deleteAt: $0.int(.deleteAt),
                inactiveDays: $0.count(.inactiveDays),
                isErasing: $0.bool(.erasing),
                erasedUpTo: MessageID($0.int(.erasedUpTo))
            )
        }
        return end ?? .unplanned
    }

    /// Returns an account that is being erased, or else an account whose stored due time is at or
    /// before `now`, or nil. The caller must compute the due time again, because the user's
    /// activity does not update the stored time.
    package func accountToErase(now: Int64) throws -> UserID? {
        try store.erasure.due.oneInt { $0.bind(1, now) }.map { UserID($0) }
    }

    /// Returns the first chats of which the user is or was a member, or in which the user has
    /// commented. The chats are in the order of their keys, at most `limit` of them.
    package func chatsToErase(of user: UserID, limit: Int) throws -> [ChatKey] {
        try store.erasure.chats.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, Int64(limit))
        } read: {
            ChatKey($0.int(.chat))
        }
    }
}

extension WriteTransaction {
    /// Moves an account to another phone. Everyone who has the user as a contact receives the
    /// change at the next login.
    ///
    /// Voids the codes that were sent to the new phone earlier, because this phone may have
    /// belonged to somebody else. Also voids the password challenges and login tokens that were
    /// opened by a code to the old phone.
    package func setPhone(_ phone: Int64, of user: UserID) throws {
        writes += 1
        try store.sessions.voidCodesOfPhone.run { $0.bind(1, phone) }
        try voidChallenges(of: user)
        try store.erasure.setPhone.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, phone)
            $0.bind(3, ct)
        }
        try touchContacts(of: user)
    }

    /// Sets the time at which the account is erased, Unix milliseconds; 0 for never.
    package func setDeletion(at time: Int64, of user: UserID) throws {
        writes += 1
        try store.erasure.setDeletion.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
        }
        try noteDue(of: user)
    }

    /// Sets the days of inactivity after which the account is erased; 0 for never.
    package func setInactivity(days: Int, of user: UserID) throws {
        writes += 1
        try store.erasure.setInactivity.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, Int64(days))
        }
        try noteDue(of: user)
    }

    /// Stores the time of the next check, computed from the account's current data.
    package func noteDue(of user: UserID) throws {
        guard let account = try reader.account(user) else { return }
        try setDue(at: reader.end(of: user).due(for: account), of: user)
    }

    /// Records, at most once an hour, that the server is running.
    ///
    /// - Parameters:
    ///   - outage: the maximum time between two records, milliseconds. A longer gap counts as an
    ///     outage.
    ///   - grace: the time after an outage during which no account counts as inactive,
    ///     milliseconds.
    /// - Returns: the time until which no account counts as inactive, Unix milliseconds.
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

    /// Records that no check of the account is necessary before `time`, Unix milliseconds.
    package func setDue(at time: Int64, of user: UserID) throws {
        writes += 1
        try store.erasure.setDue.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
        }
    }

    /// The keys in `meta` for two times. The first is the last time at which the server ran. The
    /// second is the time until which no account counts as inactive.
    private static let upKey = "up"
    private static let sparedKey = "spared_until"

    // MARK: - Erasing

    /// Runs the first step. After it, nobody can sign in as this user, and nobody can see the
    /// user's identity.
    ///
    /// The account's row stays without its content. The row prevents the id from being reused.
    /// Partners' clients learn from it that the user is erased.
    package func beginErasure(of account: Account) throws {
        writes += 1
        try flush()
        try store.erasure.forgetContacts.run {
            $0.bind(1, account.id.rawValue)
            $0.bind(2, ct)
        }
        try closeSessions(reader.sessions(of: account.id).map(\.id), of: account.id)
        for statement in store.erasure.ofUser {
            statement.bind(1, account.id.rawValue)
            try statement.run()
        }
        for statement in store.erasure.ofPhone {
            statement.bind(1, account.phone)
            try statement.run()
        }
        try store.erasure.eraseAccount.run {
            $0.bind(1, account.id.rawValue)
            $0.bindWords(2, Text.empty)
            $0.bind(3, ct)
        }
        listed.remove(account.id)
        try store.erasure.begin.run { $0.bind(1, account.id.rawValue) }
    }

    /// Runs one more step, which removes rows. Since the first step, nobody can see these rows.
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

    /// Returns a chat from which the user's data must be erased, even if the user has left the
    /// chat.
    package func chatToErase(_ key: ChatKey) throws -> ChatState? { try chat(key) }

    /// Records the last message that the erasure has handled in the first chat that is not
    /// finished.
    package func setErased(upTo last: MessageID, of user: UserID) throws {
        writes += 1
        try store.erasure.setErased.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, last.rawValue)
        }
    }

    /// Finds the end of the next part of a chat.
    ///
    /// - Returns: the last message of the part, and the part's number of messages. The part begins
    ///   after `first` and has at most `limit` messages. Nil if no message follows `first`.
    package func part(
        of chat: ChatState,
        after first: MessageID,
        limit: Int
    ) throws -> (last: MessageID, number: Int64, count: Int)? {
        try flush()
        let part = try store.erasure.part.one {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, first.rawValue)
            $0.bind(3, Int64(limit))
        } read: {
            (last: MessageID($0.int(.last)), number: $0.int(.lastNumber), count: $0.count(.count))
        }
        guard let part, part.count > 0 else { return nil }
        return part
    }

    /// Returns the first messages of a chat to which `user` has reacted.
    package func messagesReactedTo(
        by user: UserID,
        in chat: ChatState,
        limit: Int
    ) throws -> [MessageID] {
        try messages(store.erasure.reacted, of: user, in: chat, limit)
    }

    /// Returns the first messages of a chat that contain a poll in which `user` has voted.
    package func messagesVotedIn(
        by user: UserID,
        in chat: ChatState,
        limit: Int
    ) throws -> [MessageID] {
        try messages(store.erasure.voted, of: user, in: chat, limit)
    }

    private func messages(
        _ query: SQLQuery<MessageIDColumn>,
        of user: UserID,
        in chat: ChatState,
        _ limit: Int
    ) throws -> [MessageID] {
        try query.all {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, user.rawValue)
            $0.bind(3, Int64(limit))
        } read: {
            MessageID($0.int(.message))
        }
    }

    /// Returns the member who becomes the owner when `user` leaves; nil if no other member remains.
    package func successor(of user: UserID, in chat: ChatState) throws -> UserID? {
        try flush()
        let successor = try store.erasure.successor.oneInt {
            $0.bind(1, chat.key.rawValue)
            $0.bind(2, user.rawValue)
        }
        return successor.map { UserID($0) }
    }

    /// Deletes the rows that record `user` as a former member of a chat or as a commenter. The chat
    /// itself stays, because other users may still have it.
    package func forget(_ user: UserID, in chat: ChatKey) throws {
        writes += 1
        try store.members.revive.statement.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.rawValue)
        }
        try store.comments.forgetCommenter.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.rawValue)
        }
    }

    /// Deletes messages of a chat without members.
    ///
    /// After the last message, also deletes the chat itself if it is a dialog, a chat of saved
    /// messages, or a chat of comments. The row of a group or channel stays, because former members
    /// learn from it that they have left.
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
            try store.erasure.deletePart.run {
                $0.bind(1, chat.key.rawValue)
                $0.bind(2, part.last.rawValue)
            }
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
            try store.erasure.deleteChat.run { $0.bind(1, chat.key.rawValue) }
        }
        try flush()
        chats[chat.key] = nil
        if let pair = chat.pair {
            pairs[Pair(low: pair.low.rawValue, high: pair.high.rawValue)] = nil
        }
        return comments + (part?.count ?? 0)
    }

    /// Runs the last step. After it, only the empty row of the account remains.
    package func endErasure(of user: UserID) throws {
        writes += 1
        try store.erasure.end.run { $0.bind(1, user.rawValue) }
    }
}
