package import TambourEvents
package import TambourProtocol
import TambourSQL

extension WriteTransaction {
    /// Returns the message that this batch or an earlier batch stored for the sender, device, chat
    /// and cid.
    ///
    /// - Parameter chat: the chat; nil to look for the message that created a group.
    package func sent(
        cid: Int64,
        from sender: UserID,
        on device: DeviceID,
        in chat: ChatState?
    ) throws -> MessageRecord? {
        if recentClientIDs.isCertainlyNew(cid, of: sender) { return nil }
        let key = SendKey(sender: sender, device: device, cid: cid, chat: chat?.key)
        if let index = pendingKeys[key] { return pending[index] }
        guard let chat else {
            return try reader.creations(cid: cid, sender: sender, device: device).first
        }
        return try reader.records(cid: cid, sender: sender, device: device, in: chat.key)
            // In a group or channel, one other message may have the same cid as the message that
            // created the chat.
            .first { !chat.kind.isJoined || $0.number > 1 }
    }

    /// Returns the chat that contains `record`, without checking membership.
    package func chat(holding record: MessageRecord) throws -> ChatState? {
        try chat(record.chat)
    }

    /// Appends a message. The message's time is the commit time, or one millisecond after the last
    /// message of the chat, whichever is later. The message counts as read by its sender.
    ///
    /// - Returns: the stored row and the id of the previous message in the chat.
    package func append(
        _ content: MessageContent,
        to chat: ChatState,
        from sender: UserID,
        on device: DeviceID
    ) throws -> (record: MessageRecord, previous: MessageID?) {
        guard let member = try member(sender, of: chat) else {
            throw ImpossibleRow("member of chat \(chat.key.rawValue): user_id", sender.rawValue)
        }
        writes += 1
        if let post = chat.post {
            try storeComments(chat, on: post)
            try count(comments: 1, on: post)
            try noteCommenter(sender, in: chat)
        }
        let previous = chat.head.number == 0 ? nil : chat.head.id
        let time = max(ct, chat.head.id.timeMs + 1)
        counter &+= 1
        let record = MessageRecord(
            chat: chat.key,
            id: MessageID(timeMs: time, counter: counter),
            number: chat.head.number + 1,
            sender: sender,
            cid: content.cid,
            device: device,
            status: .plain,
            updated: 0,
            replyTo: content.replyTo,
            text: content.text,
            elements: content.elements,
            attaches: content.attaches,
            forward: content.forward,
            poll: content.poll
        )
        guard record.id > chat.head.id, record.number > chat.head.number else {
            throw ImpossibleRow("message \(chat.key.rawValue) \(chat.head.id): n", chat.head.number)
        }
        if device != .server {
            let isCreation = chat.kind.isJoined && record.number == 1
            let key = SendKey(
                sender: sender,
                device: device,
                cid: content.cid,
                chat: isCreation ? nil : chat.key
            )
            pendingKeys[key] = pending.count
            recentClientIDs.insert(content.cid, of: sender)
        }
        pending.append(record)
        chat.hasPendingMessages = true
        try introduceNamed(in: record, of: chat)
        chat.head = ChatHead(id: record.id, number: record.number)
        guard chat.kind != .comments else {
            touch(chat)
            return (record, previous)
        }
        if record.number % SearchIndex.step == 0 { searchBacklog.chats.insert(chat.key) }
        member.setRead(time: time, number: record.number)
        // Raise the visible read mark even if the sender hides it, because writing a message
        // reveals the sender's presence anyway.
        member.setShown(time)
        save(.marks, of: member, in: chat)
        touch(chat)
        touch(member, in: chat)
        return (record, previous)
    }

    /// Returns a message of the chat as `user` sees it; nil if the message is removed, hidden or
    /// unknown.
    package func message(
        _ id: MessageID,
        in chat: ChatState,
        visibleTo user: UserID
    ) throws -> MessageRecord? {
        if chat.hasPendingMessages { try flushMessages() }
        guard let member = try member(user, of: chat) else { return nil }
        return try reader.visibleRecord(id, in: chat.key, for: user, above: member.floor)
    }

