import TambourProtocol
import TambourStore

/// Sends a delta in parts, the newest change first, to clients with the capability `sync-more`.
extension LoginSync {
    /// A changed chat, or the tombstone of a left chat.
    private enum ChatChange {
        case view(ChatView)
        case left(Chat)
    }

    private typealias Changes = [(item: ChatChange, changed: Int64)]

    /// Answers `SYNC_MORE` (1031): returns the changes in a range, the newest first.
    ///
    /// - Throws: `proto.payload` for an unknown kind, a count below 1, or a negative cursor.
    /// - Note: A query.
    func syncMore(
        _ request: SyncMoreRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> SyncMoreReply {
        guard request.count ?? 1 > 0 else { throw RequestError.protoPayload("/count: below 1") }
        guard request.since >= 0 else { throw RequestError.protoPayload("/since: below 0") }
        guard request.upTo >= 0 else { throw RequestError.protoPayload("/upTo: below 0") }
        let (since, end) = (request.since, request.upTo)
        let (count, bytes) = (count(request.count), caller.replyBudget)
        var reply = SyncMoreReply()
        let rest: Int64
        switch request.kind {
        case .chats:
            let newest = try newestChats(
                of: caller,
                since: since,
                upTo: end,
                count: count,
                bytes: bytes,
                in: snapshot
            )
            guard let newest else { return SyncMoreReply(resync: true) }
            (reply.chats, rest) = newest
        case .contacts:
            let changed = try snapshot.changedContacts(of: caller.userID, since: since, upTo: end)
            let newest = Commits.newest(
                changed.map { ($0, $0.changed) },
                count: count,
                bytes: bytes,
                size: \.wireSizeEstimate
            )
            reply.contacts = users(newest.items, room: bytes)
            rest = newest.rest
        case .drafts:
            let changed = try snapshot.changedDrafts(of: caller.userID, since: since, upTo: end)
            let newest = Commits.newest(
                changed.map { ($0, $0.ct) },
                count: count,
                bytes: bytes,
                size: \.wireSizeEstimate
            )
            reply.drafts = drafts(newest.items, of: caller, since: since)
            rest = newest.rest
        case .other:
            throw RequestError.protoPayload("/kind: unknown")
        }
        reply.upTo = rest > since ? rest : nil
        return reply
    }

    /// Returns the number of entries for a request that asks for `asked` entries.
    func count(_ asked: Int64?) -> Int {
        Int(clamping: min(max(1, asked ?? Int64(limits.chatsPageSize)), Int64(limits.maxChatsPage)))
    }

    /// Returns about `count` chats that changed, or that the caller left, after `since` and up to
    /// `end`. The chats have at most `bytes` in total, and the newest change comes first.
    ///
    /// - Returns: the chats, and the commit time up to which changes are omitted (0 if none are
    ///   omitted). Nil when a single commit exceeds `bytes`.
    func newestChats(
        of caller: Caller,
        since: Int64,
        upTo end: Int64 = .max,
        count: Int,
        bytes: Int,
        in snapshot: ReadTransaction
    ) throws -> (items: [Chat], rest: Int64)? {
        let user = caller.userID
        let views = try wholeCommits(since, end, count) { since, end, limit in
            try snapshot.changedViews(for: user, since: since, upTo: end, limit: limit)
                .map { (.view($0), $0.modified) }
        }
        let left = try wholeCommits(since, end, count) { since, end, limit in
            try snapshot.leftChats(of: user, since: since, upTo: end, limit: limit)
                .map { (.left($0.chat), $0.changed) }
        }
        // Up to this time, at least one of the two lists is incomplete. Use only later changes.
        let unknown = max(views.rest, left.rest)
        let known = (views.items + left.items).filter { $0.changed > unknown }
            .sorted { $0.changed > $1.changed }
        let clocks = known.map { ($0, $0.changed) }
        let few = Commits.newest(clocks, count: count, bytes: .max) { _ in 0 }
        var chats: [(item: Chat, changed: Int64)] = []
        let pageEnd = snapshot.pageEnd
        // The commit time of the newest change that is omitted because the page ends early. 0 if
        // the page does not end early. A page never ends within a commit.
        var unread: Int64 = 0
        for (item, changed) in few.items {
            if snapshot.rowsRead >= pageEnd, let last = chats.last, last.changed != changed {
                unread = changed
                break
            }
            switch item {
            case .view(let view): chats.append((try snapshot.chat(view), changed))
            case .left(let chat): chats.append((chat, changed))
            }
        }
        let newest = Commits.newest(chats, count: count, bytes: bytes, size: \.wireSizeEstimate)
        guard newest.items.reduce(0, { $0 + $1.wireSizeEstimate }) <= bytes else { return nil }
        return (newest.items, max(newest.rest, few.rest, unread, unknown))
    }

    /// Reads about `count` changes after `since` and up to `end`, in whole commits.
    ///
    /// - Parameter read: returns the changes after one commit time and up to another. The limit
    ///   applies only to changes of small chats, and `read` returns the newest of them. It returns
    ///   all changes of big chats.
    private func wholeCommits(
        _ since: Int64,
        _ end: Int64,
        _ count: Int,
        read: (_ since: Int64, _ end: Int64, _ limit: Int) throws -> Changes
    ) throws -> (items: Changes, rest: Int64) {
        let found = try read(since, end, count + 1)
        let clocks = found.map(\.changed).sorted(by: >)
        guard clocks.count > count else { return (found, 0) }
        let cut = clocks[count]
        let after = found.filter { $0.changed > cut }
        guard after.isEmpty else { return (after, cut) }
        return (try read(cut - 1, cut, .max), cut - 1)
    }
}
