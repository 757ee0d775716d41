import TambourProtocol

/// A cache that recognizes most new client ids without reading the disk.
///
/// Clients count their ids up or take them from the clock, so a new id is larger than nearly all
/// existing ones. The cache holds every (cid, sender) of the store whose cid is above `bound` and
/// below `ceiling`, and perhaps some from rolled-back batches. A pair in that range that it does
/// not hold is not in the store either.
struct RecentClientIDs {
    private struct Entry: Hashable {
        let cid: Int64
        let sender: UserID
    }

    /// Microseconds since 1970 until the year 2041. Ids from here on are random, and so many of
    /// them would displace those of the clock. It is constant: if it moved, the cache would lack
    /// ids admitted before.
    static let ceiling: Int64 = 1 << 51

    private let kept: Int
    private var entries: Set<Entry> = []
    /// Nil while all ids fit.
    private var bound: Int64?

    /// - Parameters:
    ///   - newest: the pairs with the `kept` largest cids of the store below the ceiling, largest
    ///     first.
    ///   - kept: the minimum number of pairs to hold; at twice that number the smaller half is
    ///     dropped.
    init(newest: [(cid: Int64, sender: UserID)], kept: Int) {
        self.kept = kept
        entries.reserveCapacity(newest.count)
        for pair in newest { entries.insert(Entry(cid: pair.cid, sender: pair.sender)) }
        // Other pairs may share the last one's cid.
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
