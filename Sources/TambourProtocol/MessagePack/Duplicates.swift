/// How a reader handles a repeated key of a map, or a repeated item of a list.
package enum Duplicates: Sendable {
    /// A key takes its last value, in the position of its first occurrence. A repeated item counts
    /// once.
    case merged
    /// A repetition is an error.
    case refused
    /// Repetitions are kept.
    case kept
}

/// The positions of the keys read so far.
///
/// A lookup takes constant time even when a peer chose the keys, because `Hasher` is seeded.
struct SeenKeys<Key: Hashable>: ~Copyable {
    /// Up to this number of entries, comparing all entries is cheaper than hashing them.
    static var comparedKeys: Int { 8 }

    private var places: [Key: Int] = [:]

    /// Records a key.
    ///
    /// - Returns: the position of the same key if it was recorded before; otherwise nil, and the
    ///   key gets the next position.
    mutating func place(of key: Key) -> Int? {
        if let place = places[key] { return place }
        places[key] = places.count
        return nil
    }
}
