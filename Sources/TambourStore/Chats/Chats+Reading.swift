package import TambourProtocol
import TambourSQL

extension ReadTransaction {
    /// Returns the key of the dialog of two users. If both are the same user, returns the key of
    /// this user's saved messages.
    package func pairKey(_ a: UserID, _ b: UserID) throws -> ChatKey? {
        let key = try store.chats.byPair.oneInt {
            $0.bind(1, min(a.rawValue, b.rawValue))
            $0.bind(2, max(a.rawValue, b.rawValue))
        }
        return key.map { ChatKey($0) }
    }

    /// Returns the creation time of a dialog that `user` began after `time`; nil if there is no
    /// such dialog. `place` selects the dialog: 1 is the newest. All times are in Unix
    /// milliseconds.
    package func dialog(begunBy user: UserID, after time: Int64, place: Int) throws -> Int64? {
        try store.chats.begun.oneInt {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
            $0.bind(3, Int64(place - 1))
        }
    }

    /// Returns the chat that `wireID` means for `viewer`; nil if the chat is unknown or the viewer
    /// is not a member.
    package func view(_ wireID: ChatID, for viewer: UserID) throws -> ChatView? {
        guard let key = try key(wireID, for: viewer) else { return nil }
        return try view(key, for: viewer)
    }

    /// Returns the key of the chat that `wireID` means for `viewer`. Does not check whether the
    /// viewer is a member of a group.
    func key(_ wireID: ChatID, for viewer: UserID) throws -> ChatKey? {
        guard let partner = wireID.partner(of: viewer) else { return ChatKey(wireID.rawValue) }
        return try pairKey(viewer, partner)
    }

