import TambourProtocol

/// Shortens lists of changes. A shortened list never contains only a part of a commit.
///
/// Lists begin with the newest change. Each change has its commit time.
enum Commits {
    /// Returns the oldest changes that fit `bytes`, and the commit time up to which the result is
    /// complete.
    static func oldest<Item>(
        _ changed: [(item: Item, changed: Int64)],
        bytes: Int,
        size: (Item) -> Int
    ) -> (items: [Item], complete: Int64) {
        var bytes = bytes
        let firstLeftOut = changed.last { change in
            bytes -= size(change.item)
            return bytes < 0
        }
        guard let cut = firstLeftOut?.changed else { return (changed.map(\.item), .max) }
        let before = changed.filter { $0.changed < cut }
        guard before.isEmpty else { return (before.map(\.item), cut - 1) }
        // The oldest commit alone exceeds the limit. Return it anyway, because a commit is never
        // split.
        return (changed.filter { $0.changed == cut }.map(\.item), cut)
    }

    /// Returns the newest changes, at most `count` of them and at most `bytes` long. Also returns
    /// the commit time up to which changes are omitted; 0 when no change is omitted.
    static func newest<Item>(
        _ changed: [(item: Item, changed: Int64)],
        count: Int,
        bytes: Int,
        size: (Item) -> Int
    ) -> (items: [Item], rest: Int64) {
        var bytes = bytes
        let firstLeftOut = changed.enumerated().first { place, change in
            bytes -= size(change.item)
            return place >= count || bytes < 0
        }
        guard let cut = firstLeftOut?.element.changed else { return (changed.map(\.item), 0) }
        let after = changed.filter { $0.changed > cut }
        guard after.isEmpty else { return (after.map(\.item), cut) }
        return (changed.filter { $0.changed == cut }.map(\.item), cut - 1)
    }
}