    /// Returns the stored row of a message, even if the message is removed.
    package func record(_ id: MessageID, in chat: ChatState) throws -> MessageRecord? {
        if chat.hasPendingMessages { try flushMessages() }
        return try reader.record(id, in: chat.key)
    }

    package func previousID(of record: MessageRecord, in chat: ChatState) throws -> MessageID? {
        if chat.hasPendingMessages { try flushMessages() }
        return try reader.previousID(of: record.id, in: chat.key)
    }

    /// Returns the message object for the wire. If `viewer` is nil, the object is for all members.
    /// The caller must then exclude the members who may not see the answered message; `outsiders`
    /// returns them.
    package func message(
        _ record: MessageRecord,
        in chat: ChatState,
        previous: MessageID? = nil,
        for viewer: UserID? = nil
    ) throws -> Message {
        if record.replyTo != nil, chat.hasPendingMessages { try flushMessages() }
        let viewpoint = try viewer.map { viewer in
            // A former member does not see the answered message.
            Viewpoint(
                user: viewer,
                floor: try member(viewer, of: chat)?.floor ?? MessageID(.max)
            )
        }
        return try reader.message(
            record,
            at: chat.address,
            previous: previous,
            for: viewpoint
        )
    }

    /// Replaces the fields of a message that an edit may change.
    ///
    /// - Parameters:
    ///   - old: the current row.
    ///   - new: the edited row, with the same id.
    /// - Returns: the stored row, with the new status and the time of the change.
    package func edit(
        _ old: MessageRecord,
        to new: MessageRecord,
        in chat: ChatState
    ) throws -> MessageRecord {
        if chat.hasPendingMessages { try flushMessages() }
        writes += 1
        var edited = new
        edited.status = .edited
        edited.updated = nextUpdate(of: old)
        try reindex(old, as: edited)
        try store.messages.edit.run {
            $0.bind(1, old.chat.rawValue)
            $0.bind(2, old.id.rawValue)
            $0.bind(3, ct)
            $0.bindWords(4, edited.text)
            $0.bindBlob(5, edited.elements?.bytes)
            $0.bindBlob(6, edited.attaches?.bytes)
            $0.bind(7, edited.poll?.rawValue ?? 0)
            $0.bind(8, edited.updated)
        }
        try introduceNamed(in: edited, of: chat)
        if let poll = old.pollAttach, poll.pollID != edited.pollAttach?.pollID {
            try dropVotes(in: old.id, of: old.chat)
        }
        touch(chat)
        return edited
    }

    /// Returns the time for a change of a message. It is never before the time at which the message
    /// was sent. When many messages are sent within a millisecond, their times are ahead of the
    /// clock.
    func nextUpdate(of record: MessageRecord) -> Int64 {
        max(nextUpdate(after: record.updated), record.id.timeMs)
    }

    /// Returns the time for a change that follows a change at `last`. It is always later than
    /// `last`, even in the same transaction, because clients keep the later of two versions.
    func nextUpdate(after last: Int64) -> Int64 { max(ct, last + 1) }

    /// Deletes messages for all users. Clears the content of the messages and keeps their rows.
    package func remove(_ records: [MessageRecord], in chat: ChatState) throws {
        guard !records.isEmpty else { return }
        if chat.hasPendingMessages { try flushMessages() }
        writes += 1
        chat.removals += 1
        try noteStale(records.map(\.number), in: chat.key)
        for record in records {
            try store.messages.remove.run {
                $0.bind(1, chat.key.rawValue)
                $0.bind(2, record.id.rawValue)
                $0.bind(3, ct)
                $0.bindWords(4, Text.empty)
            }
        }
        try dropReactions(to: records.map(\.id), in: chat)
        try noteRemoved(records.map(\.id), from: chat)
        touch(chat)
    }

