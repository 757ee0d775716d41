import GRDB
import TambourProtocol

/// Histories as rows.
extension StoreTransaction {
    /// Applies the effects of a history step to the rows.
    ///
    /// - Parameters:
    ///   - messages: the messages that the effects refer to, as received.
    ///   - revision: the revision at which the messages were received; for a page, the revision of
    ///     its request.
    func carryOut(
        _ effects: HistoryEffects,
        with messages: [Message],
        in chat: ChatID,
        revision: Int64,
        isPushed: Bool
    ) throws {
        let byPosition = Dictionary(
            messages.map { (Position($0.id.rawValue), $0) },
            uniquingKeysWith: { $1 }
        )
        if effects.distrustsContents {
            // Anything received from now on counts as newer than the stored content.
            try execute(
                "UPDATE message SET updateTime = 0, revision = 0 WHERE chat = ?",
                [chat.rawValue]
            )
        }
        if let cleared = effects.cleared {
            let kept = Set((effects.store + effects.refresh).map(\.rawValue))
            let held = try Int64.fetchAll(
                db.cachedStatement(
                    sql: "SELECT id FROM message WHERE chat = ? AND id BETWEEN ? AND ?"
                ),
                arguments: [chat.rawValue, cleared.lower.rawValue, cleared.upper.rawValue]
            )
            for id in held where !kept.contains(id) { try removeMessage(MessageID(id), in: chat) }
        }
        for position in effects.removed {
            try removeMessage(MessageID(position.rawValue), in: chat)
        }
        for position in effects.store {
            guard let message = byPosition[position] else { continue }
            try put(message, in: chat, revision: revision, isPushed: isPushed)
        }
        for position in effects.refresh {
            guard let message = byPosition[position] else { continue }
            guard try holds(message.id, in: chat) else { continue }
            try put(message, in: chat, revision: revision, isPushed: isPushed)
        }
        try store(effects, of: chat)
        for position in effects.store {
            guard let message = byPosition[position] else { continue }
            try forgetFormer(message, in: chat)
        }
    }

    /// Deletes the older copy of a message that arrived again under another id. This happens when
    /// the sender repeats the message to a restored server. A message inside a chunk stays, because
    /// two devices of one person may choose the same `cid`.
    private func forgetFormer(_ message: Message, in chat: ChatID) throws {
        guard let cid = message.cid else { return }
        let others = try rows(
            "SELECT id FROM message WHERE chat = ? AND cid = ? AND sender IS ? AND id <> ?",
            [chat.rawValue, cid, message.sender?.rawValue, message.id.rawValue]
        )
        guard !others.isEmpty else { return }
        let held = try history(of: chat)
        for row in others where !held.covers(Position(row[0])) {
            try removeMessage(MessageID(row[0]), in: chat)
        }
    }

    private func store(_ effects: HistoryEffects, of chat: ChatID) throws {
        for chunk in effects.chunks.removed {
            try execute(
                "DELETE FROM history_chunk WHERE chat = ? AND low = ?",
                [chat.rawValue, chunk.lower.rawValue]
            )
        }
        for chunk in effects.chunks.added {
            try execute(
                "INSERT INTO history_chunk VALUES (?, ?, ?)",
                [chat.rawValue, chunk.lower.rawValue, chunk.upper.rawValue]
            )
        }
        for tomb in effects.tombs.removed {
            try execute(
                "DELETE FROM history_tomb WHERE chat = ? AND id = ?",
                [chat.rawValue, tomb.rawValue]
            )
        }
        for tomb in effects.tombs.added {
            try execute("INSERT INTO history_tomb VALUES (?, ?)", [chat.rawValue, tomb.rawValue])
        }
        if let generation = effects.generation {
            try put(historyGeneration: generation, of: chat)
        }
        let isChanged = !effects.chunks.isEmpty || effects.cleared != nil
        if isChanged { changes.histories.insert(chat) }
    }

    func put(historyGeneration generation: Int64, of chat: ChatID) throws {
        try execute(
            "UPDATE chat SET historyGeneration = ? WHERE id = ?",
            [generation, chat.rawValue]
        )
        try execute(
            "UPDATE comment_thread SET generation = ? WHERE post = ?",
            [generation, chat.rawValue]
        )
    }

    /// Handles data loss on the server. The stored messages stay visible, but the client assumes
    /// gaps between all of these messages.
    func distrustHistories() throws {
        try execute("DELETE FROM history_chunk")
        try execute("DELETE FROM history_tomb")
        // Anything received from now on replaces the stored content, even with an older version.
        try execute("UPDATE message SET updateTime = 0, revision = 0")
        try execute("UPDATE chat SET historyGeneration = historyGeneration + 1, changesMark = 0")
        try execute("UPDATE comment_thread SET generation = generation + 1")
        changes.everything = true
    }

    // MARK: - Changes of messages

    /// Starts the cursor for changes of a chat's messages, if it has not started.
    func startChanges(of chat: ChatID, sinceMs mark: Int64) throws {
        try execute(
            "UPDATE chat SET changesMark = ?, changesWanted = 0 WHERE id = ? AND changesMark = 0",
            [mark, chat.rawValue]
        )
    }

    /// Stores the cursor for changes of a chat's messages.
    func put(_ cursor: ChangeCursor, of chat: ChatID) throws {
        try execute(
            "UPDATE chat SET changesMark = ?, changesMessage = ?, changesWanted = ? WHERE id = ?",
            [cursor.sinceMs, cursor.behind?.rawValue, cursor.behind != nil, chat.rawValue]
        )
    }

    /// Records that stored messages of a chat may have changed.
    func noteMissingChanges(of chat: ChatID) throws {
        try execute("UPDATE chat SET changesWanted = 1 WHERE id = ?", [chat.rawValue])
    }
}

extension StoreReading {
    /// The stored history of a chat.
    func history(of chat: ChatID) throws -> ChatHistory {
        let chunks = try rows("SELECT low, high FROM history_chunk WHERE chat = ?", [chat.rawValue])
            .compactMap { PositionInterval(from: Position($0[0]), through: Position($0[1])) }
        let tombs = try rows("SELECT id FROM history_tomb WHERE chat = ?", [chat.rawValue])
            .map { Position($0[0]) }
        let generation = try int(
            """
            SELECT historyGeneration FROM chat WHERE id = ?
            UNION ALL SELECT generation FROM comment_thread WHERE post = ?
            """,
            [chat.rawValue, chat.rawValue]
        )
        return ChatHistory(chunks: chunks, tombs: tombs, generation: generation ?? 0)
    }

    /// Returns the most recently active chats whose stored messages may have changed.
    func chatsMissingChanges(limit: Int) throws -> [ChatID] {
        try rows(
            """
            SELECT id FROM chat WHERE changesWanted AND changesMark > 0 AND status = 'ACTIVE'
            ORDER BY lastEventTime DESC LIMIT ?
            """,
            [limit]
        ).map { ChatID($0[0]) }
    }
}
