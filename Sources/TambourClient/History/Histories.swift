import TambourProtocol

/// The stored histories of the chats used so far. Every change is stored at once.
struct Histories {
    private var held: [ChatID: ChatHistory] = [:]
    /// The number of pages requested from the server.
    private(set) var requests = 0

    mutating func history(of chat: ChatID, _ tx: StoreTransaction) throws -> ChatHistory {
        if let known = held[chat] { return known }
        let read = try tx.history(of: chat)
        held[chat] = read
        return read
    }

    /// Changes a history, and stores the effects that `body` returns.
    ///
    /// - Parameters:
    ///   - messages: the messages that the effects refer to, as received.
    ///   - revision: the revision at which the messages were received; nil for the current
    ///     revision.
    mutating func change(
        _ chat: ChatID,
        with messages: [Message],
        revision: Int64? = nil,
        isPushed: Bool,
        _ tx: StoreTransaction,
        _ body: (inout ChatHistory) -> HistoryEffects
    ) throws {
        var history = try history(of: chat, tx)
        let effects = body(&history)
        try tx.carryOut(
            effects,
            with: messages,
            in: chat,
            revision: revision ?? tx.nextRevision(),
            isPushed: isPushed
        )
        held[chat] = history
    }

    mutating func countRequest() { requests += 1 }

    /// Forgets a history whose rows have been deleted.
    mutating func forget(_ chat: ChatID) { held[chat] = nil }

    /// Discards the histories in memory. The next use rereads them.
    mutating func forgetAll() { held = [:] }
}