    /// Updates the data that depends on the deleted messages: reduces the number of comments, and
    /// schedules the deletion of the comments on deleted posts.
    private func noteRemoved(_ ids: [MessageID], from chat: ChatState) throws {
        if let post = chat.post { try count(comments: -ids.count, on: post) }
        try purgeComments(on: ids, of: chat)
    }

    /// Deletes, for all users, the messages after `first` up to and including `last`.
    ///
    /// - Parameter sender: the user whose messages are deleted; events stay. Nil deletes all
    ///   messages and events.
    /// - Returns: the ids of the deleted messages, ascending.
    package func remove(
        after first: MessageID,
        upTo last: MessageID,
        sentBy sender: UserID?,
        in chat: ChatState
    ) throws -> [MessageID] {
        try remove(chat, [first.rawValue, last.rawValue, sender?.rawValue ?? 0])
    }

    /// Deletes messages after `first` up to and including `last` for all users. Deletes only the
    /// messages of the senders whom a pending purge names.
    func removePurged(
        after first: MessageID,
        upTo last: MessageID,
        in chat: ChatState
    ) throws -> [MessageID] {
        try remove(chat, [first.rawValue, last.rawValue, MessageStatements.purgedSenders])
    }

    /// Deletes messages of a chat without members. Does not delete the words of these messages from
    /// the search index.
    func removeDeserted(
        after first: MessageID,
        upTo last: MessageID,
        in chat: ChatState
    ) throws {
        _ = try removeRows(chat, [first.rawValue, last.rawValue, 0])
    }

    /// - Parameter bounds: the parameters of `MessageStatements.inRange` after the first parameter,
    ///   the chat.
    private func remove(_ chat: ChatState, _ bounds: [Int64]) throws -> [MessageID] {
        let removed = try removeRows(chat, bounds)
        try noteStale(removed.map(\.number), in: chat.key)
        return removed.map(\.id)
    }

    private func removeRows(
        _ chat: ChatState,
        _ bounds: [Int64]
    ) throws -> [(id: MessageID, number: Int64)] {
        func bindRange(_ statement: any SQLStatement) {
            statement.bind(1, chat.key.rawValue)
            for (index, bound) in bounds.enumerated() { statement.bind(2 + index, bound) }
        }
        try flush()
        let removed = try store.messages.inRange.all(bindRange) {
            (id: MessageID($0.int(.id)), number: $0.int(.n))
        }
        guard !removed.isEmpty else { return [] }
        writes += 1
        chat.removals += 1
        try store.messages.removeInRange.run {
            bindRange($0)
            $0.bind(2 + bounds.count, ct)
            $0.bindWords(3 + bounds.count, Text.empty)
        }
        try dropReactions(to: removed.map(\.id), in: chat)
        try noteRemoved(removed.map(\.id), from: chat)
        touch(chat)
        return removed
    }

