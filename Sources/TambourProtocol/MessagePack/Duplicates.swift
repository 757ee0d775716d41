/// What a repeated key of a map, or a repeated item of a list, means to a reader.
package enum Duplicates: Sendable {
    /// The last value of a key counts, in the place of the first. A repeated item counts once.
    case merged
    /// An error.
    case refused
    /// Each is taken as it comes.
    case kept
}

/// The places of the keys that were read.
///
/// Looking one up takes constant time, also when a peer chose the keys: `Hasher` is seeded.
struct SeenKeys<Key: Hashable>: ~Copyable {
    /// In a map or list of up to this many, comparing with each is cheaper than hashing.
    static var comparedKeys: Int { 8 }

    private var places: [Key: Int] = [:]

    /// Notes a key.
    ///
    /// - Returns: the place of the same key if it was noted before; otherwise nil, and the key gets the
    ///   next place.
    mutating func place(of key: Key) -> Int? {
        if let place = places[key] { return place }
        places[key] = places.count
        return nil
    }
}
