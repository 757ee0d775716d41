/// How a reader handles a repeated key of a map, or a repeated item of a list.
package enum Duplicates: Sendable {
    /// A repeated key keeps the position of its first occurrence and takes the value of its last. A
    /// repeated item is kept once.
    case merged
    /// A repeated key or item is an error.
    case refused
    /// All repeated keys and items are kept.
    case kept
}

/// The positions of the keys read so far.
///
/// A lookup takes constant time even if an attacker chose the keys, because `Hasher` is seeded.
struct SeenKeys<Key: Hashable>: ~Copyable {
    /// The number of entries up to which comparing all entries is cheaper than hashing them.
    static var comparedKeys: Int { 8 }

    private var places: [Key: Int] = [:]

    /// Records a key.
    ///
    /// - Returns: the position of the key if it was recorded earlier. Otherwise nil; the key then
    ///   gets the next position.
    mutating func place(of key: Key) -> Int? {
        if let place = places[key] { return place }
        places[key] = places.count
        return nil
    }
}
