/// Which marks are from a life of the store that a restored backup has ended.
struct RestoredMarks: Sendable {
    /// Up to it marks are from before, commit clock; 0 when no backup ever was restored.
    let last: Int64

    /// Whether the store may have forgotten what a client with that mark holds.
    ///
    /// While the wall stands far behind the clock, each restart moves the clock on by a lease, so the ended life
    /// may have come further than `last`: a mark that is later than anything in this life is from that one.
    /// - Parameter time: safe time, which no mark of this life is later than.
    func contains(_ mark: Int64, at time: Int64) -> Bool {
        last > 0 && mark > 0 && (mark <= last || mark > time)
    }
}
