import Foundation
import TambourProtocol

/// Reading a chat's history.
extension Reader {
    /// The place from which a page is read.
    enum Anchor {
        /// The newest messages.
        case newest
        /// The messages before this message.
        case before(MessageID)
        /// The messages after this message.
        case after(MessageID)
        /// The messages on both sides of this message.
        case around(MessageID)
    }

    func history(of chat: ChatID, _ anchor: Anchor, count: Int) throws -> HistoryPage {
        let known = try store.chatRow(chat)
        let thread = try store.commentThread(chat)
        let messages = try messages(of: chat, anchor, count)
        let isEnd = try store.lastMessageID(in: chat) == messages.last?.id
        let positions = messages.map { Position($0.id.rawValue) }
        let held = try store.history(of: chat)
        var gaps = try held.gaps(in: positions, end: end(of: known, thread))
        if known == nil, thread == nil {
            // The chat is not in the list, so no further messages are expected.
            gaps = HistoryGaps(
                before: false,
                between: gaps.between.map { _ in false },
                behind: false
            )
        }
        var overlays = try store.overlays(of: chat)
        let context = Context(chat, known)
        var rows: [HistoryRow] = []
        var ids: Set<HistoryRow.ID> = []
        var isGapBefore = gaps.before
        for (index, message) in messages.enumerated() {
            let isLast = index == messages.count - 1
            let isGapAfter = isLast ? isEnd && gaps.behind : gaps.between[index]
            if overlays.isDeleted(message.id) {
                // The gap after a hidden row is shown after the preceding visible row.
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
            for send in try unsent(overlays, in: chat) { rows.append(row(send, context)) }
        }
        if let first = messages.first, let last = messages.last {
            let counts = try store.commentCounts(in: chat, from: first.id, through: last.id)
            for index in rows.indices where !counts.isEmpty && rows[index].event == nil {
                rows[index].commentCount = rows[index].message.flatMap { counts[$0] }
            }
        }
        for index in rows.indices {
            guard let quoted = rows[index].quote?.message else { continue }
            // A quote shows the current version of a message, and a deleted message is not quoted.
            // Later replies of the server do the same.
            if try isGone(quoted, in: chat, held, &overlays) {
                rows[index].quote = nil
            } else if let message = try store.message(quoted, in: chat) {
                rows[index].quote = quote(of: message, as: quoted, context)
            }
        }
        return HistoryPage(
            rows: rows,
            isGapBefore: isGapBefore,
            isGapBehindAnchor: (known != nil || thread != nil)
                && isGap(behind: anchor, positions.first, held),
            isStart: !gaps.before && isFirst(messages.first, in: chat),
            isEnd: isEnd
        )
    }

    /// Returns whether a message is known to be deleted. A stored answer may still contain the text
    /// of the deleted message.
    private func isGone(
        _ message: MessageID,
        in chat: ChatID,
        _ held: ChatHistory,
        _ overlays: inout Overlays
    ) throws -> Bool {
        if overlays.isDeleted(message) { return true }
        guard held.isGone(Position(message.rawValue)) else { return false }
        return try store.message(message, in: chat) == nil
    }

    private func isGap(behind anchor: Anchor, _ first: Position?, _ held: ChatHistory) -> Bool {
        guard case .after(let message) = anchor, let first else { return false }
        return !held.isWithoutGap(from: Position(message.rawValue), to: first)
    }

    private func isFirst(_ message: Message?, in chat: ChatID) -> Bool {
        guard let message else { return true }
        return (try? store.hasMessages(in: chat, before: message.id)) != true
    }

    private func end(of chat: ChatRow?, _ thread: CommentThread?) throws -> ChatEnd? {
        // While comments are not pushed, newer comments may exist, so the end is unknown.
        guard chat != nil || thread?.isOpen == true,
            let safe: Int64 = try store.value(of: .chatsMark)
        else { return nil }
        let newest = chat.map(\.newest) ?? thread?.newest
        return ChatEnd(newest: newest.map { Position($0.rawValue) }, safeTimeMs: safe)
    }

    private func messages(of chat: ChatID, _ anchor: Anchor, _ count: Int) throws -> [Message] {
        switch anchor {
        case .newest: return try store.messages(of: chat, count: count)
        case .before(let id):
            return try store.messages(of: chat, upTo: id, isInclusive: false, count: count)
        case .after(let id): return try store.messages(of: chat, after: id, count: count)
        case .around(let id):
            return try store.messages(of: chat, upTo: id, count: count / 2 + 1)
                + store.messages(of: chat, after: id, count: count - count / 2)
        }
    }

    /// The values that all rows of a page share.
    struct Context {
        let chat: ChatID
        let title: String
        let readMark: Int64

        init(chat: ChatID, title: String, readMark: Int64) {
            self.chat = chat
            self.title = title
            self.readMark = readMark
        }

        /// - Parameter row: nil for a chat that is not in the list.
        init(_ chat: ChatID, _ row: ChatRow?) {
            self.init(chat: chat, title: row?.title ?? "", readMark: row?.othersReadMark ?? 0)
        }
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
                quote = self.quote(of: other, as: link.messageID ?? other.id, context)
            }
        }
        let poll = shown.shownAttaches.lazy.compactMap { Poll($0, me: me) }.first
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
            poll: poll,
            event: message.eventText(name: name),
            reactions: message.shownReactions(with: reaction),
            // The push of a vote also has the status EDITED, so the status does not tell whether a
            // poll was edited.
            isEdited: edit != nil || message.status == .edited && poll == nil,
            isChanging: edit != nil || reaction != nil,
            state: state(of: message, readMark: context.readMark),
            isGapAfter: false,
            concernsMe: !isOwn && message.concerns(me)
        )
    }

    private func quote(
        of message: Message,
        as id: MessageID,
        _ context: Context
    ) -> HistoryRow.Quote {
        HistoryRow.Quote(
            message: id,
            sender: message.sender.map(name) ?? context.title,
            text: message.line(name: name)
        )
    }

    /// Returns the formatting of a text written on this device.
    private static func spans(_ elements: Data?, _ text: String) -> [MessageSpan] {
        let stored = elements.flatMap { [Element](stored: $0) } ?? []
        return MessageSpan.all(of: stored, length: text.utf16.count)
    }

    /// Returns the unconfirmed messages, except those that are also stored from the server. A
    /// message can be unconfirmed and stored if the reply to its request was lost.
    func unsent(_ overlays: Overlays, in chat: ChatID) throws -> [Overlays.Send] {
        try overlays.sends.filter { try store.ownMessage(cid: $0.cid, in: chat, me: me) == nil }
    }

    func row(_ send: Overlays.Send, _ context: Context) -> HistoryRow {
        let answered = send.shown.replyTo.flatMap {
            try? store.message(MessageID($0), in: context.chat)
        }
        return HistoryRow(
            id: .own(send.cid),
            message: nil,
            outgoing: OutgoingID(send.task.rawValue),
            sender: me,
            senderName: name(me),
            isOwn: true,
            timeMs: send.atHereMs,
            text: send.shown.text,
            spans: Self.spans(send.shown.elements, send.shown.text),
            quote: answered.map { quote(of: $0, as: $0.id, context) },
            forwardedFrom: send.shown.forwardOf == nil ? nil : "",
            attachments: send.shown.attachmentTexts,
            poll: nil,
            event: nil,
            reactions: [],
            isEdited: false,
            isChanging: false,
            state: send.failure.map { .failed(reason: $0) } ?? .waiting,
            isGapAfter: false
        )
    }
}

extension SendTask.Shown {
    fileprivate var attachmentTexts: [String] {
        (hasPhoto == true ? [Message.photoText] : []) + (poll.map { [$0.text] } ?? [])
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
