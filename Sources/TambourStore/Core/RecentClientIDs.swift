import TambourProtocol

/// A cache that recognizes most new client ids without reading the disk.
///
/// Clients count their ids up or derive them from the clock, so a new id is larger than nearly all
/// existing ids. The cache holds every stored pair (cid, sender) with a cid above `bound` and below
/// `ceiling`, and perhaps pairs from rolled-back batches. A pair in that range that the cache does
/// not hold is not in the store.
struct RecentClientIDs {
    private struct Entry: Hashable {
        let cid: Int64
        let sender: UserID
    }

    /// The number of microseconds from 1970 to the year 2041. Larger ids are random; caching them
    /// would displace the ids that come from the clock. The ceiling is constant: if it rose, the
    /// cache would lack stored ids between the two values.
    static let ceiling: Int64 = 1 << 51

    private let kept: Int
    private var entries: Set<Entry> = []
    /// The cache may lack pairs with cids up to this one; nil while it holds all pairs below
    /// `ceiling`.
    private var bound: Int64?

    /// - Parameters:
    ///   - newest: the stored pairs with the `kept` largest cids below the ceiling, largest first.
    ///   - kept: the number of pairs to keep. At twice that number, the cache drops the pairs with
    ///     the smaller cids.
    init(newest: [(cid: Int64, sender: UserID)], kept: Int) {
        self.kept = kept
        entries.reserveCapacity(newest.count)
        for pair in newest { entries.insert(Entry(cid: pair.cid, sender: pair.sender)) }
        // Pairs outside the list may have the same cid as the last pair.
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
