package import TambourProtocol

/// What one request may still read while it looks for what it wants.
///
/// A read that may find nothing counts every row that it looks at. It stops when nothing is left, and its
/// reply says where the next request goes on.
package struct ScanBudget {
    /// The number of rows left, of whatever table.
    private(set) package var rows: Int
    /// The number of bytes left to take apart: texts, attachments, forwards.
    private(set) package var bytes: Int

    package init(_ limits: Limits) {
        rows = limits.maxScannedRows
        bytes = limits.maxScannedBytes
    }

    /// Whether too little is left for another look.
    package var isSpent: Bool { rows < Self.leastRows || bytes <= 0 }

    /// The rows that it takes to find the place of a look.
    private static let leastRows = 8

    mutating func take(rows: Int, bytes: Int = 0) {
        self.rows -= rows
        self.bytes -= bytes
    }

    /// The number of rows that one look may read; at least one, so that each look gets somewhere.
    func share(atMost rows: Int) -> Int { max(1, min(rows, self.rows)) }
}
