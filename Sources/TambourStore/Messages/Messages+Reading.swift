package import TambourEvents
package import TambourProtocol
import TambourSQL

extension ReadTransaction {
    package func record(_ id: MessageID, in chat: ChatKey) throws -> MessageRecord? {
        try store.messages.byID.one {
            $0.bind(1, chat.rawValue)
            $0.bind(2, id.rawValue)
        } read: {
            MessageRecord(row: $0)
        }
    }

    package func head(of chat: ChatKey) throws -> ChatHead {
        try store.messages.head.one({ $0.bind(1, chat.rawValue) }, read: ChatHead.init(row:))
            ?? .empty
    }

    /// Returns the newest message at or before `time` (Unix milliseconds), even if it is removed.
    package func head(of chat: ChatKey, at time: Int64) throws -> ChatHead {
        try head(of: chat, upTo: MessageID.last(at: time)) ?? .empty
    }

    /// Returns the newest message at or before `id`, even if it is removed.
    func head(of chat: ChatKey, upTo id: MessageID) throws -> ChatHead? {
        try store.messages.numberAt.one {
            $0.bind(1, chat.rawValue)
            $0.bind(2, id.rawValue)
        } read: {
            ChatHead(row: $0)
        }
    }

    /// Returns the id of the message that precedes `id` in the chat, even if the preceding message
    /// is removed.
    package func previousID(of id: MessageID, in chat: ChatKey) throws -> MessageID? {
        let previous = try store.messages.previous.oneInt {
            $0.bind(1, chat.rawValue)
            $0.bind(2, id.rawValue)
        }
        return previous.map { MessageID($0) }
    }

    /// Returns the messages that `sender` sent to `chat` from `device` with this `cid`.
    func records(
        cid: Int64,
        sender: UserID,
        device: DeviceID,
        in chat: ChatKey
    ) throws -> [MessageRecord] {
        guard try hasSent(cid: cid, sender: sender) else { return [] }
        return try store.messages.byCID.all {
            $0.bind(1, cid)
            $0.bind(2, sender.rawValue)
            $0.bind(3, chat.rawValue)
            $0.bind(4, device.rawValue)
        } read: {
            MessageRecord(row: $0)
        }
    }

    /// Returns the messages with this `cid` by which `sender` created groups and channels from
    /// `device`.
    func creations(cid: Int64, sender: UserID, device: DeviceID) throws -> [MessageRecord] {
        guard try hasSent(cid: cid, sender: sender) else { return [] }
        return try store.messages.byCreationCID.all {
            $0.bind(1, cid)
            $0.bind(2, sender.rawValue)
            $0.bind(3, device.rawValue)
        } read: {
            MessageRecord(row: $0)
        }
    }

    /// Returns the stored pairs (cid, sender) with the largest cids below `ceiling`, the largest
    /// first. The query reads only the index.
    func newestClientIDs(below ceiling: Int64, limit: Int) throws -> [(cid: Int64, sender: UserID)]
    {
        try store.messages.newestCIDs.all {
            $0.bind(1, ceiling)
            $0.bind(2, Int64(limit))
        } read: {
            ($0.int(.cid), UserID($0.int(.sender)))
        }
    }

    /// Whether `sender` has used `cid` in any chat. This query is fast, because it reads only the
    /// index. It suffices for nearly every cid, because nearly every cid is new.
    private func hasSent(cid: Int64, sender: UserID) throws -> Bool {
        try store.messages.anyCID.hasRow {
            $0.bind(1, cid)
            $0.bind(2, sender.rawValue)
        }
    }

    /// Returns the newest message above `floor` that `viewer` can see.
    func lastVisible(
        in chat: ChatKey,
        for viewer: UserID,
        above floor: MessageID
    ) throws -> MessageRecord? {
        try store.messages.lastVisible.one {
            $0.bind(1, chat.rawValue)
            $0.bind(2, viewer.rawValue)
            $0.bind(3, floor.rawValue)
        } read: {
            MessageRecord(row: $0)
        }
    }

