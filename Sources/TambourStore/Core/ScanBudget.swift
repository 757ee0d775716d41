package import TambourProtocol

/// The rows and bytes that one request may still read while it searches.
///
/// A read that may find nothing counts every row that it scans. It stops when the budget is spent,
/// and its reply says where the next request continues.
package struct ScanBudget {
    /// The number of rows left, across all tables.
    private(set) package var rows: Int
    /// The number of bytes left to decode: texts, attachments, forwards.
    private(set) package var bytes: Int

    package init(_ limits: Limits) {
        rows = limits.maxScannedRows
        bytes = limits.maxScannedBytes
    }

    /// Whether too little is left for another lookup.
    package var isSpent: Bool { rows < Self.leastRows || bytes <= 0 }

    /// The number of rows that a lookup needs to find its start.
    private static let leastRows = 8

    mutating func take(rows: Int, bytes: Int = 0) {
        self.rows -= rows
        self.bytes -= bytes
    }

    /// Returns how many rows one lookup may read; at least one, so that each lookup makes progress.
    func share(atMost rows: Int) -> Int { max(1, min(rows, self.rows)) }
}