    package func view(_ key: ChatKey, for viewer: UserID) throws -> ChatView? {
        try store.chats.view.one {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, key.rawValue)
        } read: {
            ChatView(row: $0)
        }
    }

    /// Returns the chats that changed for `viewer` after `since` (commit clock): first the small
    /// chats, then the big chats. In each part, the chat with the newest change comes first.
    ///
    /// - Parameters:
    ///   - end: the last included commit clock.
    ///   - limit: the maximum number of small chats.
    package func changedViews(
        for viewer: UserID,
        since: Int64,
        upTo end: Int64 = .max,
        limit: Int = .max
    ) throws -> [ChatView] {
        let small = try store.chats.changedViews.all {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, since)
            $0.bind(3, end)
            $0.bind(4, Int64(limit))
        } read: {
            ChatView(row: $0)
        }
        let big = try store.chats.changedBigViews.all {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, since)
            $0.bind(3, end)
        } read: {
            ChatView(row: $0)
        }
        return small + big
    }

    /// Passes to `take` the groups of which the viewer and all of `users` are members, the most
    /// recently active first.
    ///
    /// - Parameters:
    ///   - cursor: the start of the page.
    ///   - take: receives a group, and adds it to the page. Returns false if the page has no room
    ///     for the group. It must always accept the first group.
    /// - Returns: the start of the next page if the page is full or the request has read its limit
    ///   of rows; nil at the end.
    package func commonGroups(
        of viewer: UserID,
        and users: Set<UserID>,
        from cursor: ChatCursor,
        take: (ChatView) throws -> Bool
    ) throws -> ChatCursor? {
        guard !users.isEmpty else { return nil }
        let skipped = try skippedChats(of: viewer, cursor)
        var scan = ScanBudget(limits)
        // The times of the last event of the chats scanned so far.
        var times: [Int64] = []
        var next: ChatCursor?
        try store.chats.pageOfViews.each {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, cursor.time)
            // Ask for one row more than the limit. If this row exists, more rows follow.
            $0.bind(3, Int64(limits.maxScannedRows) + 1)
            $0.bind(4, Int64(skipped))
        } while: { row in
            let active = row.int(.second(.active))
            let view = ChatView(row: row.first())
            var goesOn = times.isEmpty || !scan.isSpent
            scan.take(rows: 1)
            if goesOn, view.kind == .group,
                try users.allSatisfy({
                    scan.take(rows: 1)
                    return try isMember($0, of: view.key)
                })
            {
                goesOn = try take(view)
            }
            guard goesOn else {
                guard let last = times.last, last == active else {
                    next = ChatCursor(before: times.last ?? .max)
                    return false
                }
                let taken = times.count { $0 == last } + (last == cursor.time ? skipped : 0)
                let left = try chatCount(of: viewer, lastActiveAt: last) - taken
                next = ChatCursor(at: last, remaining: Int64(left))
                return false
            }
            times.append(active)
            return true
        }
        return next
    }

    private func isMember(_ user: UserID, of chat: ChatKey) throws -> Bool {
        try store.members.byID.statement.hasRow {
            $0.bind(1, user.rawValue)
            $0.bind(2, chat.rawValue)
        }
    }

    /// Returns the viewer's partners in the dialogs among the `limit` most recently changed chats.
    /// These chats must have changed after `since` (commit clock). Each partner comes with the last
    /// recorded online time (Unix milliseconds, 0 for never). Omits partners who block the viewer
    /// or hide their presence.
    package func recentPartners(
        of viewer: UserID,
        since: Int64,
        limit: Int
    ) throws -> [(id: UserID, seen: Int64)] {
        try store.chats.recentPartners.all {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, limit)
            $0.bind(3, since)
        } read: {
            (UserID($0.int(.id)), $0.int(.seen))
        }
    }

    /// Counts the messages of the chat that the viewer has not read. Removed and hidden messages do
    /// not count, but at most `maxSubtractedMessages` of each kind are subtracted.
    package func unread(
        in chat: ChatKey,
        viewer: UserID,
        readTime: Int64,
        readNumber: Int64,
        head: ChatHead
    ) throws -> Int64 {
        let candidates = head.number - readNumber
        guard candidates > 0 else { return 0 }
        let read = MessageID.last(at: readTime)
        let removed =
            try store.messages.removedAfter.oneInt {
                $0.bind(1, chat.rawValue)
                $0.bind(2, read.rawValue)
                $0.bind(3, limits.maxSubtractedMessages)
            } ?? 0
        let hidden =
            try store.messages.hiddenAfter.oneInt {
                $0.bind(1, viewer.rawValue)
                $0.bind(2, chat.rawValue)
                $0.bind(3, read.rawValue)
                $0.bind(4, limits.maxSubtractedMessages)
            } ?? 0
        store.noteCounted(Int(clamping: removed + hidden))
        return max(0, candidates - removed - hidden)
    }

    /// Returns the chat object that is sent to `view.viewer`.
    package func chat(_ view: ChatView) throws -> Chat {
        let head = try head(of: view.key)
        var lastMessage: Message?
        var previous: MessageID?
        if head.number > 0,
            let last = try lastVisible(in: view.key, for: view.viewer, above: view.floor)
        {
            lastMessage = try message(last, at: view.address, for: view.viewpoint)
            previous = try previousID(of: last.id, in: view.key)
        }
        let (participants, admins) = try people(of: view)
        var chat = ChatObject(
            id: view.wireID,
            kind: view.kind,
            owner: view.owner,
            created: view.created,
            joined: view.joined,
            modified: view.modified,
            lastEvent: head.number > 0 ? head.id.timeMs : view.created,
            participants: participants,
            details: ChatObject.Details(
                title: view.title,
                description: view.description,
                memberCount: Int(clamping: view.memberCount),
                options: view.options,
                link: view.link,
                isPublic: view.isPublic,
                reactions: view.reactions
            ),
            admins: view.kind.isJoined ? admins : nil,
            messages: ChatObject.Messages(
                last: lastMessage,
                previous: previous,
                pinned: try pinnedMessage(of: view),
                unread: try unread(
                    in: view.key,
                    viewer: view.viewer,
                    readTime: view.readTime,
                    readNumber: view.readNumber,
                    head: head
                )
            )
        )
        // A hidden chat becomes active with any new message.
        if view.hiddenNumber > 0, view.hiddenNumber == head.number { chat.status = .hidden }
        chat.delayed = (view.delayedUpdated, view.delayedFailed)
        return chat.wire
    }

    /// Returns the pinned message; nil without a pin, after its deletion, or if the viewer cannot
    /// see it.
    private func pinnedMessage(of view: ChatView) throws -> Message? {
        guard let id = view.pinned,
            let record = try visibleRecord(id, in: view.key, for: view.viewer, above: view.floor)
        else { return nil }
        return try message(record, at: view.address, for: view.viewpoint)
    }
}
