import GRDB
import TambourProtocol

/// What the marks of the next login promise but the store does not hold yet: ranges of changes.
extension StoreTransaction {
    /// Stores a range, in place of an earlier one of the same kind and mark.
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

    /// Forgets the ranges without an end: a login continues where they began.
    func forgetOpenRanges() throws {
        try execute("DELETE FROM sync_range WHERE upTo = ?", [SyncRange.openEnd])
    }
}

extension StoreReading {
    /// The range to request next: the newest one; those without an end come last.
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
    /// The end of the range that is requested last: the changes since the login.
    static let openEnd = Int64.max
}