    /// Whether `viewer` has deleted the message for themselves.
    package func isHidden(_ id: MessageID, in chat: ChatKey, for viewer: UserID) throws -> Bool {
        try store.messages.isHidden.hasRow {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, chat.rawValue)
            $0.bind(3, id.rawValue)
        }
    }

    /// Returns the message as `viewer` sees it. Nil if the message is removed, hidden or unknown,
    /// or its id is not above `floor`.
    package func visibleRecord(
        _ id: MessageID,
        in chat: ChatKey,
        for viewer: UserID,
        above floor: MessageID
    ) throws -> MessageRecord? {
        guard id > floor, let record = try record(id, in: chat), record.status != .removed,
            try !isHidden(id, in: chat, for: viewer)
        else { return nil }
        return record
    }

    /// Returns the messages of a chat that changed for the viewer. The message with the oldest
    /// change comes first.
    ///
    /// - Parameters:
    ///   - mark: the last change before the page, given by its time (commit clock) and its message.
    ///   - limit: the maximum number of changes.
    package func changes(
        in view: ChatView,
        after mark: (time: Int64, message: MessageID),
        limit: Int
    ) throws -> [(time: Int64, message: MessageID)] {
        try store.messages.changes.all {
            $0.bind(1, view.key.rawValue)
            $0.bind(2, mark.time)
            $0.bind(3, mark.message.rawValue)
            $0.bind(4, view.floor.rawValue)
            $0.bind(5, view.viewer.rawValue)
            $0.bind(6, Int64(limit))
        } read: {
            ($0.int(.changed), MessageID($0.int(.id)))
        }
    }

    /// Returns a page with at most `backward` messages at or before `from` and at most `forward`
    /// messages after `from`.
    ///
    /// - Parameters:
    ///   - floor: the last message that is hidden from the viewer, together with all earlier
    ///     messages.
    ///   - from: Unix milliseconds.
    ///   - earliest: the minimum time of a message, Unix milliseconds.
    ///   - latest: the maximum time of a message, Unix milliseconds.
    ///   - pageLimit: the maximum number of messages in both directions together. The older
    ///     messages come first; the newer messages fill the rest of the page.
    ///   - budget: the maximum size of the page in bytes; nil for `maxReplyBytes`. The page
    ///     contains the nearest message of each direction even if it exceeds the budget.
    /// - Returns: the messages, the oldest first. If the page would exceed the budget, the messages
    ///   that are farthest from `from` are omitted in each direction. The messages before `from`
    ///   use the budget first.
    package func history(
        of chat: ChatKey,
        at address: MessageAddress,
        for viewer: UserID,
        above floor: MessageID,
        from: Int64,
        backward: Int,
        forward: Int,
        earliest: Int64 = 0,
        latest: Int64 = .max,
        pageLimit: Int = .max,
        budget: Int? = nil
    ) throws -> HistoryPage {
        var page = HistoryPage()
        var budget = budget ?? limits.maxReplyBytes
        let pivot = MessageID.last(at: from)
        let viewpoint = Viewpoint(user: viewer, floor: floor)
        let older = try messages(
            store.messages.backward,
            in: chat,
            at: address,
            for: viewpoint,
            pivot: pivot,
            bound: max(MessageID(timeMs: max(0, earliest), counter: 0), floor.next),
            limit: backward,
            budget: &budget,
            more: &page.more
        )
        let room = pageLimit - older.count
        var newer = try messages(
            store.messages.forward,
            in: chat,
            at: address,
            for: viewpoint,
            pivot: max(pivot, floor),
            bound: MessageID.last(at: latest),
            limit: min(forward, max(1, room)),
            budget: &budget,
            more: &page.more
        )
        if room <= 0, !newer.isEmpty {
            // The older messages already fill the page. The query for newer messages only shows
            // whether more messages exist.
            newer = []
            page.more = true
        }
        page.messages = older.reversed() + newer
        return page
    }

    private func messages(
        _ query: SQLQuery<MessageColumn>,
        in chat: ChatKey,
        at address: MessageAddress,
        for viewpoint: Viewpoint,
        pivot: MessageID,
        bound: MessageID,
        limit: Int,
        budget: inout Int,
        more: inout Bool
    ) throws -> [Message] {
        guard limit > 0 else { return [] }
        var messages: [Message] = []
        try query.each {
            $0.bind(1, chat.rawValue)
            $0.bind(2, viewpoint.user.rawValue)
            $0.bind(3, pivot.rawValue)
            $0.bind(4, bound.rawValue)
            $0.bind(5, Int64(limit) + 1)
        } while: { row in
            if messages.count == limit {
                more = true
                return false
            }
            let record = MessageRecord(row: row)
            let message = try message(record, at: address, for: viewpoint)
            budget -= message.wireSizeEstimate
            if budget < 0, !messages.isEmpty {
                more = true
                return false
            }
            messages.append(message)
            return true
        }
        return messages
    }

    /// Returns the message object for the wire. If `viewpoint` is nil, the object is for all
    /// members. The caller must then exclude the members who may not see the answered message.
    ///
    /// If the message is a reply, the object contains the current version of the answered message,
    /// unless that message is deleted or the viewer cannot see it.
    ///
    /// - Parameter viewpoint: the viewer. The object contains the reaction and the votes of the
    ///   viewer, and the answered message only if the viewer can see it.
    package func message(
        _ record: MessageRecord,
        at address: MessageAddress,
        previous: MessageID? = nil,
        for viewpoint: Viewpoint? = nil
    ) throws -> Message {
        let record = record.fitting(limits)
        let viewer = viewpoint?.user
        var link = record.forward
        if let replyTo = record.replyTo, record.status != .removed,
            let reply = try reply(to: replyTo, in: record.chat, at: address, for: viewpoint)
        {
            link = reply
        }
        return try self.record(record, seenBy: viewer).message(
            at: address,
            link: link,
            previous: previous,
            reactions: try reactions(to: record, for: viewer),
            for: viewer
        )
    }

    /// Returns the link with the current version of the answered message; nil if this message is
    /// deleted or the viewer cannot see it.
    func reply(
        to id: MessageID,
        in chat: ChatKey,
        at address: MessageAddress,
        for viewpoint: Viewpoint?
    ) throws -> Packed<MessageLink>? {
        let known =
            if let viewpoint {
                try visibleRecord(id, in: chat, for: viewpoint.user, above: viewpoint.floor)
            } else {
                try record(id, in: chat)
            }
        guard let original = known?.fitting(limits), original.status != .removed
        else { return nil }
        return Packed(
            MessageLink(
                type: .reply,
                chatID: address.chatID,
                message: original.message(at: address, link: nil, previous: nil),
                messageID: id
            )
        )
    }
}
