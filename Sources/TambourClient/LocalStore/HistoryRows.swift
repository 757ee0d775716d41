import GRDB
import TambourProtocol

/// Histories as rows.
extension StoreTransaction {
    /// The stored history of a chat.
    func history(of chat: ChatID) throws -> ChatHistory {
        try db.history(of: chat)
    }

    /// Applies the effects of a history step to the rows.
    ///
    /// - Parameters:
    ///   - messages: the messages that the effects refer to, as received.
    ///   - revision: the revision at which they were learned; for a page, at which it was
    ///     requested.
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
            let held = try row(
                "SELECT 1 FROM message WHERE chat = ? AND id = ?",
                [chat.rawValue, position.rawValue]
            )
            guard held != nil else { continue }
            try put(message, in: chat, revision: revision, isPushed: isPushed)
        }
        try store(effects, of: chat)
        for position in effects.store {
            guard let message = byPosition[position] else { continue }
            try forgetFormer(message, in: chat)
        }
    }

    /// Deletes the older copy of a message that arrived again under another id: a restored server
    /// got it again from its sender. A message inside a chunk stays, since two devices of one
    /// person may choose the same `cid`.
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
            try execute(
                "UPDATE chat SET historyGeneration = ? WHERE id = ?",
                [generation, chat.rawValue]
            )
        }
        let isChanged = !effects.chunks.isEmpty || effects.cleared != nil
        if isChanged { changes.histories.insert(chat) }
    }
}

extension Database {
    func history(of chat: ChatID) throws -> ChatHistory {
        let chunks = try Row.fetchAll(
            cachedStatement(sql: "SELECT low, high FROM history_chunk WHERE chat = ?"),
            arguments: [chat.rawValue]
        ).compactMap { PositionInterval(from: Position($0[0]), through: Position($0[1])) }
        let tombs = try Int64.fetchAll(
            cachedStatement(sql: "SELECT id FROM history_tomb WHERE chat = ?"),
            arguments: [chat.rawValue]
        )
        let generation = try Int64.fetchOne(
            cachedStatement(sql: "SELECT historyGeneration FROM chat WHERE id = ?"),
            arguments: [chat.rawValue]
        )
        return ChatHistory(
            chunks: chunks,
            tombs: tombs.map { Position($0) },
            generation: generation ?? 0
        )
    }
}
