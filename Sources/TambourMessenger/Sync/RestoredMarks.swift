/// Recognises cursors that are older than the restore of a backup.
struct RestoredMarks: Sendable {
    /// The latest cursor that may be older than the last restore; 0 when no backup was ever
    /// restored.
    let last: Int64

    /// Returns whether a client with this cursor may have data that the restored store does not
    /// contain.
    ///
    /// Cursors later than `last` may also come from the store that was replaced. While the wall
    /// clock is far behind the commit clock, each restart advances the commit clock by a lease. The
    /// replaced store's commit clock may therefore have passed `last`. A cursor later than `time`
    /// comes from that store.
    /// - Parameter time: the safe time. No cursor from the present store is later than this time.
    func contains(_ mark: Int64, at time: Int64) -> Bool {
        last > 0 && mark > 0 && (mark <= last || mark > time)
    }
}
