import Foundation
import GRDB
import TambourProtocol

/// Reading a chat's history.
extension Reader {
    /// Where a page is anchored.
    enum Anchor {
        /// The newest messages.
        case newest
        /// The messages before this one.
        case before(MessageID)
        /// The messages after this one.
        case after(MessageID)
        /// The messages on both sides of this one.
        case around(MessageID)
    }

    func history(of chat: ChatID, _ anchor: Anchor, count: Int) throws -> HistoryPage {
        let known = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT lastMessage, othersReadMark, type, title FROM chat WHERE id = ?"
            ),
            arguments: [chat.rawValue]
        )
        let messages = try messages(of: chat, anchor, count)
        let newest = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT max(id) FROM message WHERE chat = ?"),
            arguments: [chat.rawValue]
        )
        let isEnd = messages.last.map { $0.id.rawValue == newest } ?? (newest == nil)
        let positions = messages.map { Position($0.id.rawValue) }
        let held = try db.history(of: chat)
        var gaps = try held.gaps(in: positions, end: end(of: known))
        if known == nil {
            // The chat is not in the list: as far as is known, it has no messages.
            gaps = HistoryGaps(
                before: false,
                between: gaps.between.map { _ in false },
                behind: false
            )
        }
        let readMark: Int64 = known?["othersReadMark"] ?? 0
        var overlays = try Overlays(of: chat, db)
        let context = Context(chat: chat, title: known?["title"] ?? "", readMark: readMark)
        var rows: [HistoryRow] = []
        var ids: Set<HistoryRow.ID> = []
        var isGapBefore = gaps.before
        for (index, message) in messages.enumerated() {
            let isLast = index == messages.count - 1
            let isGapAfter = isLast ? isEnd && gaps.behind : gaps.between[index]
            if overlays.isDeleted(message.id) {
                // A gap after a row that is not shown stands after the row before it.
                if isGapAfter, rows.isEmpty { isGapBefore = true }
                if isGapAfter, !rows.isEmpty { rows[rows.count - 1].isGapAfter = true }
                continue
            }
            var row = row(message, context, &overlays)
            // Two devices of one person may choose the same `cid`.
            if !ids.insert(row.id).inserted { row.id = .message(message.id) }
            row.isGapAfter = isGapAfter
            rows.append(row)
        }
        if isEnd {
            for send in try overlays.unsent(db, me: me, in: chat) {
                rows.append(row(send, context))
            }
        }
        return HistoryPage(
            rows: rows,
            isGapBefore: isGapBefore,
            isGapBehindAnchor: known != nil && isGap(behind: anchor, positions.first, held),
            isStart: !gaps.before && isFirst(messages.first, in: chat),
            isEnd: isEnd
        )
    }

    private func isGap(behind anchor: Anchor, _ first: Position?, _ held: ChatHistory) -> Bool {
        guard case .after(let message) = anchor, let first else { return false }
        return !held.isWithoutGap(from: Position(message.rawValue), to: first)
    }

    private func isFirst(_ message: Message?, in chat: ChatID) -> Bool {
        guard let message else { return true }
        let statement = try? db.cachedStatement(
            sql: "SELECT 1 FROM message WHERE chat = ? AND id < ? LIMIT 1"
        )
        let older = statement.flatMap {
            try? Row.fetchOne($0, arguments: [chat.rawValue, message.id.rawValue])
        }
        return older == nil
    }

    private func end(of chat: Row?) throws -> ChatEnd? {
        guard let chat else { return nil }
        let safe = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM setting WHERE name = 'chatsMark'")
        )
        let newest = (chat["lastMessage"] as Int64?).map { Position($0) }
        return safe.map { ChatEnd(newest: newest, safeTimeMs: $0) }
    }

    private func messages(of chat: ChatID, _ anchor: Anchor, _ count: Int) throws -> [Message] {
        func older(_ bound: Int64, _ comparison: String, _ count: Int) throws -> [Message] {
            try Data.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT data FROM message WHERE chat = ? AND id \(comparison) ?
                        ORDER BY id DESC LIMIT ?
                        """
                ),
                arguments: [chat.rawValue, bound, count]
            ).reversed().compactMap { Message(stored: $0) }
        }
        func newer(_ bound: Int64, _ count: Int) throws -> [Message] {
            try Data.fetchAll(
                db.cachedStatement(
                    sql: "SELECT data FROM message WHERE chat = ? AND id > ? ORDER BY id LIMIT ?"
                ),
                arguments: [chat.rawValue, bound, count]
            ).compactMap { Message(stored: $0) }
        }
        switch anchor {
        case .newest: return try older(.max, "<=", count)
        case .before(let id): return try older(id.rawValue, "<", count)
        case .after(let id): return try newer(id.rawValue, count)
        case .around(let id):
            let before = try older(id.rawValue, "<=", count / 2 + 1)
            return before + (try newer(id.rawValue, count - count / 2))
        }
    }

    /// The values that all rows of a page share.
    struct Context {
        let chat: ChatID
        let title: String
        let readMark: Int64
    }

    func row(_ message: Message, _ context: Context, _ overlays: inout Overlays) -> HistoryRow {
        let edit = overlays.edits[message.id]
        let reaction = overlays.reactions[message.id]
        let isOwn = message.sender == me
        var quote: HistoryRow.Quote?
        var forwarded: String?
        var shown = message
        if let link = message.link?.stored {
            let other = link.message
            if link.type == .forward {
                forwarded = other.sender.map(name) ?? "a channel"
                if message.text.isEmpty { shown = other }
            } else {
                quote = HistoryRow.Quote(
                    message: link.messageID ?? other.id,
                    sender: other.sender.map(name) ?? context.title,
                    text: other.line(name: name)
                )
            }
        }
        return HistoryRow(
            id: isOwn ? message.cid.map { .own($0) } ?? .message(message.id) : .message(message.id),
            message: message.id,
            outgoing: nil,
            sender: message.sender,
            senderName: message.sender.map(name) ?? context.title,
            isOwn: isOwn,
            timeMs: message.time,
            text: edit?.text ?? "\(shown.text)",
            spans: edit.map { Self.spans($0.elements, $0.text) } ?? shown.shownSpans,
            quote: quote,
            forwardedFrom: forwarded,
            attachments: shown.attachmentTexts(name: name),
            event: message.eventText(name: name),
            reactions: message.shownReactions(with: reaction),
            isEdited: edit != nil || message.status == .edited,
            isChanging: edit != nil || reaction != nil,
            state: state(of: message, readMark: context.readMark),
            isGapAfter: false,
            concernsMe: !isOwn && message.concerns(me)
        )
    }

    /// The formatting of a text written on this device.
    private static func spans(_ elements: Data?, _ text: String) -> [HistoryRow.TextSpan] {
        let stored = elements.flatMap { [Element](stored: $0) } ?? []
        return HistoryRow.TextSpan.all(of: stored, length: text.utf16.count)
    }

    func row(_ send: Overlays.Send, _ context: Context) -> HistoryRow {
        let answered = send.shown.replyTo.flatMap { id -> Message? in
            let statement = try? db.cachedStatement(
                sql: "SELECT data FROM message WHERE chat = ? AND id = ?"
            )
            return
                statement
                .flatMap { try? Data.fetchOne($0, arguments: [context.chat.rawValue, id]) }
                .flatMap { Message(stored: $0) }
        }
        return HistoryRow(
            id: .own(send.cid),
            message: nil,
            outgoing: OutgoingID(send.task),
            sender: me,
            senderName: name(me),
            isOwn: true,
            timeMs: send.atHereMs,
            text: send.shown.text,
            spans: Self.spans(send.shown.elements, send.shown.text),
            quote: answered.map {
                HistoryRow.Quote(
                    message: $0.id,
                    sender: $0.sender.map(name) ?? "",
                    text: $0.line(name: name)
                )
            },
            forwardedFrom: send.shown.forwardOf == nil ? nil : "",
            attachments: send.shown.hasPhoto == true ? [Message.photoText] : [],
            event: nil,
            reactions: [],
            isEdited: false,
            isChanging: false,
            state: send.failure.map { .failed(reason: $0) } ?? .waiting,
            isGapAfter: false
        )
    }
}

/// Changes of a chat by this device that the server has not confirmed.
struct Overlays {
    struct Send {
        let task: Int64
        let cid: Int64
        let atHereMs: Int64
        let shown: SendTask.Shown
        /// Why it could not be sent; nil while it waits.
        let failure: String?
    }

    private(set) var edits: [MessageID: EditTask.Shown] = [:]
    /// One emoji, or none when the reaction was removed.
    private(set) var reactions: [MessageID: [String]] = [:]
    private var deleted: Set<Int64> = []
    private var sends: [Send] = []

    init(of chat: ChatID, _ db: Database) throws {
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT overlay.*, task.state, task.lastError, task.place FROM overlay
                    LEFT JOIN task ON task.id = overlay.task WHERE overlay.chat = ? ORDER BY task.place
                    """
            ),
            arguments: [chat.rawValue]
        )
        let decoder = JSONDecoder()
        for row in rows {
            let value: Data = row["value"]
            let message = (row["message"] as Int64?).map(MessageID.init)
            switch OverlayKind(rawValue: row["kind"]) {
            case .edit:
                guard let message else { continue }
                edits[message] = try? decoder.decode(EditTask.Shown.self, from: value)
            case .react:
                guard let message else { continue }
                reactions[message] = try? decoder.decode([String].self, from: value)
            case .delete:
                deleted.formUnion((try? decoder.decode([Int64].self, from: value)) ?? [])
            case .send:
                guard let shown = try? decoder.decode(SendTask.Shown.self, from: value) else {
                    continue
                }
                let state: String = row["state"] ?? ""
                sends.append(
                    Send(
                        task: row["task"],
                        cid: row["cid"],
                        atHereMs: row["createdAtHere"],
                        shown: shown,
                        failure: state.hasPrefix("failed") ? row["lastError"] ?? "" : nil
                    )
                )
            case nil: continue
            }
        }
    }

    func isDeleted(_ message: MessageID) -> Bool { deleted.contains(message.rawValue) }

    /// The messages that the server has not confirmed. A message whose reply was lost may be stored
    /// already; in a channel it is stored without a sender.
    func unsent(_ db: Database, me: UserID, in chat: ChatID) throws -> [Send] {
        try sends.filter { send in
            let stored = try Row.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT 1 FROM message
                        WHERE chat = ? AND cid = ? AND (sender = ? OR sender IS NULL)
                        """
                ),
                arguments: [chat.rawValue, send.cid, me.rawValue]
            )
            return stored == nil
        }
    }
}

extension Message {
    /// The reactions, including this device's unconfirmed change.
    fileprivate func shownReactions(with change: [String]?) -> [HistoryRow.Reaction] {
        let info = reactionInfo?.stored
        let before = info?.yourReaction.map { "\($0)" }
        let own = change.map(\.first) ?? before
        var counts = (info?.counters ?? []).map {
            (emoji: "\($0.reaction)", count: Int(count: $0.count))
        }
        if own != before {
            for index in counts.indices where counts[index].emoji == before {
                counts[index].count -= 1
            }
            if let own {
                if let index = counts.firstIndex(where: { $0.emoji == own }) {
                    counts[index].count += 1
                } else {
                    counts.append((own, 1))
                }
            }
        }
        return counts.filter { $0.count > 0 }.map {
            HistoryRow.Reaction(emoji: $0.emoji, count: $0.count, isOwn: $0.emoji == own)
        }
    }
}
