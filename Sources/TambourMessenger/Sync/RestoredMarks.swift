/// The cursors that predate the restore of a backup.
struct RestoredMarks: Sendable {
    /// The latest cursor that may predate the last restore; 0 when no backup was ever restored.
    let last: Int64

    /// Returns whether a client with this cursor may hold data that the restored store does not
    /// have.
    ///
    /// While the wall clock is far behind the commit clock, each restart advances the commit clock
    /// by a lease. The replaced store's commit clock may therefore have passed `last`. A cursor
    /// later than `time` is from the replaced store.
    /// - Parameter time: the safe time. No cursor of the present store is later.
    func contains(_ mark: Int64, at time: Int64) -> Bool {
        last > 0 && mark > 0 && (mark <= last || mark > time)
    }
}
