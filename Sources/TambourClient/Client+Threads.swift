import Foundation
import GRDB
public import TambourProtocol

/// What answers what.
extension Client {
    /// The thread of a message: what it answers, up to the message that began it, and all that answers
    /// any of them.
    ///
    /// It is read from what is held here, with what still waits to be sent. A message that is not held,
    /// or was deleted, ends the way up; it is the first entry then. A deleted one is nowhere else, and
    /// what answers it has a thread of its own.
    /// - Parameters:
    ///   - limit: how many entries at most, 2 or more. Of a longer thread the message itself is there
    ///     with what it answers, as far as that fits into half of them, and the newest of the others.
    public func thread(
        of message: MessageID,
        in chat: ChatID,
        limit: Int = 200
    ) throws(ClientError) -> MessageThread {
        try store.read { try Reader($0).thread(of: message, in: chat, limit: limit) }
    }
}

extension Reader {
    /// Answers of which no more is read than who answers what.
    private static let mostAnswers = 5_000

    func thread(of message: MessageID, in chat: ChatID, limit: Int) throws -> MessageThread {
        let limit = max(2, limit)
        var overlays = try Overlays(of: chat, db)
        let (path, isFromStart) = try path(to: message, in: chat, overlays, count: limit / 2)
        let answers = try answers(to: path[0], in: chat)
        let sends = try overlays.unsent(db, me: me, in: chat)
        var tree = ThreadTree(root: path[0])
        // What leads to the message is in the thread, however much else is.
        let links = answers + zip(path.dropFirst(), path).map { ($0, $1) }
        for (id, answered) in links.sorted(by: { $0.id < $1.id }) where !overlays.isDeleted(id) {
            tree.add(.sent(id), to: answered)
        }
        for send in sends {
            guard let answered = send.shown.replyTo else { continue }
            tree.add(.waiting(cid: send.cid), to: MessageID(answered))
        }
        let shown = tree.shown(atMost: limit, with: path)

        let known = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT othersReadMark, title FROM chat WHERE id = ?"),
            arguments: [chat.rawValue]
        )
        let context = Context(
            chat: chat,
            title: known?["title"] ?? "",
            readMark: known?["othersReadMark"] ?? 0
        )
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

    /// What leads to a message by answers, the message that began it first.
    ///
    /// - Returns: never empty, and whether it goes up to the beginning.
    private func path(
        to message: MessageID,
        in chat: ChatID,
        _ overlays: Overlays,
        count: Int
    ) throws -> (path: [MessageID], isFromStart: Bool) {
        let statement = try db.cachedStatement(
            sql: "SELECT replyTo FROM message WHERE chat = ? AND id = ?"
        )
        var path = [message]
        // Who says that a message answers a later one may go round in a circle.
        var seen: Set = [message]
        while let last = path.last, !overlays.isDeleted(last) {
            let row = try Row.fetchOne(statement, arguments: [chat.rawValue, last.rawValue])
            guard let answered = (row?["replyTo"] as Int64?).map(MessageID.init),
                seen.insert(answered).inserted
            else { break }
            guard path.count < count else { return (path.reversed(), false) }
            path.append(answered)
        }
        return (path.reversed(), true)
    }

    /// All that answers a message or an answer to it, oldest first; the message itself may be among them.
    private func answers(
        to message: MessageID,
        in chat: ChatID
    ) throws -> [(id: MessageID, answered: MessageID)] {
        // UNION drops what was found before, so that a circle ends.
        try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    WITH RECURSIVE answer (id, replyTo) AS (
                      SELECT id, replyTo FROM message WHERE chat = :chat AND replyTo = :message
                      UNION
                      SELECT message.id, message.replyTo FROM answer
                      JOIN message ON message.chat = :chat AND message.replyTo = answer.id
                      ORDER BY 1 LIMIT :most
                    )
                    SELECT id, replyTo FROM answer ORDER BY id
                    """
            ),
            arguments: [
                "chat": chat.rawValue, "message": message.rawValue, "most": Self.mostAnswers,
            ]
        ).map { (MessageID($0[0]), MessageID($0[1])) }
    }

    private func content(
        of message: MessageID,
        _ context: Context,
        _ overlays: inout Overlays
    ) throws -> MessageThread.Entry.Content {
        if overlays.isDeleted(message) { return .deleted }
        let data = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT data FROM message WHERE chat = ? AND id = ?"),
            arguments: [context.chat.rawValue, message.rawValue]
        )
        if let held = data.flatMap({ Message(stored: $0) }) {
            return .row(row(held, context, &overlays))
        }
        let isGone = try db.history(of: context.chat).isGone(Position(message.rawValue))
        return isGone ? .deleted : .notHeld
    }
}
