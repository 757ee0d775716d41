import TambourProtocol

/// A cache that recognizes most new client ids (cids) without reading the disk.
///
/// Clients count their cids upwards or compute them from the clock. A new cid is therefore larger
/// than nearly all existing cids. The cache contains every stored pair (cid, sender) with a cid
/// above `bound` and below `ceiling`. It may also contain pairs from batches that were rolled back.
/// If a pair with such a cid is not in the cache, it is not in the store.
struct RecentClientIDs {
    private struct Entry: Hashable {
        let cid: Int64
        let sender: UserID
    }

    /// The number of microseconds from 1970 to the year 2041. Larger ids are random; if the cache
    /// contained them, they would displace the ids that come from the clock. The ceiling is
    /// constant: if it rose, the cache would not contain stored ids between the old value and the
    /// new value.
    static let ceiling: Int64 = 1 << 51

    private let kept: Int
    private var entries: Set<Entry> = []
    /// The cache may lack pairs with this cid or a smaller cid. Nil while the cache contains all
    /// pairs below `ceiling`.
    private var bound: Int64?

    /// - Parameters:
    ///   - newest: the stored pairs with the `kept` largest cids below the ceiling, largest first.
    ///   - kept: the number of pairs to keep. When the cache contains twice this number, it removes
    ///     the pairs with the smaller cids.
    init(newest: [(cid: Int64, sender: UserID)], kept: Int) {
        self.kept = kept
        entries.reserveCapacity(newest.count)
        for pair in newest { entries.insert(Entry(cid: pair.cid, sender: pair.sender)) }
        // Stored pairs that are not in the list may have the same cid as the last pair of the list.
        if newest.count >= kept { raiseBound(to: newest.last?.cid) }
    }

    /// Returns true only if the store certainly contains no `cid` of `sender`.
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
