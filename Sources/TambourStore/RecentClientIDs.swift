import TambourProtocol

/// Knows of most client ids that they are new without a look at the disk.
///
/// Clients count their ids up or take them from the clock, so a new one lies above nearly all there
/// are. This holds every (cid, sender) of the store whose cid is above `bound` and below `ceiling`, and
/// perhaps some that a rolled-back batch left: what it does not hold there, the store does not hold either.
struct RecentClientIDs {
    private struct Entry: Hashable {
        let cid: Int64
        let sender: UserID
    }

    /// Microseconds since 1970 until the year 2041. Ids from here on are random, and so many of them would
    /// leave no room for those of the clock. A constant: one that moves would forget what it has let in.
    static let ceiling: Int64 = 1 << 51

    private let kept: Int
    private var entries: Set<Entry> = []
    /// Nil while everything there is fits.
    private var bound: Int64?

    /// - Parameters:
    ///   - newest: the pairs with the `kept` largest cids of the store below the ceiling, largest first.
    ///   - kept: how many to hold at least; at twice as many the smaller half goes.
    init(newest: [(cid: Int64, sender: UserID)], kept: Int) {
        self.kept = kept
        entries.reserveCapacity(newest.count)
        for pair in newest { entries.insert(Entry(cid: pair.cid, sender: pair.sender)) }
        // Others may share the last one's cid.
        if newest.count >= kept { raiseBound(to: newest.last?.cid) }
    }

    /// True only if `sender` has never stored anything under `cid`.
    func isCertainlyNew(_ cid: Int64, of sender: UserID) -> Bool {
        guard cid < Self.ceiling else { return false }
        if let bound, cid <= bound { return false }
        return !entries.contains(Entry(cid: cid, sender: sender))
    }

    mutating func insert(_ cid: Int64, of sender: UserID) {
        guard cid < Self.ceiling else { return }
        if let bound, cid <= bound { return }
        entries.insert(Entry(cid: cid, sender: sender))
        guard entries.count >= 2 * kept else { return }
        raiseBound(to: entries.map(\.cid).sorted(by: >)[kept])
    }

    private mutating func raiseBound(to cid: Int64?) {
        guard let cid else { return }
        bound = cid
        entries = entries.filter { $0.cid > cid }
    }
}
