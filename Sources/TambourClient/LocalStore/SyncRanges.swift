import GRDB
import TambourProtocol

/// Ranges of changes that the store still lacks. The next login does not return these changes,
/// because its marks are later.
extension StoreTransaction {
    /// Stores a range, and replaces an earlier range of the same kind with the same `since`.
    func put(_ range: SyncRange) throws {
        try execute(
            "INSERT OR REPLACE INTO sync_range VALUES (?, ?, ?)",
            ["\(range.kind.name)", range.since, range.upTo]
        )
    }

    func remove(_ range: SyncRange) throws {
        try execute(
            "DELETE FROM sync_range WHERE kind = ? AND since = ?",
            ["\(range.kind.name)", range.since]
        )
    }

    func forgetRanges(of kind: SyncKind) throws {
        try execute("DELETE FROM sync_range WHERE kind = ?", ["\(kind.name)"])
    }

    /// Discards the open-ended ranges. The new login covers the changes since the start of these
    /// ranges.
    func forgetOpenRanges() throws {
        try execute("DELETE FROM sync_range WHERE upTo = ?", [SyncRange.openEnd])
    }
}

extension StoreReading {
    /// Returns the range to request next: the newest range, or an open-ended range if no other
    /// range is left.
    func nextRange() throws -> SyncRange? {
        try row(
            "SELECT kind, since, upTo FROM sync_range ORDER BY upTo = ?, upTo DESC LIMIT 1",
            [SyncRange.openEnd]
        ).map { row in
            let kind: String = row["kind"]
            return SyncRange(
                kind: SyncKind(name: Text(kind)),
                since: row["since"],
                upTo: row["upTo"]
            )
        }
    }

    /// Whether changes of a kind are missing.
    func hasRanges(of kind: SyncKind) throws -> Bool {
        try exists("SELECT 1 FROM sync_range WHERE kind = ?", ["\(kind.name)"])
    }
}

extension SyncRange {
    /// The end of the open-ended range of changes since the login, which is requested last.
    static let openEnd = Int64.max
}
