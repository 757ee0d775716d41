package import TambourProtocol

/// The numbers of rows and bytes that one request may still read during a search.
///
/// A search may scan many rows and find nothing, so it counts every row that it scans. When the
/// budget is spent, the search stops. Its reply then contains the position at which the next
/// request starts.
package struct ScanBudget {
    /// The remaining number of rows, across all tables.
    private(set) package var rows: Int
    /// The remaining number of bytes to decode, such as texts, attachments and forwards.
    private(set) package var bytes: Int

    package init(_ limits: Limits) {
        rows = limits.maxScannedRows
        bytes = limits.maxScannedBytes
    }

    /// Whether the budget is too small for another lookup.
    package var isSpent: Bool { rows < Self.leastRows || bytes <= 0 }

    /// The number of rows that a lookup needs to find its first result.
    private static let leastRows = 8

    mutating func take(rows: Int, bytes: Int = 0) {
        self.rows -= rows
        self.bytes -= bytes
    }

    /// Returns the number of rows that one lookup may read. It is at least one, so that each lookup
    /// makes progress.
    func share(atMost rows: Int) -> Int { max(1, min(rows, self.rows)) }
}
