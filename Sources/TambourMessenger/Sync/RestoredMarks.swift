/// The cursors that predate the restore of a backup.
struct RestoredMarks: Sendable {
    /// The latest commit time of the earlier cursors; 0 when no backup was ever restored.
    let last: Int64

    /// Returns whether the store may have forgotten what a client with this cursor holds.
    ///
    /// While the wall clock is far behind the commit clock, each restart advances the commit clock
    /// by a lease. So the store that was replaced may have got past `last`. A cursor later than
    /// anything in the present store is from the replaced one.
    /// - Parameter time: the safe time; no cursor of the present store is later.
    func contains(_ mark: Int64, at time: Int64) -> Bool {
        last > 0 && mark > 0 && (mark <= last || mark > time)
    }
}