    /// Returns the number of messages of a chat that `user` has deleted for themselves.
    package func hiddenCount(in chat: ChatState, of user: UserID) throws -> Int {
        try store.messages.hiddenCount.oneCount {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.key.rawValue)
        }
    }

    /// Deletes messages for `user` only.
    package func hide(_ ids: [MessageID], in chat: ChatState, for user: UserID) throws {
        guard !ids.isEmpty, let member = try member(user, of: chat) else { return }
        writes += 1
        if chat.post == nil { member.forgetUnread() } else { try noteCommenter(user, in: chat) }
        for id in ids {
            try store.messages.hide.run {
                $0.bind(1, user.rawValue)
                $0.bind(2, chat.key.rawValue)
                $0.bind(3, id.rawValue)
                $0.bind(4, ct)
            }
        }
        touch(member, in: chat)
    }

    // MARK: - Read marks

    /// Records that `user` has read up to `time` (Unix milliseconds). Also raises the mark that
    /// other users see, unless the user hides this mark or one user of a dialog has blocked the
    /// other. The visible mark may therefore be older than the private mark.
    package func raiseRead(to time: Int64, of user: UserID, in chat: ChatState) throws {
        guard let member = try member(user, of: chat) else { return }
        if time > member.readTime { try setRead(time, of: member, in: chat) }
        if time > member.shownTime, !chat.isShut,
            try reader.showsReadMark(of: user)
        {
            setShown(time, of: member, in: chat)
        }
    }

    /// Marks the messages after `time` (Unix milliseconds) as unread for the user. Other users
    /// still see these messages as read.
    package func lowerRead(to time: Int64, of user: UserID, in chat: ChatState) throws {
        guard let member = try member(user, of: chat) else { return }
        // Messages that are hidden from the member count as read.
        let time = max(time, member.floor.rawValue == 0 ? time : member.floor.timeMs)
        if time < member.readTime { try setRead(time, of: member, in: chat) }
    }

    /// Sets the private mark. Messages after this mark count as unread.
    private func setRead(_ time: Int64, of member: MemberState, in chat: ChatState) throws {
        let number: Int64
        if time >= chat.head.id.timeMs {
            number = chat.head.number
        } else {
            if chat.hasPendingMessages { try flushMessages() }
            number = try reader.head(of: chat.key, at: time).number
        }
        writes += 1
        member.setRead(time: time, number: number)
        save(.marks, of: member, in: chat)
        touch(member, in: chat)
    }

    /// Sets the mark that other users see. In a small chat, the rows of all other members change,
    /// because each member sees the mark.
    private func setShown(_ time: Int64, of member: MemberState, in chat: ChatState) {
        writes += 1
        member.setShown(time)
        save(.marks, of: member, in: chat)
        guard !chat.isBig else { return }
        for other in chat.members.values where other !== member { touch(other, in: chat) }
    }

    /// Returns the number of messages of the chat that `user` has not read; 0 for comments.
    package func unread(of user: UserID, in chat: ChatState) throws -> Int64 {
        guard chat.kind != .comments, let member = try member(user, of: chat) else { return 0 }
        if let known = member.unread(in: chat) { return known }
        if chat.hasPendingMessages { try flushMessages() }
        let unread = try reader.unread(
            in: chat.key,
            viewer: user,
            readTime: member.readTime,
            readNumber: member.readNumber,
            head: chat.head
        )
        member.keep(unread: unread, in: chat)
        return unread
    }

    /// Records that this batch notifies members of the chat of a message.
    package func noteTold(_ chat: ChatState) {
        guard chat.kind != .comments else { return }
        told.insert(chat.key)
    }

    /// Returns the unread counts and the read marks at the end of this batch. Contains the chats in
    /// which the batch notified members of messages.
    ///
    /// If a member's unread count is not cached, the count needs a query. After `maxUnreadCounts`
    /// queries, further members without a cached count are omitted.
    /// - Parameter choose: receives the members of a chat, and returns the members to notify.
    package func counters(of choose: ([UserID]) -> [UserID]) throws -> [Event] {
        defer { told = [] }
        var looks = 0
        return try told.sorted().compactMap { key in
            guard let chat = chats[key] else { return nil }
            var readers: [UserID: ReadCounters.Reader] = [:]
            for user in choose(chat.memberIDs) {
                if chat.members[user]?.unread(in: chat) == nil {
                    looks += 1
                    guard looks <= store.limits.maxUnreadCounts else { continue }
                }
                guard let member = try member(user, of: chat) else { continue }
                let unread = try unread(of: user, in: chat)
                readers[user] = .init(mark: member.readTime, unread: unread)
            }
            guard !readers.isEmpty else { return nil }
            return .counters(ReadCounters(chatID: chat.wireID, readers: readers))
        }
    }
}
