public import TambourProtocol

/// Reading threads of messages and their answers.
extension Client {
    /// Returns the thread of a message: the chain of answered messages up to the first message of
    /// the thread, and all answers to messages of this chain.
    ///
    /// The thread is read from the local store, including queued messages. The chain stops at a
    /// message that is deleted or not stored here. This message is then the first entry. Other
    /// deleted messages are omitted, and answers to a deleted message form a separate thread.
    /// - Parameters:
    ///   - limit: the maximum number of entries, at least 2. A longer thread is reduced to the
    ///     message itself, the nearest messages of the chain (up to half of the limit), and the
    ///     newest of the remaining messages.
    public func thread(
        of message: MessageID,
        in chat: ChatID,
        limit: Int = 200
    ) throws(ClientError) -> MessageThread {
        try store.read { try Reader($0).thread(of: message, in: chat, limit: limit) }
    }
}

extension Reader {
    /// The maximum number of answers to read from the store.
    private static let mostAnswers = 5_000

    func thread(of message: MessageID, in chat: ChatID, limit: Int) throws -> MessageThread {
        let limit = max(2, limit)
        var overlays = try store.overlays(of: chat)
        let (path, isFromStart) = try path(to: message, in: chat, overlays, count: limit / 2)
        let answers = try store.answers(to: path[0], in: chat, limit: Self.mostAnswers)
        let sends = try unsent(overlays, in: chat)
        var tree = ThreadTree(root: path[0])
        // The path to the message is always shown, even in a long thread.
        let links = answers + zip(path.dropFirst(), path).map { ($0, $1) }
        for (id, answered) in links.sorted(by: { $0.id < $1.id }) where !overlays.isDeleted(id) {
            tree.add(.sent(id), to: answered)
        }
        for send in sends {
            guard let answered = send.shown.replyTo else { continue }
            tree.add(.waiting(cid: send.cid), to: MessageID(answered))
        }
        let shown = tree.shown(atMost: limit, with: path)

        let context = Context(chat, try store.chatRow(chat))
        var entries: [MessageThread.Entry] = []
        for (node, depth) in shown.places {
            let id: HistoryRow.ID
            let content: MessageThread.Entry.Content
            switch node {
            case .sent(let message):
                content = try self.content(of: message, context, &overlays)
                if case .row(let row) = content { id = row.id } else { id = .message(message) }
            case .waiting(let cid):
                guard let send = sends.first(where: { $0.cid == cid }) else { continue }
                id = .own(cid)
                content = .row(row(send, context))
            }
            entries.append(
                MessageThread.Entry(id: id, message: node.message, content: content, depth: depth)
            )
        }
        if entries.count == 1, entries[0].content == .deleted { entries = [] }
        return MessageThread(
            entries: entries,
            isWhole: isFromStart && answers.count < Self.mostAnswers && shown.isWhole
        )
    }

    /// Returns the chain of answered messages that leads to a message, first message first.
    ///
    /// - Returns: the last `count` messages of the chain, at least one, and whether they reach the
    ///   start of the thread.
    private func path(
        to message: MessageID,
        in chat: ChatID,
        _ overlays: Overlays,
        count: Int
    ) throws -> (path: [MessageID], isFromStart: Bool) {
        var path = [message]
        // A malformed message that answers a later message could form a cycle.
        var seen: Set = [message]
        while let last = path.last, !overlays.isDeleted(last) {
            guard let answered = try store.messageAnswered(by: last, in: chat),
                seen.insert(answered).inserted
            else { break }
            guard path.count < count else { return (path.reversed(), false) }
            path.append(answered)
        }
        return (path.reversed(), true)
    }

    private func content(
        of message: MessageID,
        _ context: Context,
        _ overlays: inout Overlays
    ) throws -> MessageThread.Entry.Content {
        if overlays.isDeleted(message) { return .deleted }
        if let held = try store.message(message, in: context.chat) {
            return .row(row(held, context, &overlays))
        }
        let isGone = try store.history(of: context.chat).isGone(Position(message.rawValue))
        return isGone ? .deleted : .notHeld
    }
}
