package import TambourProtocol
import TambourSQL

struct ChatPurgeStatements {
    let put: any SQLStatement
    let next: any SQLStatement
    let move: any SQLStatement
    let drop: any SQLStatement
    let dropWords: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        put = try sql.prepare(
            """
            INSERT INTO chat_purge (chat, up_to, place) VALUES ($1, $2, 0)
            ON CONFLICT (chat) DO NOTHING
            """
        )
        next = try sql.prepare("SELECT chat, up_to, place FROM chat_purge LIMIT 1")
        move = try sql.prepare("UPDATE chat_purge SET place = $2 WHERE chat = $1")
        drop = try sql.prepare("DELETE FROM chat_purge WHERE chat = $1")
        dropWords = try sql.prepare(
            """
            DELETE FROM search_word WHERE chat = $1 AND (scale, part, word) IN (
              SELECT scale, part, word FROM search_word WHERE chat = $1 LIMIT $2
            )
            """
        )
    }
}

extension WriteTransaction {
    /// Notes that the messages of a chat that nobody is in any more are to be removed; later steps do it,
    /// also after a restart.
    package func putPurge(of chat: ChatState) throws {
        writes += 1
        mayHavePurges = true
        store.chatPurges.put.bind(1, chat.key.rawValue)
        store.chatPurges.put.bind(2, chat.head.id.rawValue)
        try store.chatPurges.put.run()
    }

    /// Removes some messages of a deleted chat, or words of its index.
    ///
    /// - Returns: false when there is nothing to do.
    package func purgeChats(limit: Int) throws -> Bool {
        guard let (key, end, place) = try nextPurge() else { return false }
        writes += 1
        // Nobody searches there: the index need not be right in between.
        let words = store.chatPurges.dropWords
        words.bind(1, key.rawValue)
        words.bind(2, Int64(limit))
        if try words.run() > 0 { return true }
        guard let chat = try chatToErase(key),
            let part = try part(of: chat, after: place, limit: limit), place < end
        else {
            store.chatPurges.drop.bind(1, key.rawValue)
            try store.chatPurges.drop.run()
            return true
        }
        let last = min(part.last, end)
        try removeDeserted(after: place, upTo: last, in: chat)
        store.chatPurges.move.bind(1, key.rawValue)
        store.chatPurges.move.bind(2, last.rawValue)
        try store.chatPurges.move.run()
        return true
    }

    private func nextPurge() throws -> (chat: ChatKey, end: MessageID, place: MessageID)? {
        let statement = store.chatPurges.next
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return (
            ChatKey(statement.int(0)), MessageID(statement.int(1)), MessageID(statement.int(2))
        )
    }
}
