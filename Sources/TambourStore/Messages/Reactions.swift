package import TambourProtocol
import TambourSQL

enum ReactionColumn: Int, SQLColumn {
    case reaction
}

enum UserReactionColumn: Int, SQLColumn {
    case userID, reaction
}

/// The statements for reactions. The counters, which all members see, are stored in a column of
/// `message`. A history page without reactions therefore needs no additional query.
struct ReactionStatements {
    let own: SQLQuery<ReactionColumn>
    let page: SQLQuery<UserReactionColumn>
    let put: any SQLStatement
    let drop: any SQLStatement
    let dropAll: any SQLStatement
    let dropUpTo: any SQLStatement
    let setCounters: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let key = "chat = $1 AND message = $2 AND user_id = $3"
        own = try sql.query("SELECT \(ReactionColumn.list) FROM reaction WHERE \(key)")
        page = try sql.query(
            """
            SELECT \(UserReactionColumn.list) FROM reaction
            WHERE chat = $1 AND message = $2 AND user_id > $3 ORDER BY user_id LIMIT $4
            """
        )
        put = try sql.prepare(
            """
            INSERT INTO reaction (chat, message, user_id, reaction) VALUES ($1, $2, $3, $4)
            ON CONFLICT (chat, message, user_id) DO UPDATE SET reaction = excluded.reaction
            """
        )
        drop = try sql.prepare("DELETE FROM reaction WHERE \(key)")
        dropUpTo = try sql.prepare("DELETE FROM reaction WHERE chat = $1 AND message <= $2")
        dropAll = try sql.prepare("DELETE FROM reaction WHERE chat = $1 AND message = $2")
        setCounters = try sql.prepare(
            "UPDATE message SET reactions = $3, changed = $4 WHERE chat = $1 AND id = $2"
        )
    }
}

extension ReadTransaction {
    /// Returns the emoji with which `user` reacted to the message; nil if the user did not react.
    package func reaction(of user: UserID, to record: MessageRecord) throws -> Text? {
        guard record.reactions != nil else { return nil }
        return try store.reactions.own.one {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bind(3, user.rawValue)
        } read: {
            $0.text(.reaction)
        }
    }

    /// Returns the reactions to a message as `viewer` sees them; empty if nobody has reacted.
    package func reactionInfo(of record: MessageRecord, for viewer: UserID) throws -> ReactionInfo {
        var info = try record.counters(limits: limits)
        info.yourReaction = try reaction(of: viewer, to: record)
        return info
    }

    /// Returns the reactions to a message, including the viewer's own reaction. If the viewer has
    /// not reacted, returns the stored bytes unchanged.
    func reactions(
        to record: MessageRecord,
        for viewer: UserID?
    ) throws -> Packed<ReactionInfo>? {
        guard let counters = record.reactions, let viewer,
            let own = try reaction(of: viewer, to: record)
        else { return record.reactions }
        var info = try counters.value(limits: limits)
        info.yourReaction = own
        return Packed(info)
    }

    /// Returns a page of the users who reacted, in the order of their ids.
    ///
    /// - Returns: the reactions, and the start of the next page; nil if there is no next page.
    package func reactions(
        to record: MessageRecord,
        after marker: UserID,
        limit: Int
    ) throws -> (reactions: [UserReaction], next: UserID?) {
        var reactions: [UserReaction] = []
        var next: UserID?
        try store.reactions.page.each {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bind(3, marker.rawValue)
            $0.bind(4, Int64(limit) + 1)
        } while: { row in
            if reactions.count == limit {
                next = reactions.last?.userID
                return false
            }
            let user = UserID(row.int(.userID))
            reactions.append(UserReaction(userID: user, reaction: row.text(.reaction)))
            return true
        }
        return (reactions, next)
    }
}

extension MessageRecord {
    /// Returns the stored counters. They are the same for all viewers: the field `yourReaction` is
    /// not set.
    package func counters(limits: Limits) throws -> ReactionInfo {
        try reactions?.value(limits: limits) ?? ReactionInfo()
    }
}

extension WriteTransaction {
    /// Sets the emoji with which `user` reacts to a message. Nil withdraws the reaction.
    ///
    /// - Parameter counters: all counters of the message after the change. Their field
    ///   `yourReaction` must not be set.
    package func setReaction(
        _ reaction: Text?,
        of user: UserID,
        to record: MessageRecord,
        in chat: ChatState,
        leaving counters: ReactionInfo
    ) throws {
        writes += 1
        if chat.post != nil { try noteCommenter(user, in: chat) }
        let statement = reaction == nil ? store.reactions.drop : store.reactions.put
        statement.bind(1, record.chat.rawValue)
        statement.bind(2, record.id.rawValue)
        statement.bind(3, user.rawValue)
        if let reaction { statement.bindWords(4, reaction) }
        try statement.run()
        try store.reactions.setCounters.run {
            $0.bind(1, record.chat.rawValue)
            $0.bind(2, record.id.rawValue)
            $0.bindBlob(3, counters.totalCount == 0 ? nil : Packed(counters).bytes)
            $0.bind(4, ct)
        }
        touch(chat)
    }

    /// Deletes the reactions to and the votes in all messages up to `last`. The caller has already
    /// deleted these messages.
    func dropReactions(upTo last: MessageID, in chat: ChatState) throws {
        for statement in [store.reactions.dropUpTo, store.polls.dropUpTo] {
            statement.bind(1, chat.key.rawValue)
            statement.bind(2, last.rawValue)
            try statement.run()
        }
    }

    /// Deletes the reactions to and the votes in deleted messages.
    package func dropReactions(to ids: [MessageID], in chat: ChatState) throws {
        for id in ids {
            try store.reactions.dropAll.run {
                $0.bind(1, chat.key.rawValue)
                $0.bind(2, id.rawValue)
            }
            try dropVotes(in: id, of: chat.key)
        }
    }
}
