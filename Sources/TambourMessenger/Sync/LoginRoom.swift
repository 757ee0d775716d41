import TambourProtocol

/// The room that is left in a LOGIN reply, and the ranges of changes that the reply omits.
struct LoginRoom {
    /// The number of bytes that are left.
    var bytes: Int
    /// The client's next cursor. The reply is complete up to this time, except for the ranges in
    /// `more`.
    var time: Int64
    /// Whether the client reads `more`.
    let asksForMore: Bool
    var more: [SyncRange] = []

    /// Takes the changes that fit a part of the room. Clients that read `more` get the newest
    /// changes. Other clients get the oldest changes, and their next cursor is before the omitted
    /// changes.
    ///
    /// - Parameters:
    ///   - changed: the newest change first, each with its commit time.
    ///   - mark: the cursor, which is before all changes; nil for a full list. For a full list,
    ///     every client gets the oldest entries, and `more` gets no range.
    ///   - part: the divisor of the room. 2 means half of the room, 4 a quarter. The changes of a
    ///     single commit may take more room, because a commit is not split.
    mutating func take<Item>(
        _ kind: SyncKind,
        _ changed: [(item: Item, changed: Int64)],
        since mark: Int64?,
        part: Int,
        size: (Item) -> Int
    ) -> [Item] {
        let taken: [Item]
        if asksForMore, let mark {
            let newest = Commits.newest(changed, count: .max, bytes: bytes / part, size: size)
            leave(kind, since: mark, upTo: newest.rest)
            taken = newest.items
        } else {
            let oldest = Commits.oldest(changed, bytes: bytes / part, size: size)
            time = min(time, oldest.complete)
            taken = oldest.items
        }
        bytes -= min(taken.reduce(0) { $0 + size($1) }, bytes / part)
        return taken
    }

    /// Takes the newest changes that fit, for a client that reads `more`. Takes only whole commits,
    /// and nothing if the newest commit does not fit.
    ///
    /// - Parameters:
    ///   - changed: the newest change first, each with its commit time.
    ///   - mark: the cursor, which is before all changes; 0 for a full list.
    mutating func takeNewest<Item>(
        _ kind: SyncKind,
        _ changed: [(item: Item, changed: Int64)],
        since mark: Int64,
        size: (Item) -> Int
    ) -> [Item] {
        var left = bytes
        let fitting = changed.prefix { change in
            left -= size(change.item)
            return left >= 0
        }
        guard fitting.count < changed.count else { return fitting.map(\.item) }
        let cut = changed[fitting.count].changed
        leave(kind, since: mark, upTo: cut)
        return fitting.filter { $0.changed > cut }.map(\.item)
    }

    /// Records that the changes after `mark` and up to `rest` are omitted.
    mutating func leave(_ kind: SyncKind, since mark: Int64, upTo rest: Int64) {
        if rest > mark { more.append(SyncRange(kind: kind, since: mark, upTo: rest)) }
    }
}
