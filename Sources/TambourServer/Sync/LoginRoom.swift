import TambourProtocol

/// What a reply to LOGIN has room for, and what it leaves for later.
struct LoginRoom {
    /// How many more it may take.
    var bytes: Int
    /// The mark that the client gets: nothing up to it is missing, but what `more` names.
    var time: Int64
    /// Whether the client reads `more`.
    let asksForMore: Bool
    var more: [SyncRange] = []

    /// Takes what fits of changes into a part of the room: the newest ones where the client can ask for the
    /// others, else the oldest, and the client's mark stays below the others.
    ///
    /// - Parameters:
    ///   - changed: the newest change first, each with its clock.
    ///   - mark: after which they are; nil for everything, and that is not left to be asked for.
    ///   - part: which part of the room they may fill: half of it, a quarter. Only changes of one commit
    ///     take more, since a commit is not split.
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

    /// Takes the newest changes that fit, whole commits, for a client that asks for more: nothing where one
    /// commit alone does not fit.
    ///
    /// - Parameters:
    ///   - changed: the newest change first, each with its clock.
    ///   - mark: after which they are, 0 for all.
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

    /// Notes that changes after `mark` and up to `rest` are left.
    mutating func leave(_ kind: SyncKind, since mark: Int64, upTo rest: Int64) {
        if rest > mark { more.append(SyncRange(kind: kind, since: mark, upTo: rest)) }
    }
}
